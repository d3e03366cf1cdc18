#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "solver/balance.hpp"
#include "solver/linear_task.hpp"

namespace polymargin {

/// The weights of some coefficients with the best bias for them.
template <ShiftableLoss Loss>
PrimalPoint best_point(const Loss& loss, const LinearData& problem, const Coefficients& coefficients,
                       const Workers& workers) {
    LinearState state;
    sum_up(loss, problem, coefficients, state, workers);
    const Index k = problem.classes, n = std::ssize(problem.order);
    std::vector<double> offset(k, 0.0), scores(k * n), bias;  // a class after the other
    for (Index f = 0; f < std::ssize(problem.centre); ++f) {
        for (Index m = 0; m < k; ++m) offset[m] -= problem.centre[f] * state.weights[f * k + m];
    }
    workers.for_parts(n, [&](Range range) {
        for (Index i = range.begin; i < range.end; ++i) {
            for (Index m = 0; m < k; ++m) scores[m * n + i] = offset[m];
            for_entries(problem.data, problem.order[i], [&](Index f, double v) {
                const double* w = state.weights.data() + f * k;
                for (Index m = 0; m < k; ++m) scores[m * n + i] += v * w[m];
            });
        }
    });
    for (Index m = 0; m < k; ++m) {
        const std::span own(scores.data() + m * n, static_cast<std::size_t>(n));
        bias.push_back(loss.best_shift(own, problem.labels, problem.cost_bounds, m));
    }
    return {std::move(state.weights), std::move(bias)};
}

/// A linear machine with a free bias, by the method of multipliers around the sequential dual method. After each step
/// the coefficients are balanced, so that they are a point of the dual, and the gap that counts is that of their
/// weights. Where the best bias for any weights is known, it is taken: it need not come from the sums.
template <RowLoss Loss, class Real>
class LinearFreeBias {
  public:
    LinearFreeBias(const LinearTask<Loss>& task, SequentialDual<Loss, Real>& solver, const Workers& workers)
        : task_(task), solver_(solver), workers_(workers), progressing_(task.tuning), wanted_(task.tuning.inner_gap) {}

    /// `scale` is the weight that the bias has at first, `shift` where it starts.
    LinearSolution run(double scale, std::vector<double> shift) {
        const auto result = solve_by_multipliers(*this, scale, std::move(shift), task_.tuning.multipliers);
        solution_.status = result.status;
        solution_.visits = solver_.visits();
        return std::move(solution_);
    }

    // What the method of multipliers asks, `BiasedProblem`.
    Status solve(double weight, const std::vector<double>& shift, double) {
        solver_.set_bias(weight, shift);
        return solver_.run(wanted_);
    }
    [[nodiscard]] std::vector<double> sums() const { return {solver_.sums().begin(), solver_.sums().end()}; }
    [[nodiscard]] std::vector<double> bias() const {
        std::vector<double> bias(solver_.bias().begin(), solver_.bias().end());
        if constexpr (kScoresSumToZero<Loss>) take_mean_away(bias);  // a large weight makes much of rounding
        return bias;
    }
    std::optional<Status> judge(const std::vector<double>& shift, double, Status status) {
        measure(shift, status);
        const double gap = solution_.state.gap();
        if (status != Status::converged || gap <= task_.gap) return status;
        if (!progressing_(gap)) return Status::precision;
        LinearState state;
        sum_up(task_.loss, task_.problem, solver_.coefficients(), state, workers_);
        solver_.set_weights(state.weights);
        const LinearSettings& tuning = task_.tuning;
        wanted_ = std::min(wanted_, std::max(tuning.inner_share * gap, tuning.last_share * task_.gap));
        if (gap > 0.5 * best_) wanted_ = std::max(tuning.inner_finer * wanted_, tuning.finest_inner_gap);
        best_ = std::min(best_, gap);
        return std::nullopt;
    }
    Status give_up(const std::vector<double>&) { return Status::precision; }

  private:
    /// The coefficients in balance, with the best bias; if the solver was stopped with its own, from which it can go
    /// on.
    void measure(const std::vector<double>& shift, Status status) {
        std::optional<PrimalPoint> point;
        if constexpr (ShiftableLoss<Loss>) {
            solution_.coefficients =
                balanced<Loss>(task_.problem, with_free_moved(task_.loss, task_.problem, solver_.coefficients()));
            if (status == Status::converged) {
                point = best_point(task_.loss, task_.problem, solution_.coefficients, workers_);
            }
        } else {
            solution_.coefficients = balanced<Loss>(task_.problem, solver_.coefficients());
        }
        solution_.state = evaluate(task_.loss, task_.problem, solution_.coefficients, 0.0, shift, workers_,
                                   point ? &*point : nullptr);
    }

    const LinearTask<Loss>& task_;
    SequentialDual<Loss, Real>& solver_;
    const Workers& workers_;
    GapProgress<Real> progressing_;
    LinearSolution solution_;
    double wanted_, best_ = std::numeric_limits<double>::infinity();
};

}  // namespace polymargin
