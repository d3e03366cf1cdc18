#pragma once

#include <span>

#include "support/buffer.hpp"
#include "support/types.hpp"
#include "support/workers.hpp"

namespace polymargin {

/// The kernels; the structs in function.cpp say what they are. New ones come at the end.
enum class KernelType { linear, polynomial, rbf, sigmoid, precomputed, laplacian };

/// What the values of a kernel are a function of.
enum class KernelInput {
    products,           ///< the scalar product <x, y>
    squared_distances,  ///< |x - y|^2
    feature_sums,       ///< sum_f term(x_f, y_f), the term being the kernel's own, and 0 where both are 0
    matrix,             ///< nothing: the values are given
};

/// A kernel and its parameters:
///   linear      <x, y>
///   polynomial  (gamma <x, y> + coef0)^degree
///   rbf         exp(-gamma |x - y|^2)
///   sigmoid     tanh(gamma <x, y> + coef0)
///   laplacian   exp(-gamma |x - y|_1)
struct KernelSpec {
    KernelType type = KernelType::rbf;
    double gamma = 1.0;
    double coef0 = 0.0;
    int degree = 3;

    [[nodiscard]] KernelInput reads() const;
    /// Whether values stay the same when all points are moved by the same vector.
    [[nodiscard]] bool is_translation_invariant() const;
    /// k(x, x) of a point with squared length `norm`; of a kernel that is given, `norm` is that value.
    [[nodiscard]] double diagonal(double norm) const;
    /// Rounding of the largest value, in units of the last place, for points of squared lengths up to `max_norm`.
    [[nodiscard]] double rounding(double max_norm) const;
    /// The same for the value of a point with squared length `square` and points of at most `largest_square`, in units
    /// of the last place of 1: the size of the terms that it is computed from.
    [[nodiscard]] double pair_rounding(double square, double largest_square) const;
    /// Whether values are exponentials, so that rounding is relative to them: tiny values have tiny errors.
    [[nodiscard]] bool is_exponential() const;
};

/// A kernel as it is listed: by what name it is known outside, and what it reads.
struct KernelName {
    KernelType type;
    const char* name;
    KernelInput reads;
};

/// All kernels, in the order of the enumeration.
[[nodiscard]] std::span<const KernelName> kernel_names();

/// Turn a row of scalar products <x, y_j>, or of sums over features, into kernel values (`values` may be `inputs`).
/// `norm` is |x|^2 and `norms[j]` is |y_j|^2; only kernels of squared distances read them. Squared distances that are
/// no more than rounding count as zero.
template <class Real>
void apply_kernel(const KernelSpec& kernel, Real norm, const Real* norms, const Real* inputs, Real* values,
                  Index count);

/// Turn what the kernel reads (products, squared distances or sums over features) into values, for a whole matrix or
/// any part of one. A stop leaves the rest undone.
template <class Real>
void apply_kernel(const KernelSpec& kernel, std::span<const Real> inputs, std::span<Real> values,
                  const Workers& workers);

/// Rows handled together when a block is not a matrix product: their values of one feature fill one cache line. A
/// *panel* has `kLanes` rows side by side, `panel[f * kLanes + l]` being feature f of row l.
template <class Real>
constexpr Index kLanes = static_cast<Index>(kCacheLine / sizeof(Real));

/// For kernels that read sums over features: `sums[c * kLanes + l] = sum_f term(panel[f * kLanes + l],
/// columns[c * features + f])` for `count` dense columns.
template <class Real>
void dense_feature_sums(const KernelSpec& kernel, const Real* panel, const Real* columns, Index features, Index count,
                        Real* sums);

/// The same for one sparse column with `count` entries `values[p]` of the features `places[p]`. `totals[l]` is
/// `sum_f term(panel[f * kLanes + l], 0)`, what row l sums up to with an empty column.
template <class Real>
void sparse_feature_sums(const KernelSpec& kernel, const Real* panel, const double* totals, const Real* values,
                         const Index* places, Index count, Real* sums);

/// `sum_p term(values[p], 0)`, added in this order.
template <class Real>
[[nodiscard]] double feature_total(const KernelSpec& kernel, const Real* values, Index count);

}  // namespace polymargin
