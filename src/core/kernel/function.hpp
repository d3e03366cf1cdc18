#pragma once

#include <span>

#include "support/types.hpp"
#include "support/workers.hpp"

namespace polymargin {

enum class KernelType { linear, polynomial, rbf, sigmoid, precomputed };

/// A kernel that depends on the scalar product and, for RBF, on the squared lengths:
///   linear      <x, y>
///   polynomial  (gamma <x, y> + coef0)^degree
///   rbf         exp(-gamma |x - y|^2)
///   sigmoid     tanh(gamma <x, y> + coef0)
struct KernelSpec {
    KernelType type = KernelType::rbf;
    double gamma = 1.0;
    double coef0 = 0.0;
    int degree = 3;

    /// k(x, x) of a point with squared length `norm`.
    [[nodiscard]] double diagonal(double norm) const;
};

/// Turn a row of scalar products <x, y_j> into kernel values (`values` may be `products`). `norm` is |x|^2 and
/// `norms[j]` is |y_j|^2; only RBF reads them. Squared distances that are no more than rounding count as zero.
template <class Real>
void apply_kernel(const KernelSpec& kernel, Real norm, const Real* norms, const Real* products, Real* values,
                  Index count);

/// The same for a whole matrix, or any part of one. RBF reads -|x - y|^2 / 2, which is the scalar product of points
/// without length. A stop leaves the rest undone.
template <class Real>
void apply_kernel(const KernelSpec& kernel, std::span<const Real> products, std::span<Real> values,
                  const Workers& workers);

}  // namespace polymargin
