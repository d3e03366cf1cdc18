#pragma once

#include <span>

#include "support/types.hpp"

namespace polymargin {

template <class Real>
struct Extremes {
    Real highest;
    Real lowest;
};

/// `scores += bias`; then of the gradients `scores + offset`, in which the class `label` (if there is one) has `own`
/// more, the highest among the classes that may fall and the lowest among those that may grow: `fall` is 0 for the
/// former and -inf for the others, `grow` likewise with +inf. All spans are as long as a padded row of weights.
template <class Real>
[[nodiscard]] Extremes<Real> add_and_measure(std::span<Real> scores, std::span<const Real> bias, Real offset,
                                             Index label, Real own, std::span<const Real> fall,
                                             std::span<const Real> grow);

}  // namespace polymargin
