#include "machine/train_joint.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "machine/low_rank_start.hpp"

namespace polymargin {
namespace {

template <class Loss, class Real>
JointReport report_of(const Decomposition<Loss, Real>& problem, const GramStore<Real>& store) {
    JointReport report;
    const Index k = problem.classes();
    const auto beta = problem.beta();
    for (Index i = 0; i < problem.size(); ++i) {
        bool used = false;
        for (Index m = 0; m < k; ++m) used = used || beta.at(m, i) != 0.0;
        if (!used) continue;
        report.support.push_back(i);
        for (Index m = 0; m < k; ++m) report.rows.push_back(beta.at(m, i));
    }
    const auto sums = problem.column_sums();
    const Bias& bias = problem.bias();
    for (Index m = 0; m < k; ++m) {
        const double part = bias.weight > 0.0 ? bias.weight * sums[m] : 0.0;
        report.intercept.push_back(part + (bias.shift.empty() ? 0.0 : bias.shift[m]));
    }
    report.objectives = problem.objectives();
    report.violation = problem.violation();
    report.iterations = problem.iterations();
    report.evaluations = store.evaluations();
    report.single_precision = std::is_same_v<Real, float>;
    report.whole_matrix = store.whole();
    return report;
}

/// Whether an answer is to be exact: because of the tolerance; because of weights, which are to count as so many
/// copies, so that bounds differ among the examples of a class; because a hard margin is there or is not; or because
/// there are so few examples that it costs nothing. Else to have it takes several times as long as a fit.
bool wants_exact(const JointProblem& request) {
    if (request.settings.tolerance <= request.polish.exact_tolerance) return true;
    if (std::ssize(request.labels) <= request.polish.few_examples) return true;
    std::vector<double> bounds(request.classes, 0.0);
    for (std::size_t i = 0; i < request.labels.size(); ++i) {
        double& bound = bounds[request.labels[i]];
        if (std::isinf(request.cost_bounds[i]) || (bound != 0.0 && bound != request.cost_bounds[i])) return true;
        bound = request.cost_bounds[i];
    }
    return false;
}

/// Polishing starts from a point whose coefficients are mostly at the right bounds: go on for a while first.
template <class Loss, class Real>
void polish(Decomposition<Loss, Real>& problem, const Blas& blas, bool free_bias, double tolerance,
            const PolishSettings& settings) {
    const Index steps = settings.more_steps * problem.iterations() + settings.few_steps;
    if (!free_bias) problem.run(settings.tolerance_share * tolerance, steps, settings.more_work * problem.work());
    JointPolisher<Loss, Real>(problem, blas, free_bias, settings).run();
}

/// Go on, by `solve(tolerance)`, until the gap is what was asked for.
template <class Loss, class Real, class Solve>
Status reach_gap(const Decomposition<Loss, Real>& problem, Status status, const JointProblem& request, Solve&& solve) {
    double tolerance = request.settings.tolerance;
    while (status == Status::converged && problem.objectives().gap() > request.settings.gap) {
        tolerance = finer_tolerance(tolerance, problem.violation(), request.closing);
        if (!(problem.violation() > tolerance)) return Status::precision;
        status = solve(tolerance);
    }
    return status;
}

/// A violation that is small enough may leave a large gap: try to close it, as long as that is cheap. What comes of it
/// is kept only if it meets the tolerance too.
template <class Loss, class Real>
void close_gap(Decomposition<Loss, Real>& problem, const GramStore<Real>& store, const JointProblem& request,
               const Blas& blas) {
    const GapSettings& closing = request.closing;
    const bool free_bias = request.bias == BiasKind::free;
    const auto is_open = [&] { return problem.objectives().gap() > closing.open; };
    if (!is_open()) return;
    if (store.whole()) JointPolisher<Loss, Real>(problem, blas, free_bias, request.polish).run();
    if (free_bias) return;  // steps would change the sums of the columns
    const auto met = problem.snapshot();
    double tolerance = request.settings.tolerance;
    auto left = static_cast<Index>(closing.more_steps * static_cast<double>(problem.iterations()) + closing.few_steps);
    for (Status status = Status::converged; status == Status::converged && left > 0 && is_open();) {
        tolerance = finer_tolerance(tolerance, problem.violation(), closing);
        if (!(problem.violation() > tolerance)) break;
        const Index before = problem.iterations();
        status = problem.run(tolerance, left);
        left -= problem.iterations() - before;
    }
    if (problem.violation() > request.settings.tolerance) problem.restore(met);
}

/// How a machine ended, by what was asked for.
template <class Loss, class Real>
Status judged(const Decomposition<Loss, Real>& problem, Status status, const DecompositionSettings& settings) {
    if (status == Status::unbounded) return status;
    if (!settings.gap_counts) return problem.violation() <= settings.tolerance ? Status::converged : status;
    if (problem.objectives().gap() <= settings.gap) return Status::converged;
    return status == Status::converged ? Status::precision : status;
}

/// Have the whole matrix if there may be one, else room for as many rows as a working set needs.
template <class Real>
void prepare(GramStore<Real>& store, DecompositionSettings& settings) {
    const Index n = store.size();
    if (n <= kWholeLimit && GramStore<Real>::square_bytes(n) <= store.budget()) {
        if (!store.whole()) {
            store.clear();
            store.compute_whole();
        }
        settings.working_set = std::max(settings.working_set, settings.whole_working_set);
        settings.entrants = std::max(settings.entrants, settings.whole_entrants);
    } else {
        store.clear();  // rows need the whole budget
        settings.working_set = std::min(settings.working_set, store.capacity(n + 2 * padded<Real>(1)));
        if (settings.working_set < 2) throw std::invalid_argument("cache_size is too small: not two kernel rows fit");
    }
}

template <class Loss, class Real>
JointReport solve_joint(const JointProblem& request, const Loss& loss, GramStore<Real>& store,
                        const Points<Real>& points, const Blas& blas, Control& control) {
    const Index before = store.evaluations();
    const bool free_bias = request.bias == BiasKind::free;
    DecompositionSettings settings = request.settings;
    settings.blas = &blas;
    prepare(store, settings);
    const bool exact = request.refine && store.whole() && store.size() <= kSmallProblem && wants_exact(request);
    // Of a proximal step it would say nothing; and what is solved to rounding is not to stop before.
    if (free_bias || (exact && settings.gap_counts)) settings.gap = 0.0;
    // Whoever limits steps or work wants to see what they do.
    const bool limited = settings.max_iterations >= 0 || std::isfinite(settings.max_work);
    JointStart start{request.start_support, request.start_rows, request.start_bias};
    if (!limited) {
        if (auto nearer = low_rank_start(request, store, blas, control)) start = std::move(*nearer);
    }
    Decomposition<Loss, Real> problem(loss, request.labels, request.cost_bounds, request.classes, store, settings,
                                      control);
    if (!start.support.empty()) problem.start_from(start.support, start.rows);
    Index bias_steps = 0;
    bool balanced = true;
    const double unit = std::abs(store.engine().kernel().diagonal(points.max_norm()));
    TakeoverSettings takeover = request.takeover;
    if (limited) takeover.most = 0;
    JointSolver<Loss, Real> solver(problem, store, blas, control, unit, free_bias, takeover);
    const auto solve = [&](double tolerance) {
        if (!free_bias) return solver.run(tolerance);
        FreeBias<Loss, Real> free(problem, unit, request.free_bias, [&](double wanted) { return solver.run(wanted); });
        const Status status = free.run(tolerance, start.bias);
        start.bias = problem.bias().shift;
        bias_steps += free.steps();
        balanced = free.balanced();
        return status;
    };
    if (request.bias == BiasKind::regularized) problem.set_bias({1.0, {}});
    Status status = solve(settings.tolerance);
    if (status == Status::converged && exact) {
        polish(problem, blas, free_bias, settings.tolerance, request.polish);
    } else if (status == Status::converged && request.refine && !settings.gap_counts) {
        close_gap(problem, store, request, blas);
    }
    if (settings.gap_counts) status = reach_gap(problem, status, request, solve);
    JointReport report = report_of(problem, store);
    report.evaluations -= before;
    report.status = judged(problem, status, request.settings);
    report.bias_steps = bias_steps;
    report.interior_point = solver.took_over();
    // A dual point that is not feasible bounds nothing; the zero point always does.
    if (!balanced) report.objectives.dual = 0.0;
    return report;
}

}  // namespace

JointReport train_joint(KernelSession& session, const JointProblem& problem, Control& control) {
    session.check(problem.cost_bounds, problem.settings.tolerance);
    return session.run(control, [&](auto& store, const auto& points) {
        return std::visit(
            [&](const auto& loss) -> JointReport {
                if constexpr (MulticlassLoss<std::decay_t<decltype(loss)>>) {
                    return solve_joint(problem, loss, store, points, session.blas(), control);
                } else {
                    throw std::invalid_argument("the classes of this loss are problems of their own, for `train`");
                }
            },
            problem.loss);
    });
}

JointReport train_joint(const JointRequest& request, const Blas& blas, Control& control) {
    KernelSession session(request, Exactness::of(request.cost_bounds, request.settings.tolerance), blas);
    return train_joint(session, request, control);
}

}  // namespace polymargin
