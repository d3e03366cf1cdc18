#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "solver/balance.hpp"
#include "solver/linear_task.hpp"

namespace polymargin {

/// A linear machine with a free bias, by the method of multipliers around the sequential dual method. After each step
/// the coefficients are balanced, so that they are a point of the dual, and the gap that counts is theirs.
template <RowLoss Loss, class Real>
class LinearFreeBias {
  public:
    LinearFreeBias(const LinearTask<Loss>& task, SequentialDual<Loss, Real>& solver, const Workers& workers)
        : task_(task), solver_(solver), workers_(workers), progressing_(task.tuning), wanted_(task.tuning.inner_gap) {}

    /// `scale` is the largest squared length of an example, `shift` where b starts.
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
    [[nodiscard]] std::vector<double> bias() const { return {solver_.bias().begin(), solver_.bias().end()}; }
    std::optional<Status> judge(const std::vector<double>& shift, double, Status status) {
        solution_.coefficients = balanced<Loss>(task_.problem, solver_.coefficients());
        solution_.state = evaluate(task_.loss, task_.problem, solution_.coefficients, 0.0, shift, workers_);
        const double gap = solution_.state.gap();
        if (status != Status::converged || gap <= task_.gap) return status;
        if (!progressing_(gap)) return Status::precision;
        LinearState state;
        sum_up(task_.problem, solver_.coefficients(), state, workers_);
        solver_.set_weights(state.weights);
        const LinearSettings& tuning = task_.tuning;
        wanted_ = std::min(wanted_, tuning.inner_share * gap);
        if (gap > 0.5 * best_) wanted_ = std::max(tuning.inner_finer * wanted_, tuning.finest_inner_gap);
        best_ = std::min(best_, gap);
        return std::nullopt;
    }
    Status give_up(const std::vector<double>&) { return Status::precision; }

  private:
    const LinearTask<Loss>& task_;
    SequentialDual<Loss, Real>& solver_;
    const Workers& workers_;
    GapProgress<Real> progressing_;
    LinearSolution solution_;
    double wanted_, best_ = std::numeric_limits<double>::infinity();
};

}  // namespace polymargin
