#include "solver/proximal_newton.hpp"

#include "check.hpp"
#include "fixtures.hpp"
#include "linear_problems.hpp"
#include "plain_blas.hpp"
#include "plain_losses.hpp"
#include "solver/sequential_dual.hpp"

using namespace polymargin;
using fixtures::LinearProblem;

namespace {

// A solver that does not end fails its test.
constexpr double kTimeLimit = 10.0;

/// A solver and all that it stands on.
template <class Loss, class Real>
struct Setup {
    const LinearProblem& problem;
    Loss loss;
    DataView data;
    double weight;
    Control control;
    ThreadPool pool;
    Blas blas = plain::blas();
    LinearRows<Real> rows;
    ProximalNewton<Loss, Real> solver;

    Setup(const Loss& l, const LinearProblem& p, double w, int threads = 2, double seconds = kTimeLimit)
        : problem(p),
          loss(l),
          data(p.csr.view()),
          weight(w),
          control(seconds),
          pool(threads),
          rows(data, p.order, {}),
          solver(loss, p.labels, p.cost_bounds, p.classes, rows, w, false, {}, blas, pool, control) {}

    Status run(double gap, Index max_visits = -1) {
        solver.start(Coefficients(problem.size()), {});
        return solver.run(gap, max_visits);
    }
    [[nodiscard]] std::vector<double> coefficients() {
        return fixtures::rows_of(solver.coefficients(), problem.classes);
    }
    void check_feasible() { fixtures::check_feasible(loss, problem, coefficients()); }
    /// Of the weights, by plain loops.
    [[nodiscard]] double primal() const {
        const PrimalPoint point = solver.point();
        double sum = 0.0;
        for (const double w : point.weights) sum += 0.5 * w * w;
        for (const double b : point.bias) sum += weight > 0.0 ? 0.5 * b * b / weight : 0.0;
        for (Index i = 0; i < problem.size(); ++i) {
            std::vector<double> scores = point.bias;
            for (Index f = 0; f < problem.x.columns; ++f) {
                for (Index m = 0; m < problem.classes; ++m) {
                    scores[m] += problem.x.at(problem.order[i], f) * point.weights[f * problem.classes + m];
                }
            }
            sum += problem.cost_bounds[i] * loss.loss(scores, problem.labels[i]);
        }
        return sum;
    }
    /// Of the coefficients, by plain loops.
    [[nodiscard]] double dual() {
        const auto all = coefficients();
        const auto weights = problem.weights(all);
        double sum = 0.0;
        for (const double w : weights.values) sum -= 0.5 * w * w;
        for (Index m = 0; m < problem.classes; ++m) {
            double column = 0.0;
            for (Index i = 0; i < problem.size(); ++i) {
                const double b = all[i * problem.classes + m];
                column += b;
                sum -= loss.offsets(problem.labels[i])[m] * b;
            }
            sum -= 0.5 * weight * column * column;
        }
        return sum;
    }
    /// The optimum, from below, by the sequential method.
    [[nodiscard]] double optimum() {
        LinearRows<double> exact(data, problem.order, {});
        SequentialDual<Loss, double> other(loss, problem.labels, problem.cost_bounds, problem.classes, exact, {},
                                           control);
        other.set_bias(weight, {});
        const LinearData linear{data, problem.order, problem.labels, problem.cost_bounds, problem.classes};
        LinearState state;
        for (int round = 0; round < 100; ++round) {
            CHECK(other.run(1e-10) == Status::converged);
            state = evaluate(loss, linear, other.coefficients(), weight, {}, {});
            if (state.gap() <= 1e-9) break;
            other.set_weights(state.weights);
        }
        CHECK(state.gap() <= 1e-9);
        return state.objectives.dual;
    }
};

}  // namespace

TEST(weights_and_coefficients_meet_at_the_optimum) {
    const LinearProblem problem(4, 400, 9, 0.5, 11);
    fixtures::for_row_losses([&](const auto& loss) {
        for (const double weight : {0.0, 1.0}) {
            Setup<std::decay_t<decltype(loss)>, double> setup(loss, problem, weight);
            CHECK(setup.run(1e-7) == Status::converged);
            setup.check_feasible();
            const double primal = setup.primal(), dual = setup.dual();
            CHECK(primal >= dual && primal - dual <= 1.01e-7 * primal);
            CHECK_CLOSE(dual, setup.optimum(), 1e-7 * primal);
            // What lies between the two points is a part of the gap.
            const auto weights = problem.weights(setup.coefficients());
            const auto point = setup.solver.point();
            double apart = 0.0;
            for (std::size_t e = 0; e < weights.values.size(); ++e) {
                apart += 0.5 * (weights.values[e] - point.weights[e]) * (weights.values[e] - point.weights[e]);
            }
            CHECK(apart <= primal - dual + 1e-9 * primal);
        }
    });
}

TEST(single_precision_is_enough_for_common_gaps) {
    const LinearProblem problem(3, 600, 12, 1.0, 12, 10.0);
    fixtures::for_row_losses([&](const auto& loss) {
        Setup<std::decay_t<decltype(loss)>, float> setup(loss, problem, 1.0);
        CHECK(setup.run(1e-4) == Status::converged);
        setup.check_feasible();
        CHECK(setup.primal() - setup.dual() <= 1.1e-4 * setup.primal());
    });
}

TEST(rows_of_very_different_lengths_do_no_harm) {
    LinearProblem problem(3, 500, 10, 0.6, 13);
    for (Index i = 0; i < problem.size(); i += 50) {
        for (Index f = 0; f < problem.x.columns; ++f) problem.x.at(problem.order[i], f) *= 100.0;
    }
    problem.csr = decltype(problem.csr)(problem.x);
    Setup<CrammerSinger, double> setup({}, problem, 0.0);
    CHECK(setup.run(1e-5) == Status::converged);
    CHECK(setup.primal() - setup.dual() <= 1.01e-5 * setup.primal());
}

TEST(another_start_leads_to_the_same_weights) {
    const LinearProblem problem(4, 400, 9, 0.5, 14);
    Setup<WestonWatkins, double> cold(WestonWatkins(), problem, 0.0), warm(WestonWatkins(), problem, 0.0);
    CHECK(cold.run(1e-9) == Status::converged);
    fixtures::Random random(1);
    const auto rows = fixtures::feasible_rows(WestonWatkins(), problem, random);
    warm.solver.start(fixtures::coefficients_of(rows, 4), {});
    CHECK(warm.solver.run(1e-9, -1) == Status::converged);
    const auto one = cold.solver.point().weights, other = warm.solver.point().weights;
    for (std::size_t e = 0; e < one.size(); ++e) CHECK_CLOSE(one[e], other[e], 1e-3);
}

TEST(newton_steps_do_not_depend_on_the_threads) {
    const LinearProblem problem(5, 700, 8, 0.7, 15);
    Setup<CrammerSinger, float> one({}, problem, 1.0, 1), three({}, problem, 1.0, 3);
    CHECK(one.run(1e-4) == Status::converged && three.run(1e-4) == Status::converged);
    CHECK(one.solver.point().weights == three.solver.point().weights);
    CHECK(one.coefficients() == three.coefficients());
    CHECK(one.solver.visits() == three.solver.visits());
}

TEST(a_stop_leaves_a_point_of_the_dual) {
    const LinearProblem problem(4, 400, 9, 0.5, 16);
    Setup<CrammerSinger, double> few({}, problem, 0.0), cancelled({}, problem, 0.0);
    CHECK(few.run(1e-9, 5000) == Status::max_iterations);
    CHECK(few.solver.visits() >= 5000);
    few.check_feasible();
    CHECK(few.dual() > 0.0 && few.primal() >= few.dual());
    cancelled.control.cancel();
    CHECK(cancelled.run(1e-9) == Status::stopped);
    cancelled.check_feasible();
}

TEST(samples_grow_to_all_examples) {
    const LinearProblem problem(3, 4000, 6, 1.0, 17);
    const auto sizes =
        ProximalNewton<CrammerSinger, double>::samples(Setup<CrammerSinger, double>({}, problem, 0.0).rows);
    CHECK(sizes == (std::vector<Index>{1000, 4000}));
    fixtures::for_row_losses([&](const auto& loss) {
        for (const double weight : {0.0, 1.0}) {
            Setup<std::decay_t<decltype(loss)>, double> setup(loss, problem, weight);
            CHECK(setup.solver.grow(1e-6, -1) == Status::converged);
            setup.check_feasible();
            CHECK(setup.primal() >= setup.dual() && setup.primal() - setup.dual() <= 1.01e-6 * setup.primal());
        }
    });
}

TEST(a_stop_in_a_sample_leaves_points_of_all_examples) {
    const LinearProblem problem(3, 4000, 6, 1.0, 17);
    Setup<WestonWatkins, double> setup(WestonWatkins(), problem, 1.0);
    CHECK(setup.solver.grow(1e-6, 2000) == Status::max_iterations);
    setup.check_feasible();
    CHECK(setup.dual() >= 0.0);
    // Nobody has seen all examples yet.
    CHECK(setup.solver.visits() < problem.size());
}

TEST(without_time_there_is_the_answer_of_the_first_sample) {
    const LinearProblem problem(3, 4000, 6, 1.0, 17);
    fixtures::for_row_losses([&](const auto& loss) {
        Setup<std::decay_t<decltype(loss)>, double> whole(loss, problem, 1.0), late(loss, problem, 1.0, 2, 0.0),
            cancelled(loss, problem, 1.0);
        CHECK(whole.solver.grow(1e-6, -1) == Status::converged);
        CHECK(late.solver.grow(1e-6, -1) == Status::time_limit);
        CHECK(late.solver.visits() < whole.solver.visits());
        CHECK(late.primal() < 1.1 * whole.primal());
        late.check_feasible();
        cancelled.control.cancel();
        CHECK(cancelled.solver.grow(1e-6, -1) == Status::stopped);
        CHECK(cancelled.solver.visits() < late.solver.visits());
    });
}

TEST(no_more_is_read_than_the_samples_need) {
    const LinearProblem problem(3, 4000, 6, 1.0, 17);
    Setup<WestonWatkins, double> whole(WestonWatkins(), problem, 1.0);
    CHECK(whole.solver.grow(1e-6, -1) == Status::converged);
    for (const Index visits : {2000, -1}) {
        auto rows = LinearRows<double>::unread(whole.data, problem.order, {});
        ProximalNewton<WestonWatkins, double> solver(whole.loss, problem.labels, problem.cost_bounds, 3, rows, 1.0,
                                                     false, {}, whole.blas, whole.pool, whole.control);
        CHECK(solver.grow(1e-6, visits) == (visits < 0 ? Status::converged : Status::max_iterations));
        CHECK(rows.ready() == (visits < 0 ? 4000 : 1000));
        CHECK((solver.point().weights == whole.solver.point().weights) == (visits < 0));
    }
}

TEST(no_stop_leaves_a_point_that_is_worth_less_than_nothing) {
    const LinearProblem problem(3, 4000, 6, 1.0, 17);
    fixtures::for_row_losses([&](const auto& loss) {
        for (const Index visits : {1, 1500, 3000, 6000, 12000, 24000}) {
            Setup<std::decay_t<decltype(loss)>, double> setup(loss, problem, 1.0);
            (void)setup.solver.grow(1e-9, visits);
            setup.check_feasible();
            CHECK(setup.dual() >= 0.0);
        }
    });
}

TEST(newton_steps_are_for_few_features_and_many_examples) {
    const auto suits = [](Index examples, Index features, Index classes) {
        fixtures::Matrix x(examples, features);
        std::ranges::fill(x.values, 1.0);
        std::vector<Index> order(examples, 0);
        const LinearRows<float> rows(x.dense(), order, {});
        return ProximalNewton<CrammerSinger, float>::suits(rows, classes);
    };
    CHECK(suits(3000, 20, 3));
    CHECK(!suits(6000, 2000, 3));   // many features
    CHECK(!suits(3000, 1000, 20));  // not many examples for each
    CHECK(!suits(6000, 20, 30));    // more coefficients than data
    CHECK(!suits(6000, 90, 65));
}
