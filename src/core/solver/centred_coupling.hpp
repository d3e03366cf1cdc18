#pragma once

#include <span>
#include <vector>

#include "solver/kernel_product.hpp"
#include "support/blas.hpp"
#include "support/buffer.hpp"

namespace polymargin {

/// How classes depend on each other where rows have no mean. With `M = P N P` and the weights D of `CoupledInverse`,
/// the matrix that an example's part of the inverse needs is, the sum over its classes being O,
///
///     (N^-1 + K P)^-1 = (D^-1 + K + O'(T^-1 - K / k) O)^-1 = E + E O'Z O E ,
///
/// for `N^-1 = D^-1 + 1 1' / t`, where t is what `BarrierRows` calls damping less the sum of the weights. With the sum
/// `S = sum_m E_m`, `H = (T + S)^-1` and `K = L L'`, Z is found by taking in one after the other:
///
///     Z = -H + H T R T H,   R = L (k - L' G L)^-1 L',   G = T - T H T ;
///
/// without limits of sums, where t is infinite, `Z = R` and `G = S`. `k - L'GL` is positive definite, for each E_m is
/// less than the inverse of K.
template <class Real>
class CentredCoupling {
  public:
    CentredCoupling(const KernelProduct<Real>& kernel, ThreadPool& pool, const Blas& blas)
        : kernel_(kernel), pool_(pool), blas_(blas) {}

    /// Factorise for these examples. `sum` is S, on and below the diagonal, column-major, and is overwritten; `spare`
    /// are their t, or nothing. False if that failed, or a stop was requested.
    [[nodiscard]] bool factor(std::span<const Index> examples, Index classes, std::span<const double> spare,
                              Buffer<double>& sum, const Control& control);
    /// `x = Z x`
    void apply(std::span<double> x) const;

    /// Operations of a factorisation, in units of the cube of the examples, and numbers kept, in those of the square.
    static constexpr double kCost = 4.0;
    static constexpr Index kPlanes = 3;

  private:
    [[nodiscard]] bool factor_kernel(std::span<const Index> examples, const Control& control);
    /// The factor of T + S, and G in the place of S.
    [[nodiscard]] bool take_limits(Buffer<double>& sum, const Control& control);
    void multiply_by_factors(Buffer<double>& sum);
    [[nodiscard]] bool factor_inner(double classes, const Buffer<double>& product, const Control& control);
    /// Copy what is below the diagonal above it.
    void mirror(double* matrix) const;
    /// `x = R x`
    void apply_inner(std::span<double> x) const;
    template <class Part>
    void for_columns(const Part& part) const;

    const KernelProduct<Real>& kernel_;
    ThreadPool& pool_;
    const Blas& blas_;
    Index size_ = 0;
    std::vector<double> spare_;
    Buffer<double> lower_, inner_, limits_, work_;  // L, the factors of k - L'GL and T + S; column-major
};

}  // namespace polymargin
