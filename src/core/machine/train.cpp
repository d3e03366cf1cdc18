#include "machine/train.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

namespace polymargin {
namespace {

constexpr Index kFewFeatures = 64;

/// Up to how many of `all` examples the whole kernel matrix is computed up front; pairs of classes need few of its
/// rows.
Index whole_limit(std::span<const BinaryProblem> problems, Index all) {
    const bool share_all = problems.size() > 1 && problems.front().size() == all;
    return share_all ? kWholeLimit : kSmallProblem;
}

/// The segments of all problems.
std::vector<Range> classes_of(std::span<const BinaryProblem> problems) {
    std::vector<Range> classes;
    for (const BinaryProblem& p : problems) classes.insert(classes.end(), p.segments.begin(), p.segments.end());
    std::sort(classes.begin(), classes.end(), [](Range a, Range b) { return a.begin < b.begin; });
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    return classes;
}

/// Whether pairs are to be solved apart: most rows of a class are then needed by one pair or another, which long
/// classes do not have, and there must be room for the matrix of each class and, for as many threads as there may be,
/// that of a pair.
template <class Real>
bool pairs_fit(std::span<const BinaryProblem> problems, std::span<const Range> classes, Index budget) {
    Index squares = 0, largest = 0;
    for (const Range c : classes) squares += GramStore<Real>::square_bytes(c.size());
    for (const BinaryProblem& p : problems) {
        if (p.segments.size() != 2 || p.size() > kLongRow) return false;
        largest = std::max(largest, PrivateRows<Real>::bytes(p.segments[0], p.segments[1]));
    }
    return squares + kMostApart * largest <= budget;
}

/// Compute up front what the problems share, if it is small enough: the whole matrix or that of each class. What
/// earlier problems left is used, and given up when it is in the way.
template <class Real>
void prepare(GramStore<Real>& store, std::span<const BinaryProblem> problems) {
    const Index n = store.size();
    if (store.whole()) return;
    if (n <= whole_limit(problems, n) && GramStore<Real>::square_bytes(n) <= store.budget()) {
        store.clear();
        return store.compute_whole();
    }
    if (store.holds_rows()) return;
    auto classes = classes_of(problems);
    std::erase_if(classes, [&](Range c) { return store.has_square(c); });
    if (pairs_fit<Real>(problems, classes, store.unused_bytes())) {
        if (!classes.empty()) store.compute_squares(classes);
    } else {
        store.clear();  // rows need the whole budget
    }
}

template <class Real>
TrainReport solve_on(GramStore<Real>& store, const Points<Real>& points, const BinaryFamily& family, const Blas& blas,
                     Control& control) {
    const Index n = points.size(), before = store.evaluations();
    BinarySettings settings = family.settings;
    settings.jump = &blas;
    // The products of few features cost little however few rows are computed together. Long rows are then better asked
    // for few at a time: the choice of the next ones knows more.
    if (points.features() < kFewFeatures) settings.entrants_of_long_rows = std::max<Index>(2, settings.entrants / 3);
    prepare(store, family.problems);
    if (family.refine && store.whole() && n <= kSmallProblem) settings.polish = &blas;
    if (store.whole()) settings.entrants_of_long_rows = settings.entrants;  // rows cost nothing more
    std::optional<Folds> folds;
    if (!family.folds.empty()) settings.folds = &folds.emplace(family.folds, family.upper);
    settings.paths = family.paths;
    TrainReport report;
    report.results = solve_binary<Real>(family.problems, family.upper, store, settings, control, family.starts);
    report.evaluations = store.evaluations() - before;
    report.single_precision = std::is_same_v<Real, float>;
    report.whole_matrix = store.whole();
    return report;
}

}  // namespace

TrainReport train(KernelSession& session, const BinaryFamily& family, Control& control) {
    if (!family.paths.empty() && !family.folds.empty()) throw std::invalid_argument("either folds or paths of costs");
    if (family.paths.empty()) session.check(family.upper, family.settings.tolerance);
    for (const CostPath& path : family.paths) session.check(path.upper.back(), family.settings.tolerance);
    return session.run(control, [&](auto& store, const auto& points) {
        return solve_on(store, points, family, session.blas(), control);
    });
}

TrainReport train(const TrainRequest& request, const Blas& blas, Control& control) {
    KernelSession session(request, Exactness::of(request.upper, request.settings.tolerance), blas);
    return train(session, request, control);
}

}  // namespace polymargin
