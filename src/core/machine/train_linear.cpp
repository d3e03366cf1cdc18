#include "machine/train_linear.hpp"

#include <limits>
#include <numeric>
#include <stdexcept>

#include "kernel/points.hpp"
#include "solver/balance.hpp"
#include "solver/exponentiated_gradient.hpp"
#include "solver/linear_state.hpp"
#include "solver/proximal_newton.hpp"
#include "support/buffer.hpp"

namespace polymargin {
namespace {

/// Up to this many coefficients are solved for in double from the start: it costs next to nothing.
constexpr Index kSmall = 1 << 14;
/// Gaps that single precision can close.
constexpr double kSingleGap = 1e-5;
/// The sequential method is the fastest as far as this gap, or for so many loops; then Newton steps are, where they are
/// possible.
constexpr double kNear = 0.1, kNearLoops = 50.0;

/// The examples in a random order, in which the solver keeps them in memory.
struct Shuffled {
    std::vector<Index> order, labels;
    std::vector<double> upper;
    std::vector<Index> place;  ///< of each of the caller's examples

    explicit Shuffled(const LinearRequest& request) : place(request.order.size()) {
        std::vector<Index> from(request.order.size());
        std::iota(from.begin(), from.end(), Index{0});
        if (request.settings.shuffling) Shuffler(request.settings.seed)(std::span(from));
        for (std::size_t p = 0; p < from.size(); ++p) {
            order.push_back(request.order[from[p]]);
            labels.push_back(request.labels[from[p]]);
            upper.push_back(request.cost_bounds[from[p]]);
            place[from[p]] = static_cast<Index>(p);
        }
    }
    [[nodiscard]] std::vector<Index> places_of(std::span<const Index> examples) const {
        std::vector<Index> places;
        for (const Index i : examples) places.push_back(place[i]);
        return places;
    }
};

/// A machine, or the part of a machine that belongs to some of its classes.
template <class Loss>
struct Part {
    const LinearRequest& request;
    const Loss& loss;
    LinearData problem;
    SequentialSettings settings;
    std::span<const Index> start_support;
    std::span<const double> start_rows;
    std::span<const double> start_bias;
};

/// Whether a gap can still fall: not when it has not for a while and rounding may be the reason.
template <class Real>
class Progressing {
  public:
    bool operator()(double gap) {
        idle_ = gap < 0.999 * best_ ? 0 : idle_ + 1;
        best_ = std::min(best_, gap);
        return idle_ < kPatience || (std::is_same_v<Real, double> && gap > kRounding);
    }

  private:
    static constexpr double kRounding = 1e-12;
    static constexpr int kPatience = 50;
    double best_ = std::numeric_limits<double>::infinity();
    int idle_ = 0;
};

struct Solved {
    Coefficients coefficients{0};
    LinearState state;
    Index visits = 0;
    Status status = Status::converged;
};

/// Solve for a bias that is part of the weights, or for none. The solver's own guess of the gap says when to look; what
/// counts is the gap recomputed from the coefficients, in double. `again` gets what was found when it is not enough.
template <class Real, class Loss, class Solver, class Again>
Solved solve_bounded(const Part<Loss>& part, Solver& solver, double weight, const Workers& workers, Again&& again) {
    Solved solved;
    Progressing<Real> progressing;
    double wanted = part.request.gap;
    while (true) {
        solved.status = solver.run(wanted);
        solved.coefficients = solver.coefficients();
        solved.state = evaluate(part.loss, part.problem, solved.coefficients, weight, {}, workers);
        if (solved.status != Status::converged || solved.state.gap() <= part.request.gap) return solved;
        if (!progressing(solved.state.gap())) {
            solved.status = Status::precision;
            return solved;
        }
        again(solved.state);
        wanted = std::max(0.1 * part.request.gap, 0.9 * wanted);
    }
}

template <class Loss, class Real>
Solved solve_by_exponentiated_gradient(const Part<Loss>& part, const LinearRows<Real>& rows, double weight,
                                       Control& control, const Workers& workers) {
    if (control.stop_requested()) {  // the rows may not all be there
        Solved solved;
        solved.coefficients = Coefficients(rows.size());
        solved.status = stop_reason(control);
        solved.state = evaluate(part.loss, part.problem, solved.coefficients, weight, {}, workers);
        return solved;
    }
    ExponentiatedGradient<Loss, Real> solver(part.loss, part.problem.labels, part.problem.bounds, part.problem.classes,
                                             rows, part.settings.max_visits, part.settings.seed, control);
    solver.start(weight);
    Solved solved = solve_bounded<Real>(part, solver, weight, workers, [](const LinearState&) {});
    solved.visits = solver.visits();
    return solved;
}

/// A free bias to start from: that of a warm start, given for the examples as they are, for the examples without their
/// centre.
template <class Loss, class Real>
std::vector<double> starting_bias(const Part<Loss>& part, const SequentialDual<Loss, Real>& solver,
                                  const Workers& workers) {
    const Index k = part.problem.classes;
    if (part.start_bias.empty()) return std::vector<double>(k, 0.0);
    std::vector<double> bias(part.start_bias.begin(), part.start_bias.end());
    LinearState state;
    sum_up(part.problem, solver.coefficients(), state, workers);
    for (Index f = 0; f < std::ssize(part.problem.centre); ++f) {
        for (Index m = 0; m < k; ++m) bias[m] += part.problem.centre[f] * state.weights[f * k + m];
    }
    return bias;
}

struct Norms {
    double largest = 0.0, mean = 0.0;
};

/// Of the squared lengths of the rows; 1 if there is nothing but zeros.
template <class Real>
Norms norms_of(const LinearRows<Real>& rows) {
    Norms norms;
    for (Index i = 0; i < rows.size(); ++i) {
        norms.largest = std::max(norms.largest, rows.norm(i));
        norms.mean += rows.norm(i) / static_cast<double>(rows.size());
    }
    return norms.largest > 0.0 ? norms : Norms{1.0, 1.0};
}

/// Solve for a free bias by the method of multipliers: proximal steps on b, each a problem with a bias that is part of
/// the weights and a shift. Of each the coefficients are balanced, so that they are a point of the dual.
template <class Loss, class Real>
Solved solve_free(const Part<Loss>& part, SequentialDual<Loss, Real>& solver, double scale, std::vector<double> shift,
                  const Workers& workers) {
    constexpr double inner_share = 0.1, unchanged = 0.01, finest = 1e-14;
    Solved solved;
    Progressing<Real> progressing;
    double wanted = 0.1, weight = scale, last = std::numeric_limits<double>::infinity(), best = last;
    while (true) {
        solver.set_bias(weight, shift);
        solved.status = solver.run(wanted);
        shift.assign(solver.bias().begin(), solver.bias().end());
        solved.coefficients = balanced<Loss>(part.problem, solver.coefficients());
        solved.state = evaluate(part.loss, part.problem, solved.coefficients, 0.0, shift, workers);
        if (solved.status != Status::converged || solved.state.gap() <= part.request.gap) return solved;
        if (!progressing(solved.state.gap())) {
            solved.status = Status::precision;
            return solved;
        }
        // Sums that do not change at all mean that b is on its way to the next place where a coefficient moves.
        double residual = 0.0;
        for (const double s : solver.sums()) residual = std::max(residual, std::abs(s));
        weight = std::abs(residual - last) <= unchanged * residual ? 2.0 * weight : scale;
        last = residual;
        LinearState state;
        sum_up(part.problem, solver.coefficients(), state, workers);
        solver.set_weights(state.weights);
        // What an inner problem leaves open comes back as sums, of the order of its root: ask for more when it is in
        // the way.
        const double gap = solved.state.gap();
        wanted = std::min(wanted, inner_share * gap);
        if (gap > 0.5 * best) wanted = std::max(0.2 * wanted, finest);
        best = std::min(best, gap);
    }
}

/// Begin with some coefficients and their weights.
template <class Loss, class Real>
void start(SequentialDual<Loss, Real>& solver, const Part<Loss>& part, std::span<const Index> support,
           std::span<const double> rows, const Workers& workers) {
    solver.start_from(support, rows);
    LinearState state;
    sum_up(part.problem, solver.coefficients(), state, workers);
    solver.set_weights(state.weights);
}

template <class Loss, class Real>
void restart(SequentialDual<Loss, Real>& solver, const Part<Loss>& part, const Coefficients& coefficients,
             const Workers& workers) {
    std::vector<Index> support;
    std::vector<double> rows;
    for (Index i = 0; i < coefficients.rows(); ++i) {
        if (coefficients.row(i).empty()) continue;
        support.push_back(i);
        rows.resize(rows.size() + part.problem.classes, 0.0);
        for (const auto& [m, b] : coefficients.row(i)) *(rows.end() - part.problem.classes + m) = b;
    }
    start(solver, part, support, rows, workers);
}

/// Come near by the sequential method and finish by Newton steps. `precision` is the status if these do not get there.
/// `bias` becomes the one that was found, if it is free.
template <class Loss, class Real>
Solved solve_by_newton(const Part<Loss>& part, SequentialDual<Loss, Real>& solver, const LinearRows<Real>& rows,
                       double weight, std::vector<double>& bias, const Blas& blas, Control& control,
                       const Workers& workers) {
    constexpr int attempts = 4;
    constexpr double finer = 0.3;
    const bool free = part.request.bias == BiasKind::free;
    Solved solved;
    double wanted = part.request.gap;
    solved.status = solver.run(std::max(kNear, wanted), kNearLoops);
    solved.visits = solver.visits();
    if (free) bias.assign(solver.bias().begin(), solver.bias().end());
    const auto evaluated = [&](const PrimalPoint* point) {
        return evaluate(part.loss, part.problem, solved.coefficients, free ? 0.0 : weight, bias, workers, point);
    };
    if (solved.status != Status::converged) {
        solved.coefficients = free ? balanced<Loss>(part.problem, solver.coefficients()) : solver.coefficients();
        solved.state = evaluated(nullptr);
        return solved;
    }
    ProximalNewton<Loss, Real> newton(part.loss, part.problem.labels, part.problem.bounds, part.problem.classes, rows,
                                      weight, free, blas, *workers.pool, control);
    const Index left = part.settings.max_visits < 0 ? -1 : part.settings.max_visits - solved.visits;
    newton.start(solver.take_coefficients(), bias);
    return_freed_memory();
    // Its scores are rounded, and a free bias may still move: what counts is recomputed.
    for (int attempt = 0; attempt < attempts; ++attempt, wanted *= finer) {
        solved.status = newton.run(wanted, left);
        solved.coefficients = newton.coefficients();
        if (free) solved.coefficients = balanced<Loss>(part.problem, solved.coefficients);
        const PrimalPoint point = newton.point();
        if (free) bias = point.bias;
        solved.state = evaluated(&point);
        if (solved.status != Status::converged || solved.state.gap() <= part.request.gap) break;
        solved.status = Status::precision;
    }
    solver.count(newton.visits());
    solved.visits = solver.visits();
    if (solved.status == Status::converged) return solved;
    // Stopped somewhere on the way, the weights of the coefficients may be the better ones.
    LinearState own = evaluated(nullptr);
    if (!(solved.state.objectives.primal <= own.objectives.primal)) solved.state = std::move(own);
    return solved;
}

/// Go on in small steps where Newton's led no further; the better of the two answers.
template <class Loss, class Real, class GoOn>
Solved solve_the_rest(const Part<Loss>& part, SequentialDual<Loss, Real>& solver, Solved before, const Workers& workers,
                      GoOn&& go_on) {
    restart(solver, part, before.coefficients, workers);
    Solved after = go_on();
    if (after.status == Status::converged || after.state.gap() <= before.state.gap()) return after;
    before.status = after.status;
    before.visits = after.visits;
    return before;
}

template <class Loss, class Real>
Solved solve(const Part<Loss>& part, const LinearRows<Real>& rows, const Blas& blas, Control& control,
             ThreadPool& pool) {
    // The certificate is for the point where the solver was stopped.
    const Workers workers{.pool = &pool, .control = &control, .thorough = true};
    const double weight = part.request.bias == BiasKind::regularized ? 1.0 : 0.0;
    if (part.request.method == LinearMethod::exponentiated_gradient) {
        if constexpr (SimplexLoss<Loss>) {
            return solve_by_exponentiated_gradient(part, rows, weight, control, workers);
        }
        throw std::invalid_argument("the exponentiated gradient method needs a loss with rows on a simplex");
    }
    SequentialDual<Loss, Real> solver(part.loss, part.problem.labels, part.problem.bounds, part.problem.classes, rows,
                                      part.settings, control);
    if (!part.start_support.empty()) start(solver, part, part.start_support, part.start_rows, workers);
    const bool free = part.request.bias == BiasKind::free;
    const auto [largest, mean] = norms_of(rows);
    std::vector<double> shift = free ? starting_bias(part, solver, workers) : std::vector<double>{};
    const auto go_on = [&] {
        solver.set_bias(free ? largest : weight, shift);
        Solved solved = free ? solve_free(part, solver, largest, shift, workers)
                             : solve_bounded<Real>(part, solver, weight, workers, [&](const LinearState& state) {
                                   solver.set_weights(state.weights);
                               });
        solved.visits = solver.visits();
        return solved;
    };
    const bool newton = part.settings.newton && rows.size() >= part.settings.newton_from;
    if (!newton || !ProximalNewton<Loss, Real>::suits(rows, part.problem.classes)) return go_on();
    solver.set_bias(free ? largest : weight, shift);
    Solved solved = solve_by_newton(part, solver, rows, free ? mean : weight, shift, blas, control, workers);
    if (solved.status != Status::precision) return solved;
    return solve_the_rest(part, solver, std::move(solved), workers, go_on);
}

/// The classes of an uncoupled machine are solved in groups: few, so that a visit does not cost much more for all its
/// classes than for one, but two at least, for two threads. Their number does not depend on that of the threads.
std::vector<Range> groups_of(Index classes, bool separable) {
    if (!separable || classes < 2) return {{0, classes}};
    constexpr Index most = 32;
    const Index count = std::max<Index>(2, (classes + most - 1) / most);
    std::vector<Range> groups;
    for (Index g = 0; g < count; ++g) groups.push_back({classes * g / count, classes * (g + 1) / count});
    return groups;
}

/// Put the parts of a machine together.
LinearReport report_of(std::vector<Solved> parts, std::span<const Range> groups, const LinearRequest& request,
                       const Shuffled& examples) {
    LinearReport report;
    Index count = 0;
    for (const Solved& part : parts) {
        for (Index i = 0; i < part.coefficients.rows(); ++i) count += std::ssize(part.coefficients.row(i));
    }
    report.columns.reserve(count);
    report.coefficients.reserve(count);
    report.starts.reserve(examples.place.size() + 1);
    report.starts.push_back(0);
    for (const Index i : examples.place) {
        for (std::size_t g = 0; g < parts.size(); ++g) {
            for (const auto& [column, value] : parts[g].coefficients.row(i)) {
                report.columns.push_back(groups[g].begin + column);
                report.coefficients.push_back(value);
            }
        }
        report.starts.push_back(std::ssize(report.columns));
    }
    const Index k = request.classes, features = features_of(request.data);
    report.weights.resize(features * k);
    for (std::size_t g = 0; g < parts.size(); ++g) {
        const Solved& part = parts[g];
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
    const Shuffled examples(request);
    const Workers workers{&pool, &control};
    // With a free bias the origin is anywhere: in the middle of the examples the solver is fastest.
    std::vector<double> centre;
    if (request.bias == BiasKind::free) centre = polymargin::centre(request.data, request.order, workers);
    const LinearRows<Real> rows(request.data, examples.order, workers, centre);
    const auto groups = groups_of(request.classes, SeparableLoss<Loss>);
    const auto start_support = examples.places_of(request.start_support);
    std::vector<Solved> solved(groups.size());
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
        const LinearData problem{request.data, examples.order, labels, examples.upper, last - first, centre};
        solved[g] = solve<Loss, Real>({request, loss, problem, settings, start_support, start_rows, start_bias}, rows,
                                      blas, control, pool);
    });
    LinearReport report = report_of(std::move(solved), groups, request, examples);
    report.single_precision = std::is_same_v<Real, float>;
    return report;
}

/// Whether all numbers of a machine are far from the ends of single precision: coefficients are of the order of C, and
/// scores of that of C |x|^2.
bool moderate(const LinearRequest& request) {
    constexpr double small = 1e-12, large = 1e12;
    const auto [least, most] = std::ranges::minmax(request.cost_bounds);
    double norm = 0.0;
    for (const Index row : request.order) {
        double square = 0.0;
        for_entries(request.data, row, [&](Index, double v) { square += v * v; });
        norm = std::max(norm, square);
    }
    return least >= small && most <= large && norm <= large && (norm == 0.0 || norm >= small);
}

}  // namespace

LinearReport train_linear(const LinearRequest& request, const Blas& blas, Control& control) {
    if (!std::ranges::all_of(request.cost_bounds, [](double c) { return c > 0.0 && std::isfinite(c); })) {
        throw std::invalid_argument("C must be positive and finite for every example");
    }
    ThreadPool pool(request.threads);
    const bool large = std::ssize(request.order) * request.classes > kSmall;
    const bool single = large && request.gap >= kSingleGap && moderate(request);
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
