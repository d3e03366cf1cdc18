#include "machine/kernel_session.hpp"

#include <sstream>
#include <stdexcept>

namespace polymargin {
namespace {

template <class Real>
Points<Real> make_points(const TrainingData& training, std::vector<double> shift, const Workers& workers) {
    // A copy takes its memory out of the budget; a quarter of it at most, or rows would be recomputed too often.
    const auto size = static_cast<Index>(training.order.size());
    const bool copy = Points<Real>::copy_bytes(training.data, size) <= training.budget_bytes / 4;
    return Points<Real>(training.data, training.order, std::move(shift), copy, workers);
}

/// The matrix itself if the points are the rows of one, all in its own order and in the precision of the store.
template <class Real>
const Real* matrix_of(const Points<Real>& points) {
    const auto* matrix = std::get_if<PrecomputedView>(&points.data());
    if (matrix == nullptr || matrix->rows != points.size() || matrix->columns != points.size()) return nullptr;
    const auto* values = std::get_if<std::span<const Real>>(&matrix->values);
    const auto order = points.order();
    for (Index g = 0; g < points.size(); ++g) {
        if (order[g] != g) return nullptr;
    }
    return values == nullptr ? nullptr : values->data();
}

template <class Real>
void have_whole(GramStore<Real>& store, const Points<Real>& points) {
    if (const Real* matrix = matrix_of(points)) {
        store.adopt_whole(matrix);
    } else if (store.square_bytes(store.size()) <= store.budget()) {
        store.compute_whole();
    }
}

}  // namespace

void KernelSession::check(std::span<const double> cost_bounds, double tolerance) const {
    if (cost_bounds.size() != training_.order.size()) {
        throw std::invalid_argument("cost_bounds must have a bound for each example");
    }
    if (!exactness_.covers(Exactness::of(cost_bounds, tolerance))) {
        std::ostringstream message;
        message << "the session was made for cost bounds up to " << exactness_.largest_cost_bound
                << " and tolerances from " << exactness_.tolerance << " on";
        throw std::invalid_argument(message.str());
    }
}

KernelSession::Store KernelSession::make_store(ThreadPool& pool, const Control& control) const {
    const Workers workers{&pool, &control};
    const auto shift = centre(training_.data, training_.order, training_.kernel, workers);
    const auto parts = [&]<class Real>(Points<Real> points) {
        auto made = std::make_unique<Parts<Real>>(std::move(points), training_, blas_, pool, control);
        if (training_.whole) have_whole(made->store, made->points);
        return made;
    };
    if (exactness_.rough || static_cast<Index>(training_.order.size()) > kSmallProblem) {
        auto points = make_points<float>(training_, shift, workers);
        if (single_precision_suffices(training_.kernel, points.max_norm(), exactness_.largest_cost_bound,
                                      exactness_.accuracy())) {
            return parts(std::move(points));
        }
    }
    return parts(make_points<double>(training_, shift, workers));
}

}  // namespace polymargin
