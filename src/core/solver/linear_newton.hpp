#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "solver/balance.hpp"
#include "solver/linear_task.hpp"
#include "support/buffer.hpp"

namespace polymargin {

/// Newton steps from some coefficients, after so many visits, or from nothing, on samples that grow. `weight` is that
/// of a bias that is part of the weights, or where a free one starts; `bias` becomes the one that was found, if it is
/// free. The status is `precision` if these steps do not get there.
template <NewtonLoss Loss, class Real>
LinearSolution finish_by_newton(const LinearTask<Loss>& task, std::optional<Coefficients> start, Index visits,
                                LinearRows<Real>& rows, double weight, std::vector<double>& bias,
                                const LinearTools& tools) {
    const bool free = task.bias == BiasKind::free;
    const auto evaluated = [&](const Coefficients& coefficients, const PrimalPoint* point) {
        return evaluate(task.loss, task.problem, coefficients, free ? 0.0 : weight, bias, tools.workers, point);
    };
    ProximalNewton<Loss, Real> newton(task.loss, task.problem.labels, task.problem.cost_bounds, task.problem.classes,
                                      rows, weight, free, task.tuning.newton, tools.blas, *tools.workers.pool,
                                      tools.control);
    const Index left = task.settings.max_visits < 0 ? -1 : task.settings.max_visits - visits;
    const bool grow = !start;
    if (start) newton.start(*std::exchange(start, std::nullopt), bias);
    return_freed_memory();
    LinearSolution solution;
    double wanted = task.gap;
    // What counts is recomputed.
    for (int attempt = 0; attempt < task.tuning.newton_attempts; ++attempt, wanted *= task.tuning.newton_finer) {
        solution.status = grow && attempt == 0 ? newton.grow(wanted, left) : newton.run(wanted, left);
        solution.coefficients = newton.coefficients();
        if (free) solution.coefficients = balanced<Loss>(task.problem, solution.coefficients);
        const PrimalPoint point = solution.status == Status::converged ? newton.point() : newton.best_point();
        if (free) bias = point.bias;
        solution.state = evaluated(solution.coefficients, &point);
        if (solution.status != Status::converged || solution.state.gap() <= task.gap) break;
        solution.status = Status::precision;
    }
    solution.visits = visits + newton.visits();
    if (solution.status == Status::converged) return solution;
    // Stopped somewhere on the way, the coefficients may be worth less than none.
    if (!(solution.state.objectives.dual >= 0.0)) {
        const PrimalPoint point = newton.best_point();
        solution.coefficients = Coefficients(rows.size());
        solution.state = evaluated(solution.coefficients, &point);
    }
    // And their weights may be the better ones.
    LinearState own = evaluated(solution.coefficients, nullptr);
    if (!(solution.state.objectives.primal <= own.objectives.primal)) solution.state = std::move(own);
    return solution;
}

/// Whether Newton's steps are for such a problem.
template <RowLoss Loss, class Real>
bool newton_suits(const SequentialSettings& settings, const LinearRows<Real>& rows, Index classes,
                  const NewtonSettings& newton) {
    if constexpr (NewtonLoss<Loss>) {
        return settings.newton && rows.size() >= settings.newton_from &&
               ProximalNewton<Loss, Real>::suits(rows, classes, newton);
    } else {
        return false;
    }
}

/// Whether the first examples are a sample of all, and there are enough for Newton's steps to begin with it.
template <RowLoss Loss, class Real>
bool samples_grow(const SequentialSettings& settings, const LinearRows<Real>& rows, Index classes,
                  const NewtonSettings& newton) {
    if constexpr (NewtonLoss<Loss>) {
        return settings.shuffling && newton_suits<Loss>(settings, rows, classes, newton) &&
               ProximalNewton<Loss, Real>::samples(rows, newton).size() > 1;
    } else {
        return false;
    }
}

/// Whether that is how a task is solved: with nothing better to start from.
template <RowLoss Loss, class Real>
bool begins_with_samples(const LinearTask<Loss>& task, const LinearRows<Real>& rows) {
    return task.start_support.empty() && task.start_bias.empty() &&
           samples_grow<Loss>(task.settings, rows, task.problem.classes, task.tuning.newton);
}

/// Come near by the sequential method and finish by Newton steps.
template <NewtonLoss Loss, class Real>
LinearSolution solve_by_newton(const LinearTask<Loss>& task, SequentialDual<Loss, Real>& solver, LinearRows<Real>& rows,
                               double weight, std::vector<double>& bias, const LinearTools& tools) {
    const bool free = task.bias == BiasKind::free;
    const Status status = solver.run(std::max(task.tuning.near_gap, task.gap), task.tuning.near_loops);
    if (free) bias.assign(solver.bias().begin(), solver.bias().end());
    if (status == Status::converged) {
        return finish_by_newton<Loss, Real>(task, solver.take_coefficients(), solver.visits(), rows, weight, bias,
                                            tools);
    }
    LinearSolution solution;
    solution.status = status;
    solution.visits = solver.visits();
    solution.coefficients = free ? balanced<Loss>(task.problem, solver.coefficients()) : solver.coefficients();
    solution.state = evaluate(task.loss, task.problem, solution.coefficients, free ? 0.0 : weight, bias, tools.workers);
    return solution;
}

}  // namespace polymargin
