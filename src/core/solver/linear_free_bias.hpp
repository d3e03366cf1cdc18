#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "solver/balance.hpp"
#include "solver/linear_task.hpp"

namespace polymargin {

/// What coefficients are worth with the best bias for their weights; all scores are computed once.
template <ShiftableLoss Loss>
LinearState evaluate_at_best_bias(const Loss& loss, const LinearData& problem, const Coefficients& coefficients,
                                  const Workers& workers) {
    const Index k = problem.classes, n = std::ssize(problem.order);
    LinearState state;
    sum_up(loss, problem, coefficients, state, workers);
    const double square = square_of(state.weights);
    PrimalPoint point = uncentred(problem, {std::move(state.weights), std::vector<double>(k, 0.0)});
    const PointScores scores_of(problem, point);
    std::vector<double> scores(n * k), shift(k);
    const auto row = [&](Index i) { return std::span(scores).subspan(i * k, k); };
    workers.for_parts(n, [&](Range range) {
        auto room = scores_of.room();
        for (Index i = range.begin; i < range.end; ++i) scores_of(i, room, row(i));
    });
    const auto find_shift = [&](Range one) {
        const Index m = one.begin;
        std::vector<double> own(n);
        for (Index i = 0; i < n; ++i) own[i] = scores[i * k + m];
        shift[m] = loss.best_shift(own, problem.labels, problem.cost_bounds, m);
    };
    workers.for_parts(k, find_shift, 1);
    std::vector<PartObjectives> parts((n + Workers::kPart - 1) / Workers::kPart);
    workers.for_parts(n, [&](Range range) {
        RowObjectives<Loss> rows(loss, problem, coefficients, scores_of);
        for (Index i = range.begin; i < range.end; ++i) rows.add(i, row(i), shift);
        parts[range.begin / Workers::kPart] = rows.sums();
    });
    set_objectives(state, parts, square, square);
    std::ranges::transform(point.bias, shift, shift.begin(), std::plus<>());
    state.weights = std::move(point.weights);
    state.bias = std::move(shift);
    return state;
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
        refresh_weights();
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
        const LinearData& problem = task_.problem;
        if constexpr (ShiftableLoss<Loss>) {
            solution_.coefficients =
                balanced<Loss>(problem, with_free_moved(task_.loss, problem, solver_.coefficients()));
            if (status == Status::converged) {
                solution_.state = evaluate_at_best_bias(task_.loss, problem, solution_.coefficients, workers_);
                return;
            }
        } else {
            solution_.coefficients = balanced<Loss>(problem, solver_.coefficients());
        }
        solution_.state = evaluate(task_.loss, problem, solution_.coefficients, 0.0, shift, workers_);
    }

    void refresh_weights() {
        LinearState state;
        sum_up(task_.loss, task_.problem, solver_.coefficients(), state, workers_);
        solver_.set_weights(state.weights);
    }

    const LinearTask<Loss>& task_;
    SequentialDual<Loss, Real>& solver_;
    const Workers& workers_;
    GapProgress<Real> progressing_;
    LinearSolution solution_;
    double wanted_, best_ = std::numeric_limits<double>::infinity();
};

}  // namespace polymargin
