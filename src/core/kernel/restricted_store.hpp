#pragma once

#include <span>

#include "kernel/gram.hpp"

namespace polymargin {

/// A store for some examples of another one, numbered anew: what a problem needs once it is known which examples
/// matter. It has the whole matrix if the other one does, and else what the other one leaves of its budget.
template <class Real>
class RestrictedStore {
  public:
    RestrictedStore(GramStore<Real>& from, std::span<const Index> members)
        : points_(from.engine().row_points(), members),
          engine_(from.engine().kernel(), points_, points_, from.engine().blas()),
          store_(engine_, allowance(from) - points_.owned_bytes(), from.pool(), from.control()) {
        if (from.whole()) store_.copy_whole(from, members);
    }

    /// What it takes from the budget of the other store at least: the matrix, or the points and room for rows.
    [[nodiscard]] static bool fits(const GramStore<Real>& from, Index members) {
        const auto& points = from.engine().row_points();
        const Index copied = points.owned_bytes() / std::max<Index>(1, points.size()) * members;
        return copied + (from.whole() ? GramStore<Real>::square_bytes(members) : 0) <= from.unused_bytes();
    }

    [[nodiscard]] GramStore<Real>& store() { return store_; }

  private:
    /// Rows of another length do not fill the gaps that the freed ones leave: some of the memory is lost to them.
    [[nodiscard]] static Index allowance(const GramStore<Real>& from) {
        const Index unused = from.unused_bytes();
        return from.whole() ? unused : unused - unused / 8;
    }

    Points<Real> points_;
    KernelEngine<Real> engine_;
    GramStore<Real> store_;
};

}  // namespace polymargin
