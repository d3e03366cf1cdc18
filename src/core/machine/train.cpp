#include "machine/train.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace polymargin {
namespace {

constexpr Index kFewFeatures = 64;

/// Up to how many examples the whole kernel matrix is computed up front; pairs of classes need few of their rows.
Index whole_limit(const TrainRequest& request) {
    const auto all = static_cast<Index>(request.order.size());
    const bool share_all = request.problems.size() > 1 && request.problems.front().size() == all;
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

template <class Real>
TrainReport train_on(const TrainRequest& request, GramStore<Real>& store, const Points<Real>& points, const Blas& blas,
                     Control& control) {
    const Index n = points.size();
    BinarySettings settings = request.settings;
    // The products of few features cost little however few rows are computed together. Long rows are then better asked
    // for few at a time: the choice of the next ones knows more.
    if (points.features() < kFewFeatures) settings.entrants_of_long_rows = std::max<Index>(2, settings.entrants / 3);
    if (n <= whole_limit(request) && GramStore<Real>::square_bytes(n) <= store.budget()) {
        store.compute_whole();
    } else if (const auto classes = classes_of(request.problems);
               pairs_fit<Real>(request.problems, classes, store.budget())) {
        store.compute_squares(classes);
    }
    if (store.whole() && n <= kSmallProblem) settings.polish = &blas;
    if (store.whole()) {  // rows cost nothing more: large working sets, quickly filled, save rounds
        settings.working_set = std::max<Index>(settings.working_set, 1536);
        settings.entrants = std::max<Index>(settings.entrants, 256);
    }
    std::optional<Folds> folds;
    if (!request.folds.empty()) settings.folds = &folds.emplace(request.folds, request.upper);
    TrainReport report;
    report.results = solve_binary<Real>(request.problems, request.upper, store, settings, control, request.starts);
    report.evaluations = store.evaluations();
    report.single_precision = std::is_same_v<Real, float>;
    report.whole_matrix = store.whole();
    return report;
}

}  // namespace

TrainReport train(const TrainRequest& request, const Blas& blas, Control& control) {
    return with_store(request, request.settings.tolerance, blas, control,
                      [&](auto& store, const auto& points) { return train_on(request, store, points, blas, control); });
}

}  // namespace polymargin
