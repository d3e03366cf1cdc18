#pragma once

#include <vector>

#include "solver/kernel_product.hpp"
#include "support/blas.hpp"
#include "support/buffer.hpp"

namespace polymargin {

/// Nearly the inverse of `I + D_m K`, class by class, D_m being diagonal: `I + D~ K` is inverted, where `D~` has few
/// entries, each made larger by the inverse of the probability with which it was drawn. With `S` the rows drawn and `E`
/// their columns of the identity,
///
///     (I + D~ K)^-1 r = r - E D~^1/2 (I + D~^1/2 K_SS D~^1/2)^-1 D~^1/2 (K r)_S ,
///
/// which is self-adjoint in the inner product `x'K y`, as the inverse itself is. Rows are drawn systematically, with
/// probabilities proportional to the square root of the entry, and all that matter if they are few: the draw does not
/// depend on chance. Entries below `negligible` are left out: there `I + D K` is nearly I.
template <class Real>
class SampledInverse {
  public:
    SampledInverse(const KernelProduct<Real>& kernel, Index classes, ThreadPool& pool, const Blas& blas);

    /// Factorise for these diagonals, with at most `most` rows of a class. False if that failed, or a stop was
    /// requested.
    [[nodiscard]] bool factor(ClassMajor<const double> diagonal, Index most, double negligible, const Control& control);
    /// What the product with r is less than r, from `K r`; zero but for the rows drawn.
    void apply(ClassMajor<const double> kr, ClassMajor<double> less) const;

    /// Operations that the last factorisation took, and that an application takes.
    [[nodiscard]] double factor_cost() const;
    [[nodiscard]] double apply_cost() const;
    /// Rows that would have been taken had there been no limit, of the class that has most.
    [[nodiscard]] Index live() const { return live_; }

  private:
    struct ClassFactor {
        std::vector<Index> rows;
        std::vector<double> roots;  // of D~
        Buffer<double> factor;      // lower, column-major
    };

    [[nodiscard]] bool factor_class(const double* diagonal, Index most, double negligible, const Control& control,
                                    ClassFactor& made) const;
    /// `I + D~^1/2 K_SS D~^1/2`, the diagonal of the second part being larger by this share.
    void fill_lower(ClassFactor& made, double ridge) const;

    const KernelProduct<Real>& kernel_;
    ThreadPool& pool_;
    const Blas& blas_;
    std::vector<ClassFactor> classes_;
    Index live_ = 0;
};

/// Rows drawn systematically and the inverse of the probability of each.
struct SystematicSample {
    std::vector<Index> rows;
    std::vector<double> weights;
};

/// Draw about `most` of the entries above `negligible` with probabilities proportional to their square roots, those
/// that would have more than 1 being sure.
[[nodiscard]] SystematicSample draw_systematically(std::span<const double> values, Index most, double negligible);

}  // namespace polymargin
