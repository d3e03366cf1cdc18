#pragma once

#include <span>
#include <vector>

#include "support/types.hpp"

namespace polymargin {

/// Shrink flows until what comes into every node goes out of it again.
///
/// `flow[p * nodes + m]` is what goes from p to m. A flow is a sum of cycles and of paths from nodes that give more
/// than they get to nodes that get more than they give; taking the paths away leaves the cycles. The result is never
/// larger than the flow anywhere, and differs from it by no more than its imbalance.
[[nodiscard]] std::vector<double> largest_circulation_below(std::span<const double> flow, Index nodes);

/// Carry what some nodes have too much of to those that have too little, along edges of limited capacity, as far as
/// possible; `excess` sums to zero. The result has the amount for each edge.
[[nodiscard]] std::vector<double> carry_excess(std::vector<double> excess, std::span<const double> capacity);

}  // namespace polymargin
