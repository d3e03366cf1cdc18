#pragma once

#include <span>
#include <vector>

#include "kernel/data.hpp"
#include "kernel/function.hpp"
#include "support/blas.hpp"
#include "support/control.hpp"

namespace polymargin {

/// Two sets of points whose kernel values are asked for.
struct ValueRequest {
    DataView data;            ///< the points
    std::vector<Index> rows;  ///< which of them, in the order of the answer
    DataView vectors;         ///< the points that they are compared with, of the same kind
    KernelSpec kernel;
    int threads = 1;
};

/// Write the kernel values of the rows with every vector to `out` (rows x vectors, row-major), in its precision.
template <class Real>
void kernel_values(const ValueRequest& request, std::span<Real> out, const Blas& blas, const Control& control);

}  // namespace polymargin
