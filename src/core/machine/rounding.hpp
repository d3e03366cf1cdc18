#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/function.hpp"

namespace polymargin {

/// How large rounding makes the error of a kernel value, in units of the last place of 1, for a point with this squared
/// length and vectors that have at most `largest_square`: the size of the terms that it is computed from.
[[nodiscard]] inline double rounding_size(const KernelSpec& kernel, double square, double largest_square) {
    constexpr double largest = 1e150;  // of sizes, which are multiplied by more
    const double product = std::sqrt(square) * std::sqrt(largest_square);
    const auto size = [&] {
        switch (kernel.type) {
            case KernelType::linear:
                return product;
            case KernelType::polynomial:
                return std::max(1, kernel.degree) *
                       std::pow(kernel.gamma * product + std::abs(kernel.coef0), kernel.degree);
            case KernelType::sigmoid:
                return 1.0 + kernel.gamma * product;
            default:
                return 1.0 + kernel.gamma * (square + largest_square);
        }
    }();
    return size <= largest ? size : largest;  // also where it overflowed
}

/// Whether squares of kernel values stay finite in the precision, for points with squared lengths up to `max_norm`.
template <class Real>
[[nodiscard]] bool kernel_fits(const KernelSpec& kernel, double max_norm) {
    return std::abs(kernel.diagonal(max_norm)) + max_norm <= std::sqrt(std::numeric_limits<Real>::max());
}

}  // namespace polymargin
