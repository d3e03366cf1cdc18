#pragma once

#include <span>
#include <vector>

#include "solver/centred_coupling.hpp"
#include "solver/kernel_product.hpp"
#include "support/blas.hpp"
#include "support/buffer.hpp"

namespace polymargin {

/// The inverse of `I + M K`, where the part of M for an example is `D - D 1 1'D / 1'D 1` with a weight D for each
/// class, but for entries that hardly matter. M is the limit of `(D^-1 + t 1 1')^-1` for a large t, so that with the
/// sum O over the classes and
///
///     E_m = (D_m^-1 + K)^-1 = D_m^1/2 (I + D_m^1/2 K D_m^1/2)^-1 D_m^1/2 ,
///
///     (I + M K)^-1 r = r - (E - E O' (sum_m E_m)^-1 O E) K r ,
///
/// which takes a factor for each class and one for all of them together (Rasmussen and Williams, Gaussian Processes for
/// Machine Learning, 2006, section 3.5, where M is of the same form). It is self-adjoint in the inner product `x'K y`,
/// as the inverse itself is, and positive definite however inexact the sum of the E_m is, which has to be formed.
///
/// Where rows have no mean, `M = P N P`, and `CentredCoupling` has what takes the place of the inverse of the sum.
///
/// Unlike `SampledInverse` it knows how classes depend on each other. It pays when few coefficients are free, as they
/// are near the end.
template <class Real>
class CoupledInverse {
  public:
    CoupledInverse(const KernelProduct<Real>& kernel, Index classes, bool centred, ThreadPool& pool, const Blas& blas);

    /// Find the entries that matter: those where the diagonal of M is not negligible, or, where rows have no mean, the
    /// weight. `spare` are the t of `CentredCoupling` of all examples, or nothing.
    void choose(ClassMajor<const double> diagonal, ClassMajor<const double> weights, double negligible,
                std::span<const double> spare = {});
    /// Operations that a factorisation for them will take, the bytes it has to keep, and the most examples of a class.
    [[nodiscard]] double factor_cost() const;
    [[nodiscard]] Index bytes() const;
    [[nodiscard]] Index largest_class() const;
    /// Factorise. False if that failed, or a stop was requested.
    [[nodiscard]] bool factor(const Control& control);
    /// What the product with r is less than r, from `K r`; zero but for the examples that matter.
    void apply(ClassMajor<const double> kr, ClassMajor<double> less) const;
    /// These examples.
    [[nodiscard]] std::span<const Index> examples() const { return examples_; }

  private:
    struct ClassFactor {
        std::vector<Index> places;  // of its examples, among those that matter
        std::vector<double> roots;  // of D
        // With L the lower factor of I + D^1/2 K D^1/2: its diagonal; L' above the diagonal and, for the sum, the
        // inverse on and below it, column-major.
        std::vector<double> diagonal;
        Buffer<double> factor;
    };

    void add_place(ClassFactor& made, Index i, double weight) const;
    void fill_lower(ClassFactor& made, double ridge) const;
    [[nodiscard]] bool factor_class(ClassFactor& made, const Control& control) const;
    void fill_sum(double ridge);
    [[nodiscard]] bool factor_sum(const Control& control);
    /// `out = E_m x`, x and out being those of all examples that matter.
    void multiply(const ClassFactor& made, const double* x, double* out) const;

    const KernelProduct<Real>& kernel_;
    ThreadPool& pool_;
    const Blas& blas_;
    std::vector<Index> examples_;
    std::vector<ClassFactor> classes_;
    Buffer<double> sum_;  // the factor of sum_m E_m
    bool centred_;
    CentredCoupling<Real> coupling_;
    std::vector<double> spare_;  // of the examples that matter
};

}  // namespace polymargin
