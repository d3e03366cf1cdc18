#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "linear/rows.hpp"
#include "support/blas.hpp"
#include "support/control.hpp"
#include "support/thread_pool.hpp"

namespace polymargin {

/// An example that curves the scores of some classes: `by` times its square, for the classes of the set. In pairs with
/// `own`, which is among them, it curves their differences.
struct CurvedRow {
    std::uint32_t row;
    std::uint64_t classes;
    double by;
    Index own = -1;
};

/// The blocks on the diagonal of a Hessian `d + sum_i by_i P_i (x) x_i x_i'`, one for each class: a preconditioner.
/// With many rows a block is made of a share of them, which stand for the others.
template <class Real>
class ClassBlocks {
  public:
    /// With `bias` above zero every example has one more feature, of that value.
    ClassBlocks(const LinearRows<Real>& rows, Index classes, double bias, const Blas& blas, ThreadPool& pool,
                const Control& control);

    /// Factor the blocks of these rows; `coupled`: what a class has, the others of its row share the loss of.
    /// `diagonal`: d of each feature and class, features x `width`. After a stop request some may be left as they were.
    void factor(std::span<const CurvedRow> curved, bool coupled, std::span<const double> diagonal, Index width);
    /// Divide by the blocks: a vector of features x `width` numbers, of which a class is a column.
    void divide(std::span<double> vector, Index width) const;

    /// Multiplications, about, of `factor` with so many rows, and of `divide`; those that wait for memory count more.
    [[nodiscard]] double work(Index curved) const;
    [[nodiscard]] double work_of_division() const;

  private:
    [[nodiscard]] Index most_rows() const;
    void factor(Index m, std::span<const CurvedRow> curved, bool coupled, std::span<const double> diagonal,
                Index width);

    const LinearRows<Real>& rows_;
    double bias_;
    Index size_;  // of a block
    const Blas& blas_;
    ThreadPool& pool_;
    const Control& control_;
    std::vector<std::vector<double>> blocks_;  // Cholesky factors, column-major; empty: the identity
};

}  // namespace polymargin
