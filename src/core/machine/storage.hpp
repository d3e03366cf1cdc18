#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "kernel/data.hpp"
#include "kernel/engine.hpp"
#include "kernel/function.hpp"
#include "kernel/gram.hpp"
#include "kernel/points.hpp"
#include "support/blas.hpp"
#include "support/control.hpp"
#include "support/thread_pool.hpp"

namespace polymargin {

/// What every machine trains on.
struct TrainingData {
    DataView data;
    KernelSpec kernel;
    std::vector<Index> order;   ///< rows of `data` sorted by class; the engine's numbering
    std::vector<double> upper;  ///< C_i, in that order
    Index budget_bytes = 0;     ///< for kernel values and the ordered copy of the data
    int threads = 1;
};

/// Up to how many examples the whole kernel matrix is computed up front when every problem has all examples: most rows
/// are then needed and symmetry saves half.
inline constexpr Index kWholeLimit = 16 * kSmallProblem;

template <class Real>
Points<Real> make_points(const TrainingData& training, std::vector<double> shift, const Workers& workers) {
    // A copy takes its memory out of the budget; a quarter of it at most, or rows would be recomputed too often.
    const auto size = static_cast<Index>(training.order.size());
    const bool copy = Points<Real>::copy_bytes(training.data, size) <= training.budget_bytes / 4;
    return Points<Real>(training.data, training.order, std::move(shift), copy, workers);
}

/// Choose the precision of the kernel and call `solve(store, points)` with an empty store of it. Small problems are
/// solved in double, others in float if that is exact enough for `tolerance`.
template <class Solve>
auto with_store(const TrainingData& training, double tolerance, const Blas& blas, Control& control, Solve&& solve) {
    ThreadPool pool(training.threads);
    const Workers workers{&pool, &control};
    const auto shift = centre(training.data, training.order, training.kernel, workers);
    const auto solve_on = [&]<class Real>(const Points<Real>& points) {
        const KernelEngine<Real> engine(training.kernel, points, points, blas);
        GramStore<Real> store(engine, training.budget_bytes - points.owned_bytes(), pool, control);
        return solve(store, points);
    };
    if (static_cast<Index>(training.order.size()) > kSmallProblem) {
        const auto points = make_points<float>(training, shift, workers);
        const double largest = *std::max_element(training.upper.begin(), training.upper.end());
        if (single_precision_suffices(training.kernel, points.max_norm(), largest, tolerance / 2)) {
            return solve_on(points);
        }
    }
    return solve_on(make_points<double>(training, shift, workers));
}

}  // namespace polymargin
