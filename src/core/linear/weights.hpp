#pragma once

#include <span>

#include "linear/rows.hpp"
#include "support/buffer.hpp"

namespace polymargin {

/// The weights of all classes, features x classes, so that one value of an example meets neighbours: a row of weights
/// is a few vectors, which the loops over an example keep in registers.
template <class Real>
class Weights {
  public:
    Weights(Index features, Index classes);

    [[nodiscard]] Index classes() const { return classes_; }
    /// Numbers in a row, padding included: what `products` and `add` read and write.
    [[nodiscard]] Index width() const { return width_; }
    [[nodiscard]] Real* row(Index feature) { return values_.data() + feature * width_; }
    [[nodiscard]] const Real* row(Index feature) const { return values_.data() + feature * width_; }

    /// out[m] = w_m . x for all classes; `out` has `width` places.
    void products(const Row<Real>& x, Real* out) const;
    /// The same for some classes.
    void products(const Row<Real>& x, std::span<const Index> classes, Real* out) const;
    /// w_m += by[m] x for all classes; `by` has `width` places, zero in the padding.
    void add(const Row<Real>& x, const Real* by);
    /// The same for some classes.
    void add(const Row<Real>& x, std::span<const Index> classes, const Real* by);

    /// Up to how many classes whole rows are always read: a few vectors cost no more than a few numbers.
    static constexpr Index kFew = static_cast<Index>(256 / sizeof(Real));

  private:
    Index features_;
    Index classes_;
    Index width_;
    bool far_;  // more than stays near the processor: fetch ahead
    Buffer<Real> values_;
};

/// scores[m] += w_m . x for weights that are features x classes, without padding.
void add_products(const Row<double>& x, std::span<const double> weights, std::span<double> scores);

}  // namespace polymargin
