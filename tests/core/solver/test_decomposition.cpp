#include "solver/decomposition.hpp"

#include "check.hpp"
#include "fixtures.hpp"
#include "plain_losses.hpp"
#include "problem/crammer_singer.hpp"
#include "problem/weston_watkins.hpp"
#include "solver/free_bias.hpp"

using namespace polymargin;
using fixtures::KernelSetup;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Index kAmple = Index{1} << 30;
// A solver that does not end fails its test; the limit is far beyond what any of these takes.
constexpr double kTimeLimit = 20.0;
const KernelSpec kRbf{.type = KernelType::rbf, .gamma = 0.2};
const KernelSpec kLinear{.type = KernelType::linear};

template <class Real>
constexpr double kRounding = std::is_same_v<Real, float> ? 2e-4 : 1e-9;

/// A loss that the core does not know: the sum of the two largest shortfalls of the margin 1.5.
class TwoWorst {
  public:
    static constexpr bool kRowsSumToZero = true;
    static constexpr bool kConjugate = false;

    [[nodiscard]] OwnOffset offsets(Index label) const { return {.label = label, .own = -kMargin, .others = 0.0}; }
    [[nodiscard]] double loss(std::span<const double> scores, Index label) const {
        double first = 0.0, second = 0.0;
        for (Index m = 0; m < std::ssize(scores); ++m) {
            if (m == label) continue;
            const double shortfall = kMargin - (scores[label] - scores[m]);
            second = std::max(second, std::min(first, shortfall));
            first = std::max(first, shortfall);
        }
        return first + second;
    }
    [[nodiscard]] double margin(std::span<const double> scores, Index label) const {
        return smallest_margin(scores, label, kMargin);
    }
    [[nodiscard]] bool may_grow(double b, bool own, double cost_bound) const {
        return b < (own ? 2 * cost_bound : 0.0);
    }
    [[nodiscard]] bool may_fall(double b, bool own, double cost_bound) const { return own || b > -cost_bound; }
    [[nodiscard]] double violation(const RowExtremes& row) const { return row.highest - row.lowest; }
    [[nodiscard]] bool step(std::span<const double> gradient, double curvature, const Example& example,
                            std::span<double> beta) const {
        const RowLimits limits{.largest = example.cost_bound, .most = 2 * example.cost_bound};
        return exact_step(gradient, curvature, example.label, limits, beta);
    }
    void make_feasible(const Example& example, std::span<double> beta) const {
        const double most = 2 * example.cost_bound;
        const bool full = beta[example.label] >= most;
        double sum = 0.0;
        for (Index m = 0; m < std::ssize(beta); ++m) {
            if (m == example.label) continue;
            beta[m] = -std::clamp(-beta[m], 0.0, std::min(example.cost_bound, most - sum + 1e-15 * most));
            sum -= beta[m];
        }
        beta[example.label] = full && sum >= most * (1.0 - 1e-14) ? most : std::min(sum, most);
    }
    [[nodiscard]] bool at_vertex(std::span<const double> beta, const Example& example) const {
        return directions(beta, example).empty();
    }
    [[nodiscard]] std::vector<Direction> directions(std::span<const double> beta, const Example& example) const {
        std::vector<Direction> free;
        Index partner = may_grow(beta[example.label], true, example.cost_bound) ? example.label : -1;
        for (Index m = 0; m < std::ssize(beta); ++m) {
            if (m == example.label || !(beta[m] < 0.0) || !(beta[m] > -example.cost_bound)) continue;
            if (partner >= 0) free.push_back({partner, m});
            if (partner < 0) partner = m;
        }
        return free;
    }
    [[nodiscard]] double max_step(std::span<const double> beta, std::span<const double> change,
                                  const Example& example) const {
        double share = kInfinity;
        for (Index m = 0; m < std::ssize(beta); ++m) {
            const bool own = m == example.label;
            if (change[m] > 0.0) share = std::min(share, ((own ? 2 * example.cost_bound : 0.0) - beta[m]) / change[m]);
            if (change[m] < 0.0 && !own) share = std::min(share, (beta[m] + example.cost_bound) / -change[m]);
        }
        return share;
    }

  private:
    static constexpr double kMargin = 1.5;
};
static_assert(MulticlassLoss<TwoWorst>);

plain::Loss plain_of(const WestonWatkins&) {
    return plain::weston_watkins();
}
plain::Loss plain_of(const CrammerSinger&) {
    return plain::crammer_singer();
}
plain::Loss plain_of(const TwoWorst&) {
    return {.margin = 1.5, .largest = 1.0, .most = 2.0};
}

template <class Visit>
void for_losses(Visit&& visit) {
    visit(WestonWatkins());
    visit(CrammerSinger());
    visit(TwoWorst());
}

/// Overlapping classes in the order of the engine, and their kernel.
struct Data {
    KernelSpec kernel;
    Matrix x, gram;
    std::vector<Index> labels;
    std::vector<double> cost_bounds;
    Index classes;

    Data(Index k, Index per_class, double C, std::uint64_t seed, const KernelSpec& spec = kRbf, double distance = 0.7)
        : kernel(spec), x(k * per_class, 4), gram(0, 0), classes(k) {
        Random random(seed);
        x = fixtures::blobs(k, per_class, 4, distance, random);
        for (Index i = 0; i < k * per_class; ++i) {
            labels.push_back(i / per_class);
            cost_bounds.push_back(C * random.uniform(0.5, 1.5));
        }
        update_gram();
    }
    void update_gram() { gram = fixtures::plain_gram(kernel, x, fixtures::identity(x.rows)); }
    [[nodiscard]] Index size() const { return x.rows; }
};

enum class Biased { no, regularized, freely };

struct Options {
    DecompositionSettings settings{};
    Biased bias = Biased::no;
    Index budget = kAmple;
    int threads = 1;
    bool whole = true;
    const plain::Machine* start = nullptr;
};

struct Outcome {
    Status status;
    plain::Machine machine;
    MulticlassObjectives objectives;
    double violation;
    Index iterations;
    Index shrinkings;
};

template <class Loss, class Real>
Outcome outcome_of(const Decomposition<Loss, Real>& problem, Status status) {
    Outcome outcome{status, {}, problem.objectives(), problem.violation(), problem.iterations(), problem.shrinkings()};
    outcome.machine.classes = problem.classes();
    outcome.machine.weight = problem.bias().weight;
    outcome.machine.shift = problem.bias().shift;
    for (Index i = 0; i < problem.size(); ++i) {
        for (Index m = 0; m < problem.classes(); ++m) outcome.machine.rows.push_back(problem.beta().at(m, i));
    }
    return outcome;
}

template <class Real, class Loss>
Outcome solve_on(KernelSetup<Real>& setup, const Loss& loss, const Data& data, const Options& options) {
    if (options.whole) setup.store.compute_whole();
    Decomposition<Loss, Real> problem(loss, data.labels, data.cost_bounds, data.classes, setup.store, options.settings,
                                      setup.control);
    if (options.start != nullptr) problem.start_from(fixtures::identity(data.size()), options.start->rows);
    if (options.bias == Biased::freely) {
        FreeBias<Loss, Real> free(problem, *std::ranges::max_element(data.gram.values));
        const Status status = free.run(options.settings.tolerance);
        return outcome_of(problem, status);
    }
    if (options.bias == Biased::regularized) problem.set_bias({1.0, {}});
    const Status status = problem.run(options.settings.tolerance);
    return outcome_of(problem, status);
}

template <class Real, class Loss>
Outcome solve(const Loss& loss, const Data& data, const Options& options) {
    KernelSetup<Real> setup(data.kernel, data.x.dense(), fixtures::identity(data.size()), options.budget,
                            options.threads, kTimeLimit);
    return solve_on(setup, loss, data, options);
}

/// The outcome is what the solver says it is, by code that does not trust it.
template <class Real, class Loss>
plain::Evaluation check_honest(const Loss& loss, const Data& data, const Outcome& outcome) {
    const auto w = plain::evaluate(plain_of(loss), data.gram, data.labels, data.cost_bounds, outcome.machine);
    const double rounding = kRounding<Real>;
    const double allowed =
        rounding * static_cast<double>(data.classes) * std::max(1.0, w.bound_total + std::abs(w.dual));
    CHECK_CLOSE(outcome.violation, w.violation, rounding);
    CHECK_CLOSE(outcome.objectives.dual, w.dual, allowed);
    CHECK_CLOSE(outcome.objectives.primal, w.primal, allowed);
    CHECK(w.primal >= w.dual - allowed);
    return w;
}

template <class Real, class Loss>
void check_solved(const Loss& loss, const Data& data, const Outcome& outcome, double tolerance) {
    CHECK(outcome.status == Status::converged);
    CHECK(outcome.violation <= tolerance);
    const auto w = check_honest<Real>(loss, data, outcome);
    // Every example adds at most C_i times the violation to the gap, for Weston-Watkins once for each class.
    const auto k = static_cast<double>(data.classes);
    CHECK(w.primal - w.dual <= (tolerance + kRounding<Real>)*k * w.bound_total);
}

template <class Real>
void check_random_problems() {
    for (const Index k : {2, 3, 7}) {
        for (const double C : {0.1, 1.0, 20.0}) {
            const Data data(k, 120 / k, C, 241);
            for (const auto bias : {Biased::no, Biased::regularized}) {
                for_losses([&](const auto& loss) {
                    for (const double tolerance : {1e-1, 1e-3}) {
                        const Options options{.settings = {.tolerance = tolerance}, .bias = bias};
                        check_solved<Real>(loss, data, solve<Real>(loss, data, options), tolerance);
                    }
                });
            }
        }
    }
}

bool same(const Outcome& a, const Outcome& b) {
    return a.status == b.status && a.machine.rows == b.machine.rows && a.machine.shift == b.machine.shift &&
           a.objectives.primal == b.objectives.primal && a.objectives.dual == b.objectives.dual &&
           a.violation == b.violation && a.iterations == b.iterations;
}

/// Classes far apart, and no limit to the coefficients.
Data separable(std::uint64_t seed, const KernelSpec& kernel = kRbf) {
    Data data(4, 15, 1.0, seed, kernel);
    for (Index i = 0; i < data.size(); ++i) data.x.at(i, data.labels[i]) += 10.0;
    data.update_gram();
    std::ranges::fill(data.cost_bounds, kInfinity);
    return data;
}

}  // namespace

TEST(multiclass_problems_are_solved_in_single_precision) {
    check_random_problems<float>();
}

TEST(multiclass_problems_are_solved_in_double_precision) {
    check_random_problems<double>();
}

TEST(tight_tolerances_close_the_multiclass_gap) {
    const Data data(4, 30, 2.0, 242);
    for (const auto bias : {Biased::no, Biased::regularized, Biased::freely}) {
        for_losses([&](const auto& loss) {
            const Options options{.settings = {.tolerance = 1e-8}, .bias = bias};
            const Outcome outcome = solve<double>(loss, data, options);
            check_solved<double>(loss, data, outcome, 1e-8);
            CHECK((outcome.objectives.primal - outcome.objectives.dual) / outcome.objectives.dual <= 1e-7);
        });
    }
}

TEST(more_classes_than_examples_to_tell_them_apart) {
    const Data data(30, 2, 5.0, 243);
    for_losses([&](const auto& loss) {
        const Options options{.settings = {.tolerance = 1e-6}};
        check_solved<double>(loss, data, solve<double>(loss, data, options), 1e-6);
    });
}

TEST(small_working_sets_and_few_entrants) {
    const Data data(3, 40, 5.0, 244);
    for_losses([&](const auto& loss) {
        const double best = solve<double>(loss, data, {.settings = {.tolerance = 1e-6}}).objectives.dual;
        for (const Index size : {1, 2, 5, 40}) {
            const Options options{.settings = {.tolerance = 1e-6, .working_set = size, .entrants = 2}};
            const Outcome outcome = solve<double>(loss, data, options);
            check_solved<double>(loss, data, outcome, 1e-6);
            CHECK_CLOSE(outcome.objectives.dual, best, 1e-5 * best);
        }
    });
}

TEST(a_tiny_budget_of_rows_gives_the_same_machine) {
    const Data data(4, 50, 2.0, 245);
    for_losses([&](const auto& loss) {
        const Outcome whole = solve<double>(loss, data, {.settings = {.tolerance = 1e-7}});
        const Options tight{.settings = {.tolerance = 1e-7, .working_set = 20, .entrants = 8},
                            .budget = 30 * padded<double>(200) * 8,
                            .whole = false};
        const Outcome rows = solve<double>(loss, data, tight);
        check_solved<double>(loss, data, rows, 1e-7);
        CHECK_CLOSE(rows.objectives.dual, whole.objectives.dual, 1e-6 * whole.objectives.dual);
        CHECK_CLOSE(rows.objectives.primal, whole.objectives.primal, 1e-6 * whole.objectives.dual);
    });
}

TEST(shrunk_problems_have_the_same_machine) {
    const Data data(4, 100, 2.0, 251);
    for_losses([&](const auto& loss) {
        DecompositionSettings settings{.tolerance = 1e-6, .working_set = 24, .entrants = 4};
        const Outcome plain = solve<double>(loss, data, {.settings = settings, .bias = Biased::regularized});
        CHECK(plain.shrinkings == 0);
        settings.shrink_from = 1;
        for (const bool whole : {true, false}) {
            Options options{.settings = settings, .bias = Biased::regularized, .whole = whole};
            if (!whole) options.budget = 120 * padded<double>(data.size()) * 8;
            const Outcome shrunk = solve<double>(loss, data, options);
            CHECK(shrunk.shrinkings > 0);
            check_solved<double>(loss, data, shrunk, 1e-6);
            CHECK_CLOSE(shrunk.objectives.dual, plain.objectives.dual, 1e-6 * plain.objectives.dual);
            options.threads = 3;
            CHECK(same(shrunk, solve<double>(loss, data, options)));
        }
    });
}

TEST(single_and_double_precision_agree) {
    const Data data(4, 60, 1.0, 246);
    for_losses([&](const auto& loss) {
        for (const auto bias : {Biased::no, Biased::regularized, Biased::freely}) {
            const Options options{.settings = {.tolerance = 1e-4}, .bias = bias};
            const auto single = solve<float>(loss, data, options).objectives;
            const auto twice = solve<double>(loss, data, options).objectives;
            CHECK_CLOSE(single.dual, twice.dual, 1e-6 * twice.dual);
        }
    });
}

TEST(multiclass_answers_do_not_depend_on_the_threads) {
    const Data data(3, 110, 1.0, 247);  // two strips, the last one short
    for_losses([&](const auto& loss) {
        for (const bool whole : {true, false}) {
            for (const auto bias : {Biased::no, Biased::freely}) {
                Options options{.settings = {.tolerance = 1e-2, .working_set = 100}, .bias = bias, .whole = whole};
                if (!whole) options.budget = 200 * padded<float>(330) * 4;
                const Outcome alone = solve<float>(loss, data, options);
                for (const int threads : {2, 4}) {
                    options.threads = threads;
                    CHECK(same(alone, solve<float>(loss, data, options)));
                }
            }
        }
    });
}

TEST(a_multiclass_warm_start_from_the_solution_takes_no_step) {
    const Data data(4, 40, 2.0, 248);
    for_losses([&](const auto& loss) {
        for (const auto bias : {Biased::no, Biased::regularized}) {
            const Outcome cold = solve<double>(loss, data, {.settings = {.tolerance = 1e-6}, .bias = bias});
            // A working set smaller than the support: the start comes in over several batches.
            for (const Index working_set : {16, 512}) {
                const Options options{
                    .settings = {.tolerance = 1e-5, .working_set = working_set}, .bias = bias, .start = &cold.machine};
                const Outcome warm = solve<double>(loss, data, options);
                CHECK(warm.status == Status::converged && warm.iterations == 0);
                CHECK_CLOSE(warm.objectives.dual, cold.objectives.dual, 1e-9 * cold.objectives.dual);
                check_honest<double>(loss, data, warm);
            }
        }
    });
}

TEST(a_start_that_is_not_feasible_is_made_so) {
    const Data data(3, 40, 1.0, 249);
    Random random(249);
    plain::Machine wild{.classes = 3, .rows = std::vector<double>(data.size() * 3), .weight = 0.0, .shift = {}};
    for (double& b : wild.rows) b = 5 * random.normal();
    for_losses([&](const auto& loss) {
        const Options options{.settings = {.tolerance = 1e-6}, .start = &wild};
        const Outcome outcome = solve<double>(loss, data, options);
        check_solved<double>(loss, data, outcome, 1e-6);
        const double best = solve<double>(loss, data, {.settings = {.tolerance = 1e-6}}).objectives.dual;
        CHECK_CLOSE(outcome.objectives.dual, best, 1e-5 * best);
    });
}

TEST(a_problem_goes_on_where_it_stopped) {
    const Data data(3, 40, 2.0, 250);
    KernelSetup<double> setup(kRbf, data.x.dense(), fixtures::identity(120), kAmple, 1, kTimeLimit);
    const CrammerSinger loss;
    Decomposition<CrammerSinger, double> problem(loss, data.labels, data.cost_bounds, 3, setup.store, {},
                                                 setup.control);
    CHECK(problem.size() == 120 && problem.classes() == 3 && problem.violation() == 1.0);
    Index steps = 0;
    for (const double tolerance : {0.3, 1e-2, 1e-5}) {
        CHECK(problem.run(tolerance) == Status::converged && problem.violation() <= tolerance);
        CHECK(problem.iterations() > steps);
        steps = problem.iterations();
        check_honest<double>(loss, data, outcome_of(problem, Status::converged));
    }
    CHECK(problem.run(1e-5) == Status::converged && problem.iterations() == steps);
    // Another bias is another problem; its gradient is right at once.
    problem.set_bias({0.5, {0.1, -0.3, 0.2}});
    const auto moved = outcome_of(problem, Status::converged);
    const auto w = plain::evaluate(plain_of(loss), data.gram, data.labels, data.cost_bounds, moved.machine);
    CHECK_CLOSE(moved.violation, w.violation, 1e-12);
    CHECK(problem.run(1e-5) == Status::converged && problem.violation() <= 1e-5);
    problem.set_bias({});
    check_honest<double>(loss, data, outcome_of(problem, Status::converged));
}

TEST(rows_changed_from_outside) {
    const Data data(3, 40, 2.0, 251);
    KernelSetup<double> setup(kRbf, data.x.dense(), fixtures::identity(120), kAmple, 1, kTimeLimit);
    const WestonWatkins loss;
    Decomposition<WestonWatkins, double> problem(loss, data.labels, data.cost_bounds, 3, setup.store,
                                                 {.working_set = 4}, setup.control);
    problem.set_bias({1.0, {}});
    const std::vector<Index> which{3, 119, 50, 7, 8, 9};
    std::vector<double> changes;
    for (const Index i : which) {
        for (Index m = 0; m < 3; ++m) changes.push_back(m == data.labels[i] ? 0.5 : -0.25);
    }
    problem.change_rows(which, changes);
    const Outcome outcome = outcome_of(problem, Status::converged);
    CHECK(outcome.machine.row(119)[2] == 0.5 && outcome.machine.row(3)[1] == -0.25 && outcome.machine.row(0)[0] == 0.0);
    CHECK(problem.column_sums() == outcome.machine.column_sums());
    check_honest<double>(loss, data, outcome);
}

TEST(the_limit_of_exact_steps_is_kept) {
    const Data data(3, 60, 10.0, 252);
    for_losses([&](const auto& loss) {
        for (const Index limit : {0, 1, 7, 50}) {
            const Options options{.settings = {.tolerance = 1e-6, .max_iterations = limit}};
            const Outcome outcome = solve<double>(loss, data, options);
            CHECK(outcome.status == Status::max_iterations && outcome.iterations == limit);
            check_honest<double>(loss, data, outcome);  // unfinished, but feasible
        }
    });
}

TEST(cancelled_and_late_decompositions) {
    const Data data(3, 40, 1.0, 253);
    for_losses([&](const auto& loss) {
        for (const auto bias : {Biased::no, Biased::freely}) {
            for (const bool late : {false, true}) {
                KernelSetup<double> setup(kRbf, data.x.dense(), fixtures::identity(120), kAmple, 1,
                                          late ? 0.0 : kInfinity);
                if (!late) setup.control.cancel();
                const Outcome outcome = solve_on(setup, loss, data, {.bias = bias, .whole = false});
                CHECK(outcome.status == (late ? Status::time_limit : Status::stopped) && outcome.iterations == 0);
            }
        }
    });
}

TEST(a_decomposition_stopped_in_the_middle_is_feasible) {
    const Data data(3, 120, 1000.0, 254);
    KernelSetup<double> setup(kRbf, data.x.dense(), fixtures::identity(360), kAmple, 2, kTimeLimit);
    const WestonWatkins loss;
    Outcome outcome;
    const Options options{.settings = {.tolerance = 1e-12, .working_set = 16}};
    run_watched([&] { outcome = solve_on(setup, loss, data, options); }, setup.control,
                [&] { return setup.control.progress().iterations < 100; }, std::chrono::milliseconds(1));
    CHECK(outcome.status == Status::stopped || outcome.status == Status::converged);
    plain::evaluate(plain_of(loss), data.gram, data.labels, data.cost_bounds, outcome.machine);
}

TEST(a_small_gap_is_enough_if_asked_for) {
    const Data data(3, 60, 5.0, 255);
    for_losses([&](const auto& loss) {
        const Outcome exact = solve<double>(loss, data, {.settings = {.tolerance = 1e-7}});
        for (const double gap : {0.5, 1e-2, 1e-4}) {
            const Outcome outcome = solve<double>(loss, data, {.settings = {.tolerance = 1e-7, .gap = gap}});
            const auto [primal, dual] = outcome.objectives;
            CHECK(outcome.status == Status::converged);
            CHECK(primal - dual <= gap * primal);
            CHECK(outcome.violation > 1e-7 && outcome.iterations < exact.iterations);
            check_honest<double>(loss, data, outcome);
        }
    });
}

TEST(multiclass_hard_margins_separate) {
    for (const auto& kernel : {kRbf, kLinear}) {
        const Data data = separable(256, kernel);
        for_losses([&](const auto& loss) {
            for (const auto bias : {Biased::no, Biased::regularized, Biased::freely}) {
                const Options options{.settings = {.tolerance = 1e-7}, .bias = bias};
                const Outcome outcome = solve<double>(loss, data, options);
                CHECK(outcome.status == Status::converged);
                const auto w = check_honest<double>(loss, data, outcome);
                CHECK_CLOSE(w.primal, w.dual, 1e-5 * w.dual);
            }
        });
    }
}

TEST(equal_points_of_different_classes_have_no_multiclass_hard_margin) {
    for (const auto& kernel : {kRbf, kLinear}) {
        Data data = separable(257, kernel);
        std::copy_n(data.x.values.begin() + 7 * 4, 4, data.x.values.begin() + 41 * 4);
        data.update_gram();
        for_losses([&](const auto& loss) {
            for (const auto bias : {Biased::no, Biased::regularized, Biased::freely}) {
                for (const double tolerance : {1e-3, 1e-7}) {
                    const Options options{.settings = {.tolerance = tolerance}, .bias = bias};
                    const Outcome outcome = solve<double>(loss, data, options);
                    CHECK(outcome.status == Status::unbounded);
                    CHECK(outcome.iterations < 1'000'000);
                }
            }
        });
    }
}

TEST(overlapping_classes_have_no_linear_hard_margin) {
    Data data(3, 30, 1.0, 258, kLinear, 0.2);
    std::ranges::fill(data.cost_bounds, kInfinity);
    for_losses([&](const auto& loss) {
        for (const auto bias : {Biased::no, Biased::regularized, Biased::freely}) {
            const Outcome outcome = solve<double>(loss, data, {.bias = bias});
            CHECK(outcome.status == Status::unbounded);
        }
    });
}

TEST(a_point_at_the_origin_has_no_linear_hard_margin_without_bias) {
    Data data = separable(259, kLinear);
    // The mean of the data is taken out of the kernel only where that changes nothing, not here.
    std::fill_n(data.x.values.begin() + 9 * 4, 4, 0.0);
    data.update_gram();
    for_losses([&](const auto& loss) { CHECK(solve<double>(loss, data, {}).status == Status::unbounded); });
}

TEST(a_point_at_the_origin_pays_its_loss) {
    Data data(3, 20, 1.0, 260, kLinear);
    std::fill_n(data.x.values.begin() + 9 * 4, 4, 0.0);
    data.update_gram();
    for_losses([&](const auto& loss) {
        const Options options{.settings = {.tolerance = 1e-6}};
        check_solved<double>(loss, data, solve<double>(loss, data, options), 1e-6);
    });
}

TEST(examples_that_do_not_count_stay_out) {
    Data data(3, 40, 2.0, 261);
    for (Index i = 0; i < data.size(); i += 3) data.cost_bounds[i] = 0.0;
    for_losses([&](const auto& loss) {
        for (const auto bias : {Biased::no, Biased::freely}) {
            const Options options{.settings = {.tolerance = 1e-5}, .bias = bias};
            const Outcome outcome = solve<double>(loss, data, options);
            check_solved<double>(loss, data, outcome, 1e-5);
            for (Index i = 0; i < data.size(); i += 3) {
                for (const double b : outcome.machine.row(i)) CHECK(b == 0.0);
            }
        }
    });
}

TEST(one_class_alone_needs_no_multiclass_machine) {
    Data data(2, 10, 1.0, 262);
    std::ranges::fill(data.labels, 0);
    for_losses([&](const auto& loss) {
        const Outcome outcome = solve<double>(loss, data, {.bias = Biased::freely});
        CHECK(outcome.status == Status::converged);
        for (const double b : outcome.machine.rows) CHECK_CLOSE(b, 0.0, 1e-9);
    });
}

TEST(a_free_bias_balances_the_columns) {
    for (const Index k : {2, 3, 6}) {
        for (const double C : {0.1, 5.0}) {
            const Data data(k, 90 / k, C, 263);
            for_losses([&](const auto& loss) {
                for (const double tolerance : {1e-2, 1e-5}) {
                    const Options options{.settings = {.tolerance = tolerance}, .bias = Biased::freely};
                    const Outcome outcome = solve<double>(loss, data, options);
                    check_solved<double>(loss, data, outcome, tolerance);
                    CHECK(outcome.machine.weight == 0.0);
                    double size = 0.0;
                    for (const double b : outcome.machine.rows) size += std::abs(b);
                    for (const double sum : outcome.machine.column_sums()) CHECK_CLOSE(sum, 0.0, 1e-13 * size);
                    // What balancing took out of a row it took out whole.
                    for (Index i = 0; i < data.size(); ++i) {
                        const auto row = outcome.machine.row(i);
                        CHECK(std::ranges::count_if(row, [](double b) { return b != 0.0; }) != 1);
                    }
                }
            });
        }
    }
}

TEST(a_free_bias_that_is_stopped_is_balanced_too) {
    const Data data(4, 40, 5.0, 264);
    for_losses([&](const auto& loss) {
        const Options options{.settings = {.tolerance = 1e-6, .max_iterations = 60}, .bias = Biased::freely};
        const Outcome outcome = solve<double>(loss, data, options);
        CHECK(outcome.status == Status::max_iterations && outcome.iterations == 60);
        check_honest<double>(loss, data, outcome);
        double size = 0.0;
        for (const double b : outcome.machine.rows) size += std::abs(b);
        for (const double sum : outcome.machine.column_sums()) CHECK_CLOSE(sum, 0.0, 1e-13 * size);
    });
}

TEST(a_free_bias_follows_a_shift_of_the_linear_kernel) {
    // Moving all points changes nothing but the bias.
    Data here(3, 30, 1.0, 265, kLinear), there = here;
    for (Index i = 0; i < here.size(); ++i) there.x.at(i, 1) += 3.0;
    there.update_gram();
    for_losses([&](const auto& loss) {
        const Options options{.settings = {.tolerance = 1e-6}, .bias = Biased::freely};
        const auto a = solve<double>(loss, here, options).objectives,
                   b = solve<double>(loss, there, options).objectives;
        CHECK_CLOSE(a.dual, b.dual, 1e-5 * a.dual);
        CHECK_CLOSE(a.primal, b.primal, 1e-5 * a.dual);
    });
}
