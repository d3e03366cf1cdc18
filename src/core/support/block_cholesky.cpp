#include "support/block_cholesky.hpp"

#include <algorithm>

#include "support/buffer.hpp"
#include "support/dot.hpp"
#include "support/multiversion.hpp"

namespace polymargin {
namespace {

/// Columns of a panel, and rows and columns of a part of what is left: a task takes about a millisecond.
constexpr Index kPanel = 128;

/// The inverse of a lower triangle, column-major, with zeros above it.
void invert_triangle(const double* lower, Index stride, Index size, double* inverse) {
    std::fill_n(inverse, size * size, 0.0);
    for (Index j = 0; j < size; ++j) {
        double* x = inverse + j * size;
        x[j] = 1.0;
        for (Index i = j; i < size; ++i) {
            const double* column = lower + i * stride;
            const double value = x[i] /= column[i];
            for (Index r = i + 1; r < size; ++r) x[r] -= value * column[r];
        }
    }
}

/// Column-major `c (m x n) += a (m x k) b' (n x k)`, or without what is in c.
void multiply(const Blas& blas, Index m, Index n, Index k, const double* a, Index lda, const double* b, Index ldb,
              bool add, double* c, Index ldc) {
    char plain = 'N', transposed = 'T';
    int rows = static_cast<int>(m), columns = static_cast<int>(n), inner = static_cast<int>(k);
    int stride_a = static_cast<int>(lda), stride_b = static_cast<int>(ldb), stride_c = static_cast<int>(ldc);
    double one = 1.0, beta = add ? 1.0 : 0.0;
    blas.dgemm(&plain, &transposed, &rows, &columns, &inner, &one, const_cast<double*>(a), &stride_a,
               const_cast<double*>(b), &stride_b, &beta, c, &stride_c);
}

}  // namespace

POLYMARGIN_MULTIVERSION void solve_triangles(const double* factor, Index size, Index stride, double* x) {
    for (Index j = 0; j < size; ++j) {
        const double* column = factor + j * stride;
        const double value = x[j] /= column[j];
        for (Index i = j + 1; i < size; ++i) x[i] -= value * column[i];
    }
    for (Index j = size - 1; j >= 0; --j) {
        const double* column = factor + j * stride;
        x[j] = (x[j] - dot_in_lanes(column + j + 1, x + j + 1, size - j - 1)) / column[j];
    }
}

bool factor_by_blocks(double* matrix, Index size, const Blas& blas, ThreadPool& pool, const Control& control) {
    Buffer<double> inverse(kPanel * kPanel), minus(size * kPanel);
    for (Index begin = 0; begin < size; begin += kPanel) {
        if (control.stop_requested()) return false;
        const Index end = std::min(begin + kPanel, size), width = end - begin;
        double* corner = matrix + begin * size + begin;
        char lower = 'L';
        int order = static_cast<int>(width), stride = static_cast<int>(size), info = 0;
        blas.dpotrf(&lower, &order, corner, &stride, &info);
        if (info != 0) return false;
        if (end == size) return true;
        // The panel below the corner, from a copy of it: `A L^-T`.
        invert_triangle(corner, size, width, inverse.data());
        const Index parts = (size - end + kPanel - 1) / kPanel;
        const auto rows_of = [&](Index part) { return std::min(kPanel, size - end - part * kPanel); };
        pool.for_each(parts, [&](Index part) {
            const Index first = end + part * kPanel, rows = rows_of(part);
            double* copy = minus.data() + part * kPanel * kPanel;
            double* panel = matrix + begin * size + first;
            for (Index j = 0; j < width; ++j) std::copy_n(panel + j * size, rows, copy + j * rows);
            multiply(blas, rows, width, width, copy, rows, inverse.data(), width, false, panel, size);
            for (Index j = 0; j < width; ++j) {
                for (Index i = 0; i < rows; ++i) copy[j * rows + i] = -panel[j * size + i];
            }
        });
        // What is left, on and below the diagonal.
        pool.for_each(parts * (parts + 1) / 2, [&](Index task) {
            Index row = 0;
            while ((row + 1) * (row + 2) / 2 <= task) ++row;
            const Index column = task - row * (row + 1) / 2;
            multiply(blas, rows_of(row), rows_of(column), width, minus.data() + row * kPanel * kPanel, rows_of(row),
                     matrix + begin * size + end + column * kPanel, size, true,
                     matrix + (end + column * kPanel) * size + end + row * kPanel, size);
        });
    }
    return true;
}

}  // namespace polymargin
