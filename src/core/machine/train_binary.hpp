#pragma once

#include <vector>

#include "machine/kernel_session.hpp"
#include "solver/binary.hpp"

namespace polymargin {

/// Binary problems on one data set, and how far to solve them.
struct BinaryFamily {
    std::vector<BinaryProblem> problems;
    std::vector<double> cost_bounds;  ///< C_i, in the engine's numbering; not used where there are paths
    std::vector<BinaryStart> starts;  ///< empty, or one for each problem
    std::vector<Index> folds;         ///< empty, or the fold of each example, for held-out decision values
    std::vector<CostPath> paths;      ///< empty, or bounds for each of which every problem is solved
    bool refine = true;               ///< make the answers of small problems exact to rounding
    BinarySettings settings;
};

struct BinaryReport {
    std::vector<BinaryResult> results;
    Index evaluations = 0;  ///< kernel values computed
    bool single_precision = false;
    bool whole_matrix = false;
};

/// The results of many problems, an array for each quantity.
struct BinaryColumns {
    std::vector<Index> starts;   ///< the coefficients of problem p are [starts[p], starts[p + 1])
    std::vector<Index> support;  ///< examples, in the engine's numbering
    std::vector<double> beta;    ///< their signed coefficients
    std::vector<double> intercept, primal, dual, violation;
    std::vector<Index> iterations;
    std::vector<double> held_out;  ///< with folds: problem after problem, a decision value for each example
    std::vector<Status> status;
};

[[nodiscard]] BinaryColumns side_by_side(std::span<const BinaryResult> results);

/// Starts of many problems from their coefficients side by side, as in `BinaryColumns`.
[[nodiscard]] std::vector<BinaryStart> starts_from(std::span<const Index> starts, std::span<const Index> support,
                                                   std::span<const double> beta);

/// Solve a family of binary problems, one of several perhaps. Kernel values within a class are kept for the next one;
/// those between two classes are kept only with the whole matrix. Throws std::invalid_argument if the family asks for
/// more than the session was made exact enough for.
[[nodiscard]] BinaryReport train_binary(KernelSession& session, const BinaryFamily& family, Control& control);

/// Everything that one family of binary problems needs.
struct BinaryRequest : TrainingData, BinaryFamily {};

/// Solve one family, in a session of its own.
[[nodiscard]] BinaryReport train_binary(const BinaryRequest& request, const Blas& blas, Control& control);

}  // namespace polymargin
