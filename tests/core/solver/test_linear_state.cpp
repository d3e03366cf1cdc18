#include "solver/linear_state.hpp"

#include "check.hpp"
#include "fixtures.hpp"
#include "linear_problems.hpp"
#include "plain_losses.hpp"
#include "solver/balance.hpp"
#include "solver/linear_free_bias.hpp"

using namespace polymargin;
using fixtures::LinearProblem;
using fixtures::plain_of;
using fixtures::Random;

namespace {

/// The problem with its matrix either way.
template <class Visit>
void for_views(const LinearProblem& problem, Visit&& visit) {
    for (const DataView& data : {DataView(problem.x.dense()), DataView(problem.csr.view())}) {
        visit(LinearData{data, problem.order, problem.labels, problem.cost_bounds, problem.classes});
    }
}

bool same(const LinearState& a, const LinearState& b) {
    return a.weights == b.weights && a.sums == b.sums && a.bias == b.bias && a.violation == b.violation &&
           a.objectives.primal == b.objectives.primal && a.objectives.dual == b.objectives.dual;
}

double sum_of_sizes(std::span<const double> rows) {
    double size = 0.0;
    for (const double b : rows) size += std::abs(b);
    return size;
}

}  // namespace

TEST(linear_states_are_worth_what_plain_loops_say) {
    Random random(341);
    for (const Index k : {2, 5}) {
        const LinearProblem problem(k, 60, 7, k == 2 ? 1.0 : 0.4, 342);
        const auto gram = problem.gram();
        fixtures::for_row_losses([&](const auto& loss) {
            const auto rows = fixtures::feasible_rows(loss, problem, random);
            const auto coefficients = fixtures::coefficients_of(rows, k);
            for (const double weight : {0.0, 1.0, 3.0}) {
                std::vector<double> shift(k);
                for (double& s : shift) s = random.normal();
                for (const auto& used : {std::vector<double>{}, shift}) {
                    const plain::Machine machine{.classes = k, .rows = rows, .weight = weight, .shift = used};
                    const auto w = plain::evaluate(plain_of(loss), gram, problem.labels, problem.cost_bounds, machine);
                    for_views(problem, [&](const LinearData& data) {
                        const auto state = evaluate(loss, data, coefficients, weight, used, {});
                        CHECK_CLOSE(state.objectives.primal, w.primal, 1e-11 * std::abs(w.primal));
                        CHECK_CLOSE(state.objectives.dual, w.dual, 1e-11 * std::abs(w.primal));
                        CHECK_CLOSE(state.gap(), (w.primal - w.dual) / std::max(std::abs(w.primal), std::abs(w.dual)),
                                    1e-10);
                        CHECK_CLOSE(state.violation, w.violation, 1e-10);
                        const auto sums = machine.column_sums();
                        const auto weights = problem.weights(rows);
                        for (Index m = 0; m < k; ++m) {
                            CHECK_CLOSE(state.sums[m], sums[m], 1e-11);
                            CHECK_CLOSE(state.bias[m], weight * sums[m] + (used.empty() ? 0.0 : used[m]), 1e-11);
                        }
                        CHECK(state.weights.size() == weights.values.size());
                        for (std::size_t e = 0; e < weights.values.size(); ++e) {
                            CHECK_CLOSE(state.weights[e], weights.values[e], 1e-11);
                        }
                    });
                }
            }
        });
    }
}

TEST(no_dual_point_is_above_a_primal_one) {
    Random random(343);
    const LinearProblem problem(4, 50, 6, 1.0, 344);
    fixtures::for_row_losses([&](const auto& loss) {
        using Loss = std::decay_t<decltype(loss)>;
        for_views(problem, [&](const LinearData& data) {
            double highest[2] = {-plain::kInfinity, -plain::kInfinity},
                   lowest[2] = {plain::kInfinity, plain::kInfinity};
            double highest_free = -plain::kInfinity, lowest_free = plain::kInfinity;
            for (int repeat = 0; repeat < 30; ++repeat) {
                auto rows = fixtures::feasible_rows(loss, problem, random);
                const double share = random.uniform() * random.uniform();
                for (double& b : rows) b *= share;
                const auto point = fixtures::coefficients_of(rows, 4);
                for (const int w : {0, 1}) {
                    const auto state = evaluate(loss, data, point, w, {}, {});
                    highest[w] = std::max(highest[w], state.objectives.dual);
                    lowest[w] = std::min(lowest[w], state.objectives.primal);
                    CHECK(state.gap() >= 0.0);
                }
                std::vector<double> shift(4);
                for (double& s : shift) s = random.normal();
                const auto state = evaluate(loss, data, balanced<Loss>(data, point), 0.0, shift, {});
                highest_free = std::max(highest_free, state.objectives.dual);
                lowest_free = std::min(lowest_free, state.objectives.primal);
            }
            for (const int w : {0, 1}) CHECK(highest[w] <= lowest[w]);
            CHECK(highest_free <= lowest_free);
            CHECK(highest_free > 0.0);
        });
    });
}

TEST(a_centre_is_made_up_for_by_the_bias) {
    Random random(352);
    const LinearProblem problem(4, 60, 6, 1.0, 353);
    const DataView view = problem.x.dense();
    const LinearData data{view, problem.order, problem.labels, problem.cost_bounds, 4};
    std::vector<double> centre(6), shift(4);
    for (double& c : centre) c = random.normal();
    for (double& s : shift) s = random.normal();
    LinearData centred = data;
    centred.centre = centre;
    fixtures::for_row_losses([&](const auto& loss) {
        using Loss = std::decay_t<decltype(loss)>;
        const auto any = fixtures::coefficients_of(fixtures::feasible_rows(loss, problem, random), 4);
        LinearState plain, moved;
        sum_up(loss, data, any, plain, {});
        sum_up(loss, centred, any, moved, {});
        for (Index e = 0; e < 24; ++e) {
            CHECK_CLOSE(moved.weights[e], plain.weights[e] - centre[e / 4] * plain.sums[e % 4], 1e-11);
        }
        // Weights of sums that are zero do not see it, and the bias that is told is for examples as they are.
        const auto point = balanced<Loss>(data, any);
        const auto found = evaluate(loss, centred, point, 0.0, shift, {});
        std::vector<double> bias = shift;
        for (Index e = 0; e < 24; ++e) bias[e % 4] -= centre[e / 4] * found.weights[e];
        const auto expected = evaluate(loss, data, point, 0.0, bias, {});
        for (Index e = 0; e < 24; ++e) CHECK_CLOSE(found.weights[e], expected.weights[e], 1e-11);
        for (Index m = 0; m < 4; ++m) CHECK_CLOSE(found.bias[m], bias[m], 1e-11);
        CHECK_CLOSE(found.objectives.primal, expected.objectives.primal, 1e-11 * expected.objectives.primal);
        CHECK_CLOSE(found.objectives.dual, expected.objectives.dual, 1e-11 * expected.objectives.primal);
    });
}

TEST(a_point_of_the_primal_may_be_another) {
    Random random(356);
    std::vector<double> centre(6);
    for (double& c : centre) c = random.normal();
    for (const Index n : {40, 200}) {  // 200 are summed up in parts, and scored at once
        const LinearProblem problem(4, n, 6, 1.0, 357);
        fixtures::for_row_losses([&](const auto& loss) {
            const auto coefficients = fixtures::coefficients_of(fixtures::feasible_rows(loss, problem, random), 4);
            PrimalPoint point{std::vector<double>(24), std::vector<double>(4)};
            for (double& w : point.weights) w = random.normal();
            for (double& b : point.bias) b = random.normal();
            double expected = 0.0;
            for (const double w : point.weights) expected += 0.5 * w * w;
            for (const double b : point.bias) expected += 0.25 * b * b;  // with a weight of 2
            for (Index i = 0; i < n; ++i) {
                std::vector<double> scores(point.bias);
                for (Index e = 0; e < 24; ++e) {
                    scores[e % 4] +=
                        (problem.x.values[problem.order[i] * 6 + e / 4] - centre[e / 4]) * point.weights[e];
                }
                expected += problem.cost_bounds[i] * loss.loss(scores, problem.labels[i]);
            }
            for_views(problem, [&](LinearData data) {
                data.centre = centre;
                const auto own = evaluate(loss, data, coefficients, 2.0, {}, {});
                const auto state = evaluate(loss, data, coefficients, 2.0, {}, {}, &point);
                CHECK(state.weights == point.weights && state.sums == own.sums);
                CHECK(state.objectives.dual == own.objectives.dual);
                CHECK_CLOSE(state.objectives.primal, expected, 1e-11 * expected);
                ThreadPool pool(3);
                CHECK(same(state, evaluate(loss, data, coefficients, 2.0, {}, {&pool, nullptr}, &point)));
            });
        });
    }
}

TEST(the_best_bias_for_the_weights_of_coefficients_is_a_point_of_the_primal) {
    Random random(358);
    std::vector<double> centre(6);
    for (double& c : centre) c = random.normal();
    for (const Index n : {40, 200, 1100}) {
        const LinearProblem problem(4, n, 6, 1.0, 359);
        fixtures::for_row_losses([&]<class Loss>(const Loss& loss) {
            if constexpr (ShiftableLoss<Loss>) {
                const auto coefficients = fixtures::coefficients_of(fixtures::feasible_rows(loss, problem, random), 4);
                for_views(problem, [&](LinearData data) {
                    data.centre = centre;
                    const auto own = evaluate(loss, data, coefficients, 0.0, {}, {});
                    const auto best = evaluate_at_best_bias(loss, data, coefficients, {});
                    CHECK(best.weights == own.weights && best.sums == own.sums);
                    CHECK_CLOSE(best.objectives.dual, own.objectives.dual, 1e-12 * std::abs(own.objectives.dual));
                    PrimalPoint point{best.weights, best.bias};  // of examples without their centre
                    for (Index e = 0; e < 24; ++e) point.bias[e % 4] += centre[e / 4] * point.weights[e];
                    const auto same_point = evaluate(loss, data, coefficients, 0.0, {}, {}, &point);
                    const double primal = best.objectives.primal;
                    CHECK_CLOSE(primal, same_point.objectives.primal, 1e-11 * primal);
                    CHECK_CLOSE(best.violation, same_point.violation, 1e-9 * (1.0 + best.violation));
                    for (Index m = 0; m < 4; ++m) {
                        for (const double step : {-1.0, -0.01, 0.01, 1.0}) {
                            PrimalPoint other = point;
                            other.bias[m] += step;
                            const auto moved = evaluate(loss, data, coefficients, 0.0, {}, {}, &other);
                            CHECK(moved.objectives.primal >= primal * (1.0 - 1e-12));
                        }
                    }
                    ThreadPool pool(3);
                    CHECK(same(best, evaluate_at_best_bias(loss, data, coefficients, {&pool, nullptr})));
                });
            }
        });
    }
}

TEST(linear_states_do_not_depend_on_the_threads) {
    Random random(345);
    const LinearProblem problem(3, 2300, 4, 1.0, 346);
    ThreadPool pool(3);
    fixtures::for_row_losses([&](const auto& loss) {
        const auto point = fixtures::coefficients_of(fixtures::feasible_rows(loss, problem, random), 3);
        for_views(problem, [&](const LinearData& data) {
            const auto alone = evaluate(loss, data, point, 1.0, {}, {});
            CHECK(same(alone, evaluate(loss, data, point, 1.0, {}, {&pool, nullptr})));
        });
    });
}

TEST(linear_states_do_not_depend_on_what_holds_the_rows) {
    Random random(354);
    for (const double density : {0.05, 0.3, 1.0}) {
        const LinearProblem problem(4, 70, 8, density, 355);
        fixtures::for_row_losses([&](const auto& loss) {
            const auto point = fixtures::coefficients_of(fixtures::feasible_rows(loss, problem, random), 4);
            std::vector<LinearState> states;
            for_views(problem,
                      [&](const LinearData& data) { states.push_back(evaluate(loss, data, point, 1.0, {}, {})); });
            CHECK(same(states[0], states[1]));
        });
    }
}

TEST(states_of_nothing_have_no_gap) {
    const LinearProblem problem(3, 20, 4, 1.0, 347);
    const std::vector<double> nothing(20, 0.0);
    const DataView data = problem.x.dense();
    fixtures::for_row_losses([&](const auto& loss) {
        const LinearData weightless{data, problem.order, problem.labels, nothing, 3};
        const auto state = evaluate(loss, weightless, Coefficients(20), 1.0, {}, {});
        CHECK(state.objectives.primal == 0.0 && state.objectives.dual == 0.0 && state.gap() == 0.0);
        const LinearData none{data, {}, {}, {}, 3};
        CHECK(evaluate(loss, none, Coefficients(0), 1.0, {}, {}).gap() == 0.0);
    });
}

TEST(balanced_coefficients_sum_to_zero_and_none_is_larger) {
    Random random(348);
    for (const Index k : {2, 3, 8}) {
        for (int repeat = 0; repeat < 20; ++repeat) {
            LinearProblem problem(k, 40, 3, 1.0, 349 + static_cast<std::uint64_t>(repeat));
            if (repeat % 4 == 0) std::ranges::replace(problem.labels, k - 1, Index{0});  // a class that does not occur
            const DataView view = problem.x.dense();
            const LinearData data{view, problem.order, problem.labels, problem.cost_bounds, k};
            fixtures::for_row_losses([&](const auto& loss) {
                using Loss = std::decay_t<decltype(loss)>;
                const auto before = fixtures::feasible_rows(loss, problem, random);
                const auto result = balanced<Loss>(data, fixtures::coefficients_of(before, k));
                const plain::Machine machine{
                    .classes = k, .rows = fixtures::rows_of(result, k), .weight = 0.0, .shift = {}};
                const double rounding = 1e-13 * sum_of_sizes(before);
                for (const double s : machine.column_sums()) CHECK_CLOSE(s, 0.0, rounding);
                for (std::size_t e = 0; e < before.size(); ++e) {
                    const double b = machine.rows[e];
                    CHECK(before[e] > 0.0 ? b >= 0.0 : b <= 0.0);
                    CHECK(std::abs(b) <= std::abs(before[e]));
                }
                for (Index i = 0; i < 40; ++i) {
                    CHECK(plain_of(loss).infeasibility(machine.row(i), problem.labels[i], problem.cost_bounds[i]) ==
                          0.0);
                }
                // What is balanced stays as it is.
                const auto again = fixtures::rows_of(balanced<Loss>(data, result), k);
                for (std::size_t e = 0; e < again.size(); ++e) CHECK_CLOSE(again[e], machine.rows[e], rounding);
            });
        }
    }
}

TEST(free_coefficients_take_the_sums_and_stay_free) {
    const OneVsRest loss;
    Random random(346);
    const Index k = 3;
    const LinearProblem problem(k, 40, 3, 1.0, 347);
    auto before = fixtures::feasible_rows(loss, problem, random);
    for_views(problem, [&](const LinearData& data) {
        const auto start = fixtures::rows_of(balanced<OneVsRest>(data, fixtures::coefficients_of(before, k)), k);
        for (const double push : {1e-3, 0.3}) {  // towards a limit
            std::vector<double> rows = start;
            for (Index i = 0; i < problem.size(); ++i) {
                const Example example{problem.labels[i], problem.cost_bounds[i]};
                for (Index m = 0; m < k; ++m) {
                    if (i % 2 == 0) rows[i * k + m] += push * (example.cost_bound - std::abs(rows[i * k + m]));
                }
                loss.make_feasible(example, std::span(rows).subspan(i * k, k));
            }
            const auto moved = fixtures::rows_of(with_free_moved(loss, data, fixtures::coefficients_of(rows, k)), k);
            for (Index m = 0; m < k; ++m) {
                double sum = 0.0, size = 0.0;
                for (Index i = 0; i < problem.size(); ++i) {
                    const double b = rows[i * k + m], now = moved[i * k + m], bound = problem.cost_bounds[i];
                    const bool free = b != 0.0 && std::abs(b) < bound;
                    CHECK(free ? now != 0.0 && std::abs(now) < bound : now == b);
                    CHECK(now * b >= 0.0);
                    sum += now;
                    size += std::abs(now);
                }
                if (push < 0.1) CHECK_CLOSE(sum, 0.0, 1e-12 * size);
            }
        }
    });
}

TEST(balanced_coefficients_are_not_just_zero) {
    Random random(350);
    const LinearProblem problem(4, 200, 3, 1.0, 351);
    const DataView view = problem.x.dense();
    const LinearData data{view, problem.order, problem.labels, problem.cost_bounds, 4};
    fixtures::for_row_losses([&](const auto& loss) {
        using Loss = std::decay_t<decltype(loss)>;
        const plain::Machine before{
            .classes = 4, .rows = fixtures::feasible_rows(loss, problem, random), .weight = 0.0, .shift = {}};
        const auto after = fixtures::rows_of(balanced<Loss>(data, fixtures::coefficients_of(before.rows, 4)), 4);
        // What is lost is a small multiple of the imbalance: a path of a flow has at most as many edges as classes.
        double imbalance = 0.0;
        for (const double s : before.column_sums()) imbalance += std::abs(s);
        CHECK(sum_of_sizes(before.rows) - sum_of_sizes(after) <= 4.0 * imbalance);
    });
}
