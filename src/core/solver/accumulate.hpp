#pragma once

#include <span>

#include "support/types.hpp"

namespace polymargin {

/// `f[t] += sum_r coefficients[r] * rows[r][t]` for t in [0, count): in double, but for the sum of a few rows at a
/// time, whose entries are no more exact than that.
template <class Real>
void accumulate(std::span<const Real* const> rows, std::span<const double> coefficients, double* f, Index count);

}  // namespace polymargin
