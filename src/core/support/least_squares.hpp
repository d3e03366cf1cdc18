#pragma once

#include <vector>

#include "support/blas.hpp"

namespace polymargin {

/// The solution of minimum norm of a square system, in the least-squares sense if it is singular. The matrix is
/// overwritten.
[[nodiscard]] std::vector<double> least_squares(const Blas& blas, std::vector<double> matrix,
                                                std::vector<double> right);

/// The solution of a positive definite system; empty if it is not, or if a pivot of Cholesky's method is less than this
/// share of its diagonal element.
[[nodiscard]] std::vector<double> solve_definite(const Blas& blas, std::vector<double> matrix,
                                                 std::vector<double> right, double least_pivot = 0.0);

}  // namespace polymargin
