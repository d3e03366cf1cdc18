#pragma once

#include <span>

#include "support/types.hpp"

namespace polymargin {

/// `f[t] += sum_r coefficients[r] * rows[r][t]` for t in [0, count), in double.
template <class Real>
void accumulate(std::span<const Real* const> rows, std::span<const double> coefficients, double* f, Index count);

}  // namespace polymargin
