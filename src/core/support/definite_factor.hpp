#pragma once

#include <span>
#include <vector>

#include "support/blas.hpp"
#include "support/types.hpp"

namespace polymargin {

/// Cholesky's factor L of a positive definite matrix A = L L' that loses and gains variables: a new factor takes m^3 /
/// 6 multiplications, a variable less or more about m^2.
class DefiniteFactor {
  public:
    explicit DefiniteFactor(const Blas& blas) : blas_(blas) {}

    [[nodiscard]] Index size() const { return size_; }
    /// Forget the matrix.
    void clear() { size_ = 0; }

    /// Factorise a matrix of so many variables: `fill(column, out)` writes the numbers of a column from the diagonal
    /// on. False if the matrix is not positive definite; there is no factor then.
    template <class Fill>
    bool factorise(Index size, Fill&& fill) {
        reserve(size);
        for (Index k = 0; k < size; ++k) fill(k, column(k) + k);
        size_ = size;
        return finish();
    }

    /// Take a variable out of the matrix. Those that follow move up.
    void remove(Index variable);
    /// Add a variable behind the others: its values with them, which are overwritten, and its own one. False if the
    /// matrix is then not positive definite; it stays as it was.
    bool append(std::span<double> values, double own);
    /// Solve A x = right in place.
    void solve(std::span<double> right) const;

  private:
    [[nodiscard]] double* column(Index k) { return values_.data() + k * stride_; }
    void reserve(Index size);
    bool finish();

    const Blas& blas_;
    std::vector<double> values_, carried_;  // L by columns, and what a removal adds to the rest of the matrix
    Index size_ = 0, stride_ = 0;
};

}  // namespace polymargin
