#pragma once

#include <span>
#include <vector>

#include "kernel/data.hpp"
#include "problem/binary.hpp"
#include "support/blas.hpp"
#include "support/workers.hpp"

namespace polymargin {

/// Binary problems solved for a path of costs: the coefficients of cost c and problem p are entries
/// `[starts[c * problems + p], starts[c * problems + p + 1])` of `support` and `beta`.
struct PathSolution {
    std::span<const BinaryProblem> problems;
    std::span<const Index> starts;
    std::span<const Index> support;  ///< examples in the engine's numbering
    std::span<const double> beta;
    std::span<const double> intercept;  ///< of each cost and problem

    [[nodiscard]] Index costs() const { return std::ssize(intercept) / std::max<Index>(1, std::ssize(problems)); }
};

/// Write the scores of some rows of a kernel matrix, `out[(p * rows + i) * costs + c]`. Example g of the engine is
/// column `order[g]` of the matrix. Kernel values and sums are taken in double precision. A stop leaves the rest
/// undone.
void path_scores(const PrecomputedView& matrix, std::span<const Index> order, std::span<const Index> rows,
                 const PathSolution& solution, std::span<double> out, const Blas& blas, const Workers& workers);

}  // namespace polymargin
