#pragma once

#include <cmath>
#include <limits>

#include "kernel/function.hpp"

namespace polymargin {

/// Whether squares of kernel values stay finite in the precision, for points with squared lengths up to `max_norm`.
template <class Real>
[[nodiscard]] bool kernel_fits(const KernelSpec& kernel, double max_norm) {
    return std::abs(kernel.diagonal(max_norm)) + max_norm <= std::sqrt(std::numeric_limits<Real>::max());
}

}  // namespace polymargin
