#pragma once

#include <vector>

#include "machine/storage.hpp"
#include "solver/binary.hpp"

namespace polymargin {

/// Binary problems on one data set, and how far to solve them.
struct BinaryFamily {
    std::vector<BinaryProblem> problems;
    std::vector<double> upper;        ///< C_i, in the engine's numbering
    std::vector<BinaryStart> starts;  ///< empty, or one for each problem
    BinarySettings settings;
};

struct TrainReport {
    std::vector<BinaryResult> results;
    Index evaluations = 0;  ///< kernel values computed
    bool single_precision = false;
    bool whole_matrix = false;
};

/// Solves families of binary problems on one data set, one after the other, when what to solve next is not known before
/// the last answers are. Kernel values within a class are kept for the next family; those between two classes are kept
/// only with the whole matrix.
class BinaryTrainer {
  public:
    BinaryTrainer(TrainingData training, Exactness exactness, const Blas& blas)
        : session_(std::move(training), exactness, blas) {}

    /// Throws std::invalid_argument if the family asks for more than the trainer was made exact enough for.
    [[nodiscard]] TrainReport solve(const BinaryFamily& family, Control& control);

  private:
    KernelSession session_;
};

/// Everything that one family of binary problems needs.
struct TrainRequest : TrainingData, BinaryFamily {};

/// Choose precision and storage for the kernel, then solve all problems.
[[nodiscard]] TrainReport train(const TrainRequest& request, const Blas& blas, Control& control);

}  // namespace polymargin
