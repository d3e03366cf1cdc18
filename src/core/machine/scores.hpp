#pragma once

#include <span>
#include <vector>

#include "kernel/data.hpp"
#include "kernel/function.hpp"
#include "support/blas.hpp"
#include "support/control.hpp"

namespace polymargin {

/// Coefficients of a range of support vectors in some of the scores: score `columns[m]` gets
/// `sum_s coefficients(m, s) k(x, s)` over the range. Coefficients are the rows of one matrix with a column for each
/// vector.
struct ScoreBlock {
    Range vectors;
    std::vector<Index> columns;
};

struct ScoreRequest {
    DataView data;            ///< the points to score
    std::vector<Index> rows;  ///< which of them, in the order of the answer
    DataView vectors;         ///< the support vectors
    KernelSpec kernel;
    std::span<const double> coefficients;  ///< height x vectors, row-major
    Index height = 0;
    std::vector<ScoreBlock> blocks;
    Index scores = 0;
    double accuracy = 1e-4;  ///< rounding allowed in a score; decides the precision of the kernel
    int threads = 1;
};

/// Add the scores to `out` (rows x scores, row-major), each support vector's kernel row evaluated once, in blocks.
void add_scores(const ScoreRequest& request, std::span<double> out, const Blas& blas, const Control& control);

/// Write the kernel values of the rows with every vector to `out` (rows x vectors, row-major), in its precision. Of the
/// request only the points, the kernel and the threads count.
template <class Real>
void kernel_values(const ScoreRequest& request, std::span<Real> out, const Blas& blas, const Control& control);

}  // namespace polymargin
