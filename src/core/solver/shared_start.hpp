#pragma once

#include <span>
#include <vector>

#include "kernel/gram.hpp"
#include "problem/binary.hpp"
#include "support/control.hpp"

namespace polymargin {

/// How far problems are to be solved.
struct Goal {
    double violation = 1e-3;
    double gap = 1e-2;  ///< relative
};

struct SharedStartSettings {
    /// It is worth it if, of the scores of so many examples at the even points, others give this share of what the
    /// examples themselves give at most. (Of 16 slow cells of the sweep seven have shares up to .41: they end 5 to 19
    /// times as fast as the peer, by working sets .3 to 1.5 times. The others have 2 to 180, and what they
    /// win by it is lost by it again.)
    Index examples = 32;
    double share_of_others = 1.0;
    Index most_products = 64;  ///< of the kernel with the directions of all problems; those cells took 1 to 15
    Index most_projections = 12;
    double look = 0.1;  ///< bounds are looked at when the residual has fallen to this share
    /// After so many products the residual must have fallen to this share of the first one.
    Index trial = 12;
    double progress = 0.3;
    double handover = 0.1;  ///< violation up to which a point is better than zero
};

/// Where a problem begins: a feasible point and its gradient, or nothing; and the products that it took.
struct SharedPoint {
    BinaryState state;
    Index products = 0;
};

/// Points for problems that all have all examples of a store with the whole matrix, all at once.
///
/// Where the kernel is narrow, nearly every example is a support vector of every problem: steps on two variables then
/// take many for each example and problem, and read the kernel for each problem anew. The solution is close to the even
/// point, where all examples of a side have the same coefficient, and the free variables F satisfy
///
///     K_FF b_F + K_FB b_B - y_F + bias = 0,    sum_i b_i = 0,
///
/// a linear system of which the diagonal is the largest part. Conjugate gradients, orthogonal to the constraint, solve
/// it for all problems side by side: a product with the kernel serves all of them. When the residual has fallen, what
/// left the box is projected back and F is chosen anew. A problem ends when it is solved as far as `goal` asks.
///
/// Takes `shared_start_bytes`. Empty if the scores of some examples at the even points show that the kernel is not
/// narrow. Deterministic for any number of threads; a stop ends it early.
template <class Real>
std::vector<SharedPoint> shared_start(std::span<const BinaryProblem> problems, std::span<const double> cost_bounds,
                                      GramStore<Real>& store, const Goal& goal, const SharedStartSettings& settings,
                                      Control& control);

/// Memory for so many problems of so many examples.
[[nodiscard]] constexpr Index shared_start_bytes(Index problems, Index examples) {
    return 10 * problems * examples * static_cast<Index>(sizeof(double));
}

}  // namespace polymargin
