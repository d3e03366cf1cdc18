#pragma once

#include <vector>

#include "machine/storage.hpp"
#include "solver/binary.hpp"

namespace polymargin {

/// Binary problems on one data set, and how far to solve them.
struct BinaryFamily {
    std::vector<BinaryProblem> problems;
    std::vector<double> upper;        ///< C_i, in the engine's numbering; not used where there are paths
    std::vector<BinaryStart> starts;  ///< empty, or one for each problem
    std::vector<Index> folds;         ///< empty, or the fold of each example, for held-out decision values
    std::vector<CostPath> paths;      ///< empty, or bounds for each of which every problem is solved
    bool refine = true;               ///< make the answers of small problems exact to rounding
    BinarySettings settings;
};

struct TrainReport {
    std::vector<BinaryResult> results;
    Index evaluations = 0;  ///< kernel values computed
    bool single_precision = false;
    bool whole_matrix = false;
};

/// Solve a family of binary problems, one of several perhaps. Kernel values within a class are kept for the next one;
/// those between two classes are kept only with the whole matrix. Throws std::invalid_argument if the family asks for
/// more than the session was made exact enough for.
[[nodiscard]] TrainReport train(KernelSession& session, const BinaryFamily& family, Control& control);

/// Everything that one family of binary problems needs.
struct TrainRequest : TrainingData, BinaryFamily {};

/// Solve one family, in a session of its own.
[[nodiscard]] TrainReport train(const TrainRequest& request, const Blas& blas, Control& control);

}  // namespace polymargin
