#pragma once

#include <optional>

#include "machine/train_joint.hpp"

namespace polymargin {

/// A point to start a joint machine from.
struct JointStart {
    std::vector<Index> support;
    std::vector<double> rows, bias;
};

/// Where to start if the kernel is, but for little, that of a few features, as a wide one is: nearly the optimum of the
/// linear machine on them, which Newton steps find where steps on one example after the other are slow, and the slower
/// the larger C. Nothing for another kernel, for few examples, or where memory does not allow it. A start that the
/// problem comes with is where the linear machine starts.
template <class Real>
[[nodiscard]] std::optional<JointStart> low_rank_start(const JointProblem& problem, GramStore<Real>& store,
                                                       const Blas& blas, Control& control);

}  // namespace polymargin
