#include "machine/train_linear.hpp"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>

#include "kernel/points.hpp"
#include "linear/source.hpp"
#include "solver/solve_linear.hpp"
#include "support/buffer.hpp"

namespace polymargin {
namespace {

/// The examples in a random order, in which the solver keeps them in memory.
struct Shuffled {
    std::vector<Index> order, labels;
    std::vector<double> cost_bounds;
    std::vector<Index> place;  ///< of each of the caller's examples

    Shuffled(const LinearRequest& request, const Workers& workers) : place(request.order.size()) {
        std::vector<std::uint32_t> from(request.order.size());
        std::iota(from.begin(), from.end(), std::uint32_t{0});
        if (request.settings.shuffling) Shuffler(request.settings.seed)(std::span(from));
        order.resize(from.size());
        labels.resize(from.size());
        cost_bounds.resize(from.size());
        workers.for_parts(std::ssize(from), [&](Range part) {
            for (Index p = part.begin; p < part.end; ++p) {
                order[p] = request.order[from[p]];
                labels[p] = request.labels[from[p]];
                cost_bounds[p] = request.cost_bounds[from[p]];
                place[from[p]] = p;
            }
        });
    }
    [[nodiscard]] std::vector<Index> places_of(std::span<const Index> examples) const {
        std::vector<Index> places;
        for (const Index i : examples) places.push_back(place[i]);
        return places;
    }
};

/// Choose how to solve.
template <RowLoss Loss, class Real>
LinearSolution solve(const LinearTask<Loss>& task, LinearMethod method, LinearRows<Real>& rows,
                     const LinearTools& tools) {
    if (method == LinearMethod::sequential_dual) return LinearSolver<Loss, Real>(task, rows, tools).run();
    if constexpr (SimplexLoss<Loss>) {
        return solve_by_exponentiated_gradient(task, rows, tools);
    } else {
        throw std::invalid_argument("the exponentiated gradient method needs a loss with rows on a simplex");
    }
}

/// The rows of coefficients that are not zero, to start from.
struct Rows {
    std::vector<Index> support;
    std::vector<double> rows;

    Rows(const Coefficients& coefficients, Index classes) {
        for (Index i = 0; i < coefficients.rows(); ++i) {
            if (coefficients.row(i).empty()) continue;
            support.push_back(i);
            rows.resize(rows.size() + classes, 0.0);
            for (const auto& [m, b] : coefficients.row(i)) *(rows.end() - classes + m) = b;
        }
    }
};

/// Solve to the gap and then, where the violation counts, to ever finer ones until it is met.
template <RowLoss Loss, class Real>
LinearSolution solve_to_violation(LinearTask<Loss> task, const LinearRequest& request, LinearRows<Real>& rows,
                                  const LinearTools& tools) {
    LinearSolution solution = solve(task, request.method, rows, tools);
    const Index most = task.settings.max_visits;
    while (solution.status == Status::converged && solution.state.violation > request.violation) {
        const double reached = std::min(task.gap, solution.state.gap());
        task.gap = std::max(task.tuning.finest_gap, task.tuning.finer_for_violation * reached);
        const Rows start(solution.coefficients, task.problem.classes);
        const std::vector<double> bias = solution.state.bias;
        const Index visits = solution.visits;
        task.start_support = start.support;
        task.start_rows = start.rows;
        task.start_bias = bias;
        if (most >= 0) task.settings.max_visits = std::max<Index>(0, most - visits);
        LinearSolution finer = solve(task, request.method, rows, tools);
        finer.visits += visits;
        const bool stalls = !(finer.state.violation < solution.state.violation) && !(reached > task.tuning.finest_gap);
        solution = std::move(finer);
        if (stalls && solution.status == Status::converged) solution.status = Status::precision;
    }
    if (solution.state.violation <= request.violation && std::isfinite(request.violation)) {
        solution.status = Status::converged;
    }
    return solution;
}

/// Whether all classes are solved together by Newton's steps on samples.
template <class Loss, class Real>
bool begins_with_samples(const LinearRequest& request, const LinearRows<Real>& rows) {
    return request.method == LinearMethod::sequential_dual && request.start_support.empty() &&
           request.start_bias.empty() &&
           samples_grow<Loss>(request.settings, rows, request.classes, request.tuning.newton);
}

/// The classes of a separable machine are solved in groups: few, so that a visit does not cost much more for all its
/// classes than for one, but two at least, for two threads. Their number does not depend on that of the threads. All
/// are one group for Newton's steps on samples, whose passes over the examples the threads share.
template <class Loss, class Real>
std::vector<Range> groups_of(const LinearRequest& request, const LinearRows<Real>& rows) {
    const Index classes = request.classes, most = request.tuning.classes_in_group;
    if (!SeparableLoss<Loss> || classes < 2 || begins_with_samples<Loss>(request, rows)) return {{0, classes}};
    const Index count = std::max<Index>(2, (classes + most - 1) / most);
    std::vector<Range> groups;
    for (Index g = 0; g < count; ++g) groups.push_back({classes * g / count, classes * (g + 1) / count});
    return groups;
}

/// The coefficients of the caller's examples, of all groups of classes.
void gather_coefficients(std::span<const LinearSolution> parts, std::span<const Range> groups,
                         std::span<const Index> place, const Workers& workers, LinearReport& report) {
    const Index n = std::ssize(place);
    report.starts.assign(n + 1, 0);
    for (Index e = 0; e < n; ++e) {
        Index count = 0;
        for (const LinearSolution& part : parts) count += std::ssize(part.coefficients.row(place[e]));
        report.starts[e + 1] = report.starts[e] + count;
    }
    report.columns.resize(report.starts[n]);
    report.coefficients.resize(report.starts[n]);
    workers.for_parts(n, [&](Range range) {
        for (Index e = range.begin; e < range.end; ++e) {
            Index at = report.starts[e];
            for (std::size_t g = 0; g < parts.size(); ++g) {
                for (const auto& [column, value] : parts[g].coefficients.row(place[e])) {
                    report.columns[at] = groups[g].begin + column;
                    report.coefficients[at++] = value;
                }
            }
        }
    });
}

/// Put the parts of a machine together.
LinearReport report_of(std::vector<LinearSolution> parts, std::span<const Range> groups, const LinearRequest& request,
                       const Shuffled& examples, const Workers& workers) {
    LinearReport report;
    gather_coefficients(parts, groups, examples.place, workers, report);
    const Index k = request.classes, features = features_of(request.data);
    report.weights.resize(features * k);
    for (std::size_t g = 0; g < parts.size(); ++g) {
        const LinearSolution& part = parts[g];
        const Index width = groups[g].size();
        for (Index f = 0; f < features; ++f) {
            std::copy_n(part.state.weights.begin() + f * width, width,
                        report.weights.begin() + f * k + groups[g].begin);
        }
        report.intercept.insert(report.intercept.end(), part.state.bias.begin(), part.state.bias.end());
        report.objectives.primal += part.state.objectives.primal;
        report.objectives.dual += part.state.objectives.dual;
        report.violation = std::max(report.violation, part.state.violation);
        report.visits.insert(report.visits.end(), width, part.visits);
        if (report.status == Status::converged) report.status = part.status;
    }
    return report;
}

template <class Loss, class Real>
LinearReport solve_all(const LinearRequest& request, const Loss& loss, const Blas& blas, Control& control,
                       ThreadPool& pool) {
    const Workers workers{&pool, &control};
    const Shuffled examples(request, {.pool = &pool, .control = &control, .thorough = true});
    // With a free bias the origin is anywhere: in the middle of the examples the solver is fastest.
    std::vector<double> centre;
    if (request.bias == BiasKind::free) centre = polymargin::centre(request.data, request.order, workers);
    auto rows = LinearRows<Real>::unread(request.data, examples.order, workers, centre);
    if (!begins_with_samples<Loss>(request, rows)) rows.read_to(rows.size(), workers);
    const auto groups = groups_of<Loss>(request, rows);
    const auto start_support = examples.places_of(request.start_support);
    std::vector<LinearSolution> solutions(groups.size());
    // The certificate is for the point where the solver was stopped.
    const LinearTools tools{blas, control, {.pool = &pool, .control = &control, .thorough = true}};
    pool.for_each(std::ssize(groups), [&](Index g) {
        const auto [first, last] = groups[g];
        std::vector<Index> labels(examples.labels);
        for (Index& y : labels) y = y >= first && y < last ? y - first : -1;
        std::vector<double> start_rows, start_bias;
        for (std::size_t s = 0; s < start_support.size(); ++s) {
            const auto row = request.start_rows.begin() + static_cast<Index>(s) * request.classes;
            start_rows.insert(start_rows.end(), row + first, row + last);
        }
        if (!request.start_bias.empty()) {
            start_bias.assign(request.start_bias.begin() + first, request.start_bias.begin() + last);
        }
        SequentialSettings settings = request.settings;
        settings.seed += static_cast<std::uint64_t>(g);
        if (settings.max_visits >= 0)
            settings.max_visits = (settings.max_visits + std::ssize(groups) - 1) / std::ssize(groups);
        const LinearTask<Loss> task{
            .loss = loss,
            .problem = {request.data, examples.order, labels, examples.cost_bounds, last - first, centre},
            .bias = request.bias,
            .gap = request.gap,
            .settings = settings,
            .tuning = request.tuning,
            .start_support = start_support,
            .start_rows = start_rows,
            .start_bias = start_bias};
        solutions[g] = solve_to_violation(task, request, rows, tools);
    });
    LinearReport report = report_of(std::move(solutions), groups, request, examples, tools.workers);
    report.single_precision = std::is_same_v<Real, float>;
    return report;
}

/// Whether all numbers of a machine are far from the ends of single precision: coefficients are of the order of C, and
/// scores of that of C |x|^2.
bool moderate(const LinearRequest& request, const Workers& workers) {
    const double small = request.tuning.least_number, large = request.tuning.most_number;
    const auto [least, most] = std::ranges::minmax(request.cost_bounds);
    const Index n = std::ssize(request.order);
    const auto* dense = std::get_if<DenseView>(&request.data);
    std::vector<double> norms((n + Workers::kPart - 1) / Workers::kPart, 0.0);  // the largest of each part
    workers.for_parts(n, [&](Range part) {
        double& norm = norms[part.begin / Workers::kPart];
        for (Index i = part.begin; i < part.end; ++i) {
            if (dense != nullptr && i + kRowsAhead < part.end) fetch_row(*dense, request.order[i + kRowsAhead]);
            norm = std::max(norm, squared_length(request.data, request.order[i]));
        }
    });
    const double norm = norms.empty() ? 0.0 : std::ranges::max(norms);
    return least >= small && most <= large && norm <= large && (norm == 0.0 || norm >= small);
}

}  // namespace

LinearReport train_linear(const LinearRequest& request, const Blas& blas, Control& control) {
    if (!std::ranges::all_of(request.cost_bounds, [](double c) { return c > 0.0 && std::isfinite(c); })) {
        throw std::invalid_argument("C must be positive and finite for every example");
    }
    ThreadPool pool(request.threads);
    const bool large = std::ssize(request.order) * request.classes > request.tuning.small;
    // How small a gap the violation needs is not known.
    const bool by_gap = std::isinf(request.violation);
    const bool single =
        large && by_gap && request.gap >= request.tuning.single_gap && moderate(request, {&pool, &control});
    LinearReport report = std::visit(
        [&](const auto& loss) {
            using Loss = std::decay_t<decltype(loss)>;
            return single ? solve_all<Loss, float>(request, loss, blas, control, pool)
                          : solve_all<Loss, double>(request, loss, blas, control, pool);
        },
        request.loss);
    if (large) return_freed_memory();  // whoever keeps the answer may need as much again
    return report;
}

}  // namespace polymargin
