#pragma once

#include <functional>
#include <span>

#include "problem/binary.hpp"
#include "support/blas.hpp"

namespace polymargin {

/// The kernel of one problem as polishing reads it, in the problem's own numbering and in double precision.
struct PolishKernel {
    std::function<double(Index, Index)> value;
    /// Bring f up to date after the variables `which` moved by `change`.
    std::function<void(std::span<const Index> which, std::span<const double> change)> moved;
};

/// Free variables up to which polishing pays: the cost of a step grows with the cube.
inline constexpr Index kMostFree = 256;

/// Turn a nearly optimal state into one that is optimal to rounding, by an active-set method: hold the variables at
/// their bounds, solve the linear conditions of the free ones,
///
///     K_FF p + m 1 = -f_F,   1'p = 0,
///
/// directly (by least squares of minimum norm: equal examples make K_FF singular), go there as far as the bounds allow,
/// fix what met a bound and repeat; at the optimum of the free variables, release the worst violator by one step of
/// SMO. The state is kept only if the violation fell. Problems with more than `max_free` free variables are left as
/// they are.
void polish(std::span<const Run> runs, std::span<const double> cost_bounds, BinaryState& state,
            const PolishKernel& kernel, const Blas& blas, Index max_free = kMostFree);

}  // namespace polymargin
