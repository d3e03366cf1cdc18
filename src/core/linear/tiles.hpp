#pragma once

#include <span>

#include "linear/rows.hpp"
#include "linear/weights.hpp"
#include "support/blas.hpp"

namespace polymargin {

/// Some rows that are multiplied at once: by BLAS where they are dense, else one by one.
template <class Real>
class RowTile {
  public:
    /// Rows in a tile at most: with their products they stay near the processor.
    static constexpr Index kMost = 256;

    /// Neighbours.
    RowTile(const LinearRows<Real>& rows, Index first, Index count)
        : rows_(rows), first_(first), count_(count), dense_(rows.dense() ? rows.row(first).values : nullptr) {}
    /// Any rows, by their numbers; dense ones are brought together in `room`, of `kMost` rows.
    RowTile(const LinearRows<Real>& rows, std::span<const std::uint32_t> numbers, Real* room);

    [[nodiscard]] Index size() const { return count_; }
    [[nodiscard]] Index number(Index t) const { return numbers_.empty() ? first_ + t : numbers_[t]; }

    /// out (rows x width) = the products with the weights of all classes.
    void products(const Weights<Real>& weights, const Blas& blas, Real* out) const;
    /// w_m += sum_t by[t][m] x_t for all classes; `by` is rows x width.
    void add_to(Weights<Real>& weights, const Blas& blas, const Real* by) const;

  private:
    const LinearRows<Real>& rows_;
    Index first_ = 0, count_;
    std::span<const std::uint32_t> numbers_;
    const Real* dense_;
};

}  // namespace polymargin
