#pragma once

#include <span>
#include <vector>

#include "kernel/data.hpp"
#include "kernel/function.hpp"
#include "support/buffer.hpp"
#include "support/workers.hpp"

namespace polymargin {

/// The examples in the order in which the engine numbers them (by class, so that a class is one range): example g is
/// row `order[g]` of the caller's matrix. Dense points may be copied in that order and in the precision of the engine,
/// which is faster, or gathered when needed, which takes no memory. Sparse rows are always read in place.
template <class Real>
class Points {
  public:
    /// `shift` is subtracted from every dense point: where that changes no kernel value, fewer digits are lost.
    /// Throws std::invalid_argument, naming row and column, when a squared length overflows double precision.
    /// After a stop request the points are incomplete and must not be used.
    Points(const DataView& data, std::vector<Index> order, std::vector<double> shift, bool copy,
           const Workers& workers = {});
    /// Some of other points, numbered anew; copied if those are.
    Points(const Points& from, std::span<const Index> which);

    [[nodiscard]] Index size() const { return static_cast<Index>(order_.size()); }
    [[nodiscard]] Index features() const { return features_; }
    [[nodiscard]] const DataView& data() const { return data_; }
    [[nodiscard]] std::span<const Index> order() const { return order_; }
    [[nodiscard]] const Real* norms() const { return norms_.data(); }
    [[nodiscard]] double max_norm() const { return max_norm_; }

    /// Dense points only: rows `which` side by side, `features` apart.
    void gather(std::span<const Index> which, Real* out) const;
    /// Dense points only: the points of a range, from the copy or gathered into `scratch`.
    [[nodiscard]] const Real* range(Range which, Buffer<Real>& scratch) const;

    [[nodiscard]] Index owned_bytes() const { return copy_.size() * static_cast<Index>(sizeof(Real)); }
    static Index copy_bytes(const DataView& data, Index points);

  private:
    void measure_dense(const DenseView& dense, Range part);
    void measure_csr(const CsrView& csr, Range part);
    void measure_precomputed(const PrecomputedView& matrix, Range part);
    void record_norm(Index g, double norm, Index row, Index column);

    DataView data_;
    std::vector<Index> order_;
    std::vector<double> shift_;
    Index features_ = 0;
    Buffer<Real> copy_;
    std::vector<Real> norms_;
    double max_norm_ = 0.0;
};

/// The mean of the listed rows when that helps the kernel (of differences, on dense data), else nothing.
[[nodiscard]] std::vector<double> centre(const DataView& data, std::span<const Index> order, const KernelSpec& kernel,
                                         const Workers& workers = {});

/// The mean of the listed rows of dense data, else nothing.
[[nodiscard]] std::vector<double> centre(const DataView& data, std::span<const Index> order,
                                         const Workers& workers = {});

}  // namespace polymargin
