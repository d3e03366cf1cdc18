#pragma once

#include <algorithm>

#include "solver/linear_task.hpp"

namespace polymargin {

/// Solve for a bias that is part of the weights, or for none. The solver's own guess of the gap says when to look; what
/// counts is the gap recomputed from the coefficients, in double. `again` gets what was found when it is not enough.
template <class Real, RowLoss Loss, class Solver, class Again>
LinearSolution solve_bounded(const LinearTask<Loss>& task, Solver& solver, const Workers& workers, Again&& again) {
    LinearSolution solution;
    GapProgress<Real> progressing(task.tuning);
    double wanted = task.gap;
    while (true) {
        solution.status = solver.run(wanted);
        solution.coefficients = solver.coefficients();
        solution.state = evaluate(task.loss, task.problem, solution.coefficients, task.bias_weight(), {}, workers);
        solution.visits = solver.visits();
        if (solution.status != Status::converged || solution.state.gap() <= task.gap) return solution;
        if (!progressing(solution.state.gap())) {
            solution.status = Status::precision;
            return solution;
        }
        again(solution.state);
        wanted = std::max(task.tuning.finest_share * task.gap, task.tuning.finer * wanted);
    }
}

template <SimplexLoss Loss, class Real>
LinearSolution solve_by_exponentiated_gradient(const LinearTask<Loss>& task, const LinearRows<Real>& rows,
                                               const LinearTools& tools) {
    if (tools.control.stop_requested()) {  // the rows may not all be there
        LinearSolution solution;
        solution.coefficients = Coefficients(rows.size());
        solution.status = stop_reason(tools.control);
        solution.state =
            evaluate(task.loss, task.problem, solution.coefficients, task.bias_weight(), {}, tools.workers);
        return solution;
    }
    auto settings = task.tuning.exponentiated_gradient;
    settings.max_visits = task.settings.max_visits;
    settings.seed = task.settings.seed;
    ExponentiatedGradient<Loss, Real> solver(task.loss, task.problem.labels, task.problem.cost_bounds,
                                             task.problem.classes, rows, settings, tools.control);
    solver.start(task.bias_weight());
    return solve_bounded<Real>(task, solver, tools.workers, [](const LinearState&) {});
}

}  // namespace polymargin
