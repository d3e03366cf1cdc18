#include "solver/sequential_dual.hpp"

#include "check.hpp"
#include "fixtures.hpp"
#include "linear_problems.hpp"
#include "plain_losses.hpp"

using namespace polymargin;
using fixtures::LinearProblem;
using fixtures::Random;

namespace {

// A solver that does not end fails its test.
constexpr double kTimeLimit = 5.0;

/// A solver and all that it stands on.
template <class Loss, class Real>
struct Setup {
    const LinearProblem& problem;
    DataView data;
    Loss loss;
    Control control{kTimeLimit};
    LinearRows<Real> rows;
    ThreadPool pool;
    SequentialDual<Loss, Real> solver;

    Setup(const Loss& l, const LinearProblem& p, const SequentialSettings& settings, int threads = 1)
        : problem(p),
          data(p.x.dense()),
          loss(l),
          rows(data, p.order, {}),
          pool(threads),
          solver(loss, p.labels, p.cost_bounds, p.classes, rows, settings, control, &pool) {}

    [[nodiscard]] LinearState state(double weight, std::span<const double> shift = {}) const {
        const LinearData linear{data, problem.order, problem.labels, problem.cost_bounds, problem.classes};
        return evaluate(loss, linear, solver.coefficients(), weight, shift, {});
    }
    /// Go on until the true gap, of which the shift is a part, is at most `gap`: square + losses + (offset + shift)'B.
    void solve(double gap, double weight, std::span<const double> shift = {}) {
        solver.set_bias(weight, shift);
        for (int round = 0; round < 200; ++round) {
            CHECK(solver.run(gap) == Status::converged);
            const auto s = state(weight, shift);
            double left = s.objectives.primal - s.objectives.dual;
            for (Index m = 0; m < std::ssize(shift); ++m) left += shift[m] * s.sums[m];
            CHECK(left >= -1e-10 * s.objectives.primal);
            if (left <= gap * s.objectives.primal) return;
            solver.set_weights(s.weights);
        }
        CHECK(!"the gap is closed");
    }
    [[nodiscard]] std::vector<double> coefficients() const {
        return fixtures::rows_of(solver.coefficients(), problem.classes);
    }
    void check_feasible() const { fixtures::check_feasible(loss, problem, coefficients()); }
    void check_sums(double weight, std::span<const double> shift = {}) const {
        const auto s = state(weight, shift);
        for (Index m = 0; m < problem.classes; ++m) {
            CHECK_CLOSE(solver.sums()[m], s.sums[m], 1e-9);
            CHECK_CLOSE(solver.bias()[m], s.bias[m], 1e-9);
        }
    }
};

template <class Real>
void check_solved(const LinearProblem& problem, double gap) {
    fixtures::for_row_losses([&](const auto& loss) {
        using Loss = std::decay_t<decltype(loss)>;
        for (const double weight : {0.0, 1.0}) {
            Setup<Loss, Real> setup(loss, problem, {});
            setup.solve(gap, weight);
            setup.check_feasible();
            setup.check_sums(weight);
            CHECK(std::isfinite(setup.solver.guessed_gap()) && setup.solver.violation() >= 0.0);
        }
    });
}

}  // namespace

TEST(one_example_after_the_other_solves_linear_problems) {
    for (const Index k : {2, 5}) {
        const LinearProblem problem(k, 80, 8, k == 2 ? 1.0 : 0.4, 361);
        check_solved<float>(problem, 1e-2);
        check_solved<double>(problem, 1e-2);
        check_solved<double>(problem, 1e-6);
    }
}

TEST(many_classes_are_changed_by_lists) {
    // More than those of which whole rows of weights are always written.
    const LinearProblem problem(70, 110, 12, 0.5, 362, 0.2);
    static_assert(Weights<float>::kFew < 70 && Weights<double>::kFew < 70);
    check_solved<float>(problem, 1e-2);
    check_solved<double>(problem, 1e-4);
}

TEST(a_shift_is_a_linear_term) {
    Random random(363);
    const LinearProblem problem(4, 120, 8, 1.0, 364);
    std::vector<double> shift(4);
    for (double& s : shift) s = random.normal();
    fixtures::for_row_losses([&](const auto& loss) {
        using Loss = std::decay_t<decltype(loss)>;
        Setup<Loss, double> setup(loss, problem, {});
        setup.solve(0.1, 2.0);
        setup.solver.set_bias(2.0, shift);  // on the way
        setup.check_sums(2.0, shift);
        setup.solve(1e-9, 2.0, shift);
        setup.check_feasible();
        setup.check_sums(2.0, shift);
        // By the violation too, which knows nothing of objectives.
        CHECK(setup.state(2.0, shift).violation <= 1e-2);
    });
}

TEST(starts_are_made_feasible_and_followed_by_the_weights) {
    Random random(365);
    const LinearProblem problem(3, 100, 6, 0.4, 366);
    fixtures::for_row_losses([&](const auto& loss) {
        using Loss = std::decay_t<decltype(loss)>;
        std::vector<Index> support;
        std::vector<double> rows;
        for (Index i = 0; i < 100; i += 1 + random.below(3)) {
            support.push_back(i);
            for (Index m = 0; m < 3; ++m) rows.push_back(2 * random.normal());
        }
        Setup<Loss, double> setup(loss, problem, {});
        setup.solver.start_from(support, rows);
        setup.check_feasible();
        setup.solver.set_bias(1.0, {});
        setup.check_sums(1.0);
        setup.solver.set_weights(setup.state(1.0).weights);
        setup.solve(1e-7, 1.0);
        setup.check_feasible();
        setup.check_sums(1.0);
    });
}

TEST(every_visit_makes_the_dual_larger) {
    const LinearProblem problem(4, 130, 6, 0.4, 367);
    fixtures::for_row_losses([&](const auto& loss) {
        using Loss = std::decay_t<decltype(loss)>;
        double before = 0.0;
        for (Index visits = 64; visits <= 640; visits += 64) {
            Setup<Loss, double> setup(loss, problem, {.max_visits = visits});
            setup.solver.set_bias(1.0, {});
            if (setup.solver.run(0.0) != Status::max_iterations) break;
            // The end is looked for now and then.
            CHECK(setup.solver.visits() >= visits && setup.solver.visits() < visits + 64);
            const double dual = setup.state(1.0).objectives.dual;
            CHECK(dual > before - 1e-12 * before);
            before = dual;
        }
        CHECK(before > 0.0);
    });
}

TEST(the_mean_of_the_weights_is_better_than_the_last_ones) {
    const LinearProblem problem(3, 2000, 30, 3.0, 5);
    fixtures::for_row_losses([&](const auto& loss) {
        SequentialSettings settings;
        settings.max_visits = 3 * problem.size();
        settings.shrinking = false;
        settings.mean = true;
        Setup<std::decay_t<decltype(loss)>, double> setup(loss, problem, settings);
        setup.solver.set_bias(1.0, {});
        CHECK(setup.solver.run(1e-9) == Status::max_iterations);
        const LinearData linear{setup.data, problem.order, problem.labels, problem.cost_bounds, problem.classes};
        const PrimalPoint mean = setup.solver.mean_point();
        const LinearState at_mean = evaluate(loss, linear, setup.solver.coefficients(), 1.0, {}, {}, &mean);
        CHECK(at_mean.objectives.primal < setup.state(1.0).objectives.primal);
    });
}

TEST(steps_of_alike_examples_made_together_are_shortened) {
    // Few features, so that a step of each of a batch goes much too far.
    const LinearProblem problem(4, 130, 2, 1.0, 369);
    fixtures::for_row_losses([&](const auto& loss) {
        using Loss = std::decay_t<decltype(loss)>;
        double before = 0.0;
        for (Index loops = 1; loops <= 10; ++loops) {
            const Index visits = loops * problem.size();
            Setup<Loss, double> setup(loss, problem,
                                      {.max_visits = visits,
                                       .shrinking = false,
                                       .batch_share = 1.0,
                                       .worth_waking = 0.0,
                                       .probes = 256,
                                       .coupling_to_grow = 1e9,
                                       .coupling_to_shrink = 1e9});
            setup.solver.set_bias(1.0, {});
            if (setup.solver.run(0.0) != Status::max_iterations) break;
            CHECK(setup.solver.visits() == visits);
            setup.check_feasible();
            setup.check_sums(1.0);
            const double dual = setup.state(1.0).objectives.dual;
            CHECK(dual > before - 1e-12 * before);
            before = dual;
        }
        CHECK(before > 0.0);
        Setup<Loss, double> setup(loss, problem, {.batch_share = 1.0, .worth_waking = 0.0});
        setup.solve(1e-6, 1.0);
    });
}

TEST(any_number_of_threads_makes_the_same_steps) {
    for (const double density : {0.3, 1.0}) {  // sparse rows, whose weights are in two parts, and dense ones
        const LinearProblem problem(6, 500, 20, density, 370);
        fixtures::for_row_losses([&](const auto& loss) {
            using Loss = std::decay_t<decltype(loss)>;
            const auto solve = [&](int threads) {
                Setup<Loss, float> setup(loss, problem, {.batch_share = 0.2, .worth_waking = 0.0}, threads);
                setup.solve(1e-2, 1.0);
                return setup.coefficients();
            };
            const auto alone = solve(1);
            CHECK(alone == solve(2));
            CHECK(alone == solve(3));
        });
    }
}

TEST(orders_follow_from_the_seed) {
    const LinearProblem problem(4, 130, 6, 1.0, 368);
    fixtures::for_row_losses([&](const auto& loss) {
        using Loss = std::decay_t<decltype(loss)>;
        const auto solve = [&](std::uint64_t seed) {
            Setup<Loss, double> setup(loss, problem, {.seed = seed});
            setup.solve(1e-3, 1.0);
            return setup.coefficients();
        };
        const auto first = solve(1);
        CHECK(first == solve(1));
        CHECK(first != solve(2));
    });
}
