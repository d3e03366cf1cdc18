#pragma once

#include <vector>

#include "support/blas.hpp"

namespace polymargin {

/// The solution of minimum norm of a square system, in the least-squares sense if it is singular. The matrix is
/// overwritten.
[[nodiscard]] std::vector<double> least_squares(const Blas& blas, std::vector<double> matrix,
                                                std::vector<double> right);

/// The solution of a positive definite system; empty if it is not.
[[nodiscard]] std::vector<double> solve_definite(const Blas& blas, std::vector<double> matrix,
                                                 std::vector<double> right);

}  // namespace polymargin
