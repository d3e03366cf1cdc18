#pragma once

#include "support/blas.hpp"
#include "support/control.hpp"
#include "support/thread_pool.hpp"

namespace polymargin {

/// Cholesky's factor L of a positive definite matrix, by blocks, which all threads share and a stop interrupts: in the
/// place of the matrix, of which it reads what is on and below the diagonal, column-major. False if the matrix is not
/// positive definite or a stop was requested. The result does not depend on the number of threads.
[[nodiscard]] bool factor_by_blocks(double* matrix, Index size, const Blas& blas, ThreadPool& pool,
                                    const Control& control);

/// `x = (L L')^-1 x` for such a factor, whose columns are `stride` apart. They are read one after the other, there and
/// back. (LAPACK's routine packs the matrix for every vector.)
void solve_triangles(const double* factor, Index size, Index stride, double* x);
inline void solve_triangles(const double* factor, Index size, double* x) {
    solve_triangles(factor, size, size, x);
}

}  // namespace polymargin
