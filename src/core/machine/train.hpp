#pragma once

#include <vector>

#include "kernel/data.hpp"
#include "kernel/function.hpp"
#include "solver/binary.hpp"
#include "support/blas.hpp"
#include "support/control.hpp"

namespace polymargin {

/// Everything that a family of binary problems on one data set needs.
struct TrainRequest {
    DataView data;
    KernelSpec kernel;
    std::vector<Index> order;   ///< rows of `data` sorted by class; the engine's numbering
    std::vector<double> upper;  ///< C_i, in that order
    std::vector<BinaryProblem> problems;
    std::vector<BinaryStart> starts;  ///< empty, or one for each problem
    BinarySettings settings;
    Index budget_bytes = 0;  ///< for kernel values and the ordered copy of the data
    int threads = 1;
};

struct TrainReport {
    std::vector<BinaryResult> results;
    Index evaluations = 0;  ///< kernel values computed
    bool single_precision = false;
    bool whole_matrix = false;
};

/// Choose precision and storage for the kernel, then solve all problems.
[[nodiscard]] TrainReport train(const TrainRequest& request, const Blas& blas, Control& control);

}  // namespace polymargin
