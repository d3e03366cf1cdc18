#pragma once

#include <span>
#include <vector>

#include "kernel/data.hpp"

namespace polymargin {

/// Rows of the caller's data as the support vectors are stored, dense or sparse: the kernel engine takes both of one
/// kind. Where they already are nothing is copied.
class QueryRows {
  public:
    QueryRows(const DataView& data, std::span<const Index> rows, const DataView& vectors);
    QueryRows(const QueryRows&) = delete;
    QueryRows& operator=(const QueryRows&) = delete;

    [[nodiscard]] const DataView& data() const { return view_; }
    [[nodiscard]] const std::vector<Index>& order() const { return order_; }

    [[nodiscard]] static bool converts(const DataView& data, const DataView& vectors) {
        return data.index() != vectors.index();
    }

  private:
    void make_dense(const CsrView& csr, std::span<const Index> rows);
    void make_csr(const DenseView& dense, std::span<const Index> rows);

    DataView view_;
    std::vector<Index> order_;
    std::vector<double> values_;
    std::vector<Index> columns_, starts_;
};

/// Write a row to `out`, which is zero everywhere, minus `shift` unless that is empty.
template <class Real>
void load_row(const DataView& data, Index row, std::span<const double> shift, Real* out);

/// Squared lengths, infinite where they overflow.
[[nodiscard]] double squared_length(const DataView& data, Index row);

}  // namespace polymargin
