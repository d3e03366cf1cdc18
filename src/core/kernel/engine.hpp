#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernel/function.hpp"
#include "kernel/points.hpp"
#include "support/blas.hpp"

namespace polymargin {

/// Kernel values in blocks: what the kernel reads, by one matrix product if it can be, and one fused pass of the kernel
/// function.
/// Rows and columns may be two sets of points (prediction) or the same (training). Threads share an engine.
template <class Real>
class KernelEngine {
  public:
    KernelEngine(const KernelSpec& kernel, const Points<Real>& rows, const Points<Real>& columns, const Blas& blas)
        : kernel_(kernel), rows_(rows), columns_(columns), blas_(blas) {}

    /// `out[i][j] = k(rows[which[i]], columns[range.begin + j])`: one pointer for each row asked for.
    void block(std::span<const Index> which, Range range, std::span<Real* const> out) const;

    /// The same before the kernel function, for kernels that read sums over features.
    void feature_sums(std::span<const Index> which, Range range, std::span<Real* const> out) const;

    [[nodiscard]] const KernelSpec& kernel() const { return kernel_; }
    [[nodiscard]] const Points<Real>& row_points() const { return rows_; }
    [[nodiscard]] const Blas& blas() const { return blas_; }
    [[nodiscard]] Index rows() const { return rows_.size(); }
    [[nodiscard]] Index columns() const { return columns_.size(); }

  private:
    /// Memory of one block, handed from block to block so that it is allocated once for each thread.
    struct Scratch {
        Buffer<Real> inputs;   ///< scalar products or sums over features, rows x columns of the block
        Buffer<Real> rows;     ///< the gathered rows
        Buffer<Real> columns;  ///< the gathered columns, when the points are not copied
        Buffer<Real> panel;    ///< some rows side by side, features x lanes; of sparse rows zero between uses
        Buffer<Real> sums;     ///< sums of a panel, columns x lanes
    };
    [[nodiscard]] std::unique_ptr<Scratch> borrow() const;
    void give_back(std::unique_ptr<Scratch> scratch) const;

    void compute_inputs(std::span<const Index> which, Range range, Scratch& scratch) const;
    void products_dense(std::span<const Index> which, Range range, Scratch& scratch) const;
    void products_csr(std::span<const Index> which, Range range, Scratch& scratch) const;
    void sums_dense(std::span<const Index> which, Range range, Scratch& scratch) const;
    void sums_csr(std::span<const Index> which, Range range, Scratch& scratch) const;
    template <class Work>
    void for_panels(std::span<const Index> which, Scratch& scratch, const Work& work, Index width) const;
    void copy_precomputed(std::span<const Index> which, Range range, std::span<Real* const> out) const;

    KernelSpec kernel_;
    const Points<Real>& rows_;
    const Points<Real>& columns_;
    Blas blas_;
    mutable std::mutex mutex_;
    mutable std::vector<std::unique_ptr<Scratch>> idle_;
};

/// Up to this many examples or support vectors everything is done in double: it costs next to nothing, and answers are
/// exact enough to be the same however rows are ordered, weighted or repeated.
inline constexpr Index kSmallProblem = 1024;

/// Whether float32 entries are exact enough: the rounding of a kernel value, times the largest coefficient and
/// a handful of support vectors, must stay below `accuracy` (in units of the decision value).
[[nodiscard]] bool single_precision_suffices(const KernelSpec& kernel, double max_norm, double max_coefficient,
                                             double accuracy);

}  // namespace polymargin
