#pragma once

#include <vector>

#include "machine/storage.hpp"
#include "solver/binary.hpp"

namespace polymargin {

/// Everything that a family of binary problems on one data set needs.
struct TrainRequest : TrainingData {
    std::vector<BinaryProblem> problems;
    std::vector<BinaryStart> starts;  ///< empty, or one for each problem
    std::vector<Index> folds;         ///< empty, or the fold of each example, for held-out decision values
    BinarySettings settings;
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
