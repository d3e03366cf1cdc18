#include "machine/train_binary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

namespace polymargin {
namespace {

/// Up to how many of `all` examples the whole kernel matrix is computed up front: pairs of classes need few of its
/// rows, problems that have all examples, or many classes, most.
Index whole_limit(std::span<const BinaryProblem> problems, Index all) {
    const bool share_most =
        problems.size() > 1 && (problems.front().size() == all || problems.front().ranges.size() > 2);
    return share_most ? kWholeLimit : kSmallProblem;
}

/// The segments of all problems, each once.
std::vector<Range> distinct(std::span<const std::vector<Range>> segments) {
    std::vector<Range> all;
    for (const auto& own : segments) all.insert(all.end(), own.begin(), own.end());
    std::ranges::sort(all, {}, [](Range r) { return std::pair(r.begin, r.end); });
    const auto repeated = std::ranges::unique(all);
    all.erase(repeated.begin(), repeated.end());
    return all;
}

/// Whether problems will need so many rows of a class that its matrix is worth computing at once, which halves the
/// work. A problem's support vectors are balanced: of a class much larger than its partner it needs few.
bool needs_most_rows(Range c, std::span<const std::vector<Range>> segments, const BinarySettings& settings) {
    double needed = 0.0;
    for (const auto& own : segments) {
        Index others = 0;
        for (const Range s : own) others += s == c ? 0 : s.size();
        if (std::ranges::find(own, c) != own.end()) needed += static_cast<double>(std::min(others, c.size()));
    }
    return needed >= settings.share_of_rows * static_cast<double>(c.size());
}

/// Whether pairs are to be solved apart: most rows of a class are then needed by one pair or another, which long
/// classes do not have, and there must be room for the matrix of each class and, for as many threads as there may be,
/// that of a pair.
template <class Real>
bool pairs_fit(std::span<const std::vector<Range>> segments, std::span<const Range> classes,
               const BinarySettings& settings, Index budget) {
    Index squares = 0, largest = 0;
    for (const Range c : classes) squares += GramStore<Real>::square_bytes(c.size());
    for (const auto& own : segments) {
        if (own.size() != 2 || own[0].size() + own[1].size() > settings.long_row) return false;
        largest = std::max(largest, PrivateRows<Real>::bytes(own[0], own[1]));
    }
    return squares + settings.most_apart * largest <= budget;
}

/// Compute up front what the problems share, if it is small enough: the whole matrix or that of each class. What
/// earlier problems left is used, and given up when it is in the way.
template <class Real>
void prepare(GramStore<Real>& store, std::span<const BinaryProblem> problems, const BinarySettings& settings) {
    const Index n = store.size();
    if (store.whole()) return;
    if (n <= whole_limit(problems, n) && GramStore<Real>::square_bytes(n) <= store.budget()) {
        store.clear();
        return store.compute_whole();
    }
    if (store.holds_rows()) return;
    const auto segments = segments_of(problems, n);
    auto classes = distinct(segments);
    std::erase_if(classes, [&](Range c) { return store.has_square(c); });
    const auto few = std::erase_if(classes, [&](Range c) { return !needs_most_rows(c, segments, settings); });
    // What is not computed now are rows, which share the budget then.
    const Index budget = few > 0 ? store.unused_bytes() / 4 : store.unused_bytes();
    if (pairs_fit<Real>(segments, classes, settings, budget)) {
        if (!classes.empty()) store.compute_squares(classes);
    } else {
        store.clear();  // rows need the whole budget
    }
}

/// Whether somebody wants an answer that is exact: by the tolerance, or by bounds that differ among the examples of a
/// range, which have weights then. Weights are to count as so many copies.
bool wants_exact(const BinaryFamily& family) {
    if (family.settings.tolerance <= family.settings.polishing.exact_tolerance) return true;
    return std::ranges::any_of(family.problems, [&](const BinaryProblem& problem) {
        return std::ranges::any_of(problem.ranges, [&](const SignedRange& range) {
            const auto bounds = std::span(family.cost_bounds).subspan(range.begin, range.range().size());
            return std::ranges::any_of(bounds, [&](double bound) { return bound != bounds.front(); });
        });
    });
}

/// Whether nothing speaks against beginning all problems together: each has all examples and finite bounds, and nobody
/// gave a start or counts steps.
bool may_share_start(const BinaryFamily& family, Index examples) {
    return family.starts.empty() && family.paths.empty() && family.folds.empty() && family.refine &&
           family.settings.max_iterations < 0 && family.problems.size() > 1 &&
           std::ranges::all_of(family.problems,
                               [&](const auto& problem) { return problem.size() == examples && !problem.squared; }) &&
           std::ranges::none_of(family.cost_bounds, [](double bound) { return std::isinf(bound); });
}

template <class Real>
BinaryReport solve_on(GramStore<Real>& store, const Points<Real>& points, const BinaryFamily& family, const Blas& blas,
                      Control& control) {
    const Index n = points.size(), before = store.evaluations();
    BinarySettings settings = family.settings;
    settings.jump = &blas;
    settings.finish = &blas;
    if (!family.refine) settings.closing.open = std::numeric_limits<double>::infinity();  // nobody will see the gap
    // The products of few features cost little however few rows are computed together. Long rows are then better asked
    // for few at a time: the choice of the next ones knows more.
    if (points.features() < settings.few_features) {
        settings.entrants_of_long_rows = std::max<Index>(2, settings.entrants / 3);
    }
    prepare(store, family.problems, settings);
    if (family.refine && store.whole() && n <= kSmallProblem) {
        settings.polish = &blas;
        settings.polishing.problems = std::ssize(family.problems);
        // Held-out values are made into probabilities, which magnify differences.
        settings.polishing.asked = wants_exact(family) || !family.folds.empty();
    }
    if (store.whole()) {
        settings.rows_are_there = true;
        settings.shares_start = may_share_start(family, n) && !settings.polishing.asked;
        settings.whole_set = std::max(settings.whole_set, settings.whole_set_of_rows);
        if (n <= settings.long_row) {
            settings.working_set = std::max(settings.working_set, settings.working_set_of_whole);
        }
    }
    std::optional<Folds> folds;
    if (!family.folds.empty()) settings.folds = &folds.emplace(family.folds, family.cost_bounds);
    settings.paths = family.paths;
    if (!family.paths.empty() && store.whole()) {
        settings.whole_set = settings.whole_set_of_path;
        settings.working_set = std::max(settings.working_set, settings.whole_set);
    }
    BinaryReport report;
    report.results = solve_binary<Real>(family.problems, family.cost_bounds, store, settings, control, family.starts);
    report.evaluations = store.evaluations() - before;
    report.single_precision = std::is_same_v<Real, float>;
    report.whole_matrix = store.whole();
    return report;
}

/// Throw std::invalid_argument unless the family fits together and the session is exact enough for it.
void check(const KernelSession& session, const BinaryFamily& family) {
    if (!family.paths.empty() && !family.folds.empty()) throw std::invalid_argument("either folds or paths of costs");
    if (family.paths.empty()) session.check(family.cost_bounds, family.settings.tolerance);
    for (const CostPath& path : family.paths) session.check(path.cost_bounds.back(), family.settings.tolerance);
    check_within(family.problems, std::ssize(session.training().order));
    if (!family.starts.empty() && (!family.paths.empty() || family.starts.size() != family.problems.size())) {
        throw std::invalid_argument("there must be a start for each problem, and none with paths of costs");
    }
}

}  // namespace

std::vector<BinaryStart> starts_from(std::span<const Index> starts, std::span<const Index> support,
                                     std::span<const double> beta) {
    if (starts.empty() || starts.front() != 0 || !std::ranges::is_sorted(starts) || support.size() != beta.size() ||
        starts.back() != std::ssize(beta)) {
        throw std::invalid_argument(
            "starts must ascend from 0 to the number of coefficients, one for each example named");
    }
    std::vector<BinaryStart> made(starts.size() - 1);
    for (std::size_t p = 0; p < made.size(); ++p) {
        made[p].support.assign(support.begin() + starts[p], support.begin() + starts[p + 1]);
        made[p].beta.assign(beta.begin() + starts[p], beta.begin() + starts[p + 1]);
    }
    return made;
}

BinaryColumns side_by_side(std::span<const BinaryResult> results) {
    BinaryColumns all;
    all.starts.push_back(0);
    for (const BinaryResult& r : results) {
        all.support.insert(all.support.end(), r.support.begin(), r.support.end());
        all.beta.insert(all.beta.end(), r.beta.begin(), r.beta.end());
        all.held_out.insert(all.held_out.end(), r.held_out.begin(), r.held_out.end());
        all.starts.push_back(std::ssize(all.support));
        all.intercept.push_back(r.intercept);
        all.primal.push_back(r.objectives.primal);
        all.dual.push_back(r.objectives.dual);
        all.violation.push_back(r.violation);
        all.iterations.push_back(r.iterations);
        all.status.push_back(r.status);
    }
    return all;
}

BinaryReport train_binary(KernelSession& session, const BinaryFamily& family, Control& control) {
    check(session, family);
    return session.run(control, [&](auto& store, const auto& points) {
        return solve_on(store, points, family, session.blas(), control);
    });
}

BinaryReport train_binary(const BinaryRequest& request, const Blas& blas, Control& control) {
    KernelSession session(request, Exactness::of(request.cost_bounds, request.settings.tolerance), blas);
    return train_binary(session, request, control);
}

}  // namespace polymargin
