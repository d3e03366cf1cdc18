#pragma once

#include <vector>

#include "kernel/gram.hpp"

namespace polymargin {

/// Features of examples, a row for each, whose scalar products are nearly their kernel values. None: rank 0.
struct KernelFeatures {
    std::vector<double> values;
    Index rank = 0;
};

/// Cholesky's method on the kernel matrix, `K ~ G G'`, the example that is farthest from the span of those before it
/// next, until what is left of the trace is at most this share of what one column leaves: values that are nearly all
/// the same differ by little. No features if `most` columns would not do, which shows before all of them are there, nor
/// of a kernel whose diagonal is not positive. Of the kernel only the rows of these examples are computed.
template <class Real>
[[nodiscard]] KernelFeatures partial_cholesky(GramStore<Real>& store, Index most, double share);

}  // namespace polymargin
