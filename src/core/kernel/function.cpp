#include "kernel/function.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "support/multiversion.hpp"

namespace polymargin {
namespace {

/// exp(x) for x <= 0 without branches or calls, so that loops around it vectorise: x = n ln 2 + r with |r| <= ln(2)/2,
/// a Taylor polynomial for exp(r) whose remainder is below the last bit, and n put into the exponent.
/// Values whose result would be subnormal come out as zero.
template <class Real>
POLYMARGIN_INLINE Real exp_nonpositive(Real x) {
    constexpr bool single = std::is_same_v<Real, float>;
    using Bits = std::conditional_t<single, std::int32_t, std::int64_t>;
    constexpr Real lowest = single ? Real(-87.0) : Real(-708.0);
    constexpr Real ln2_high = single ? Real(0.693145751953125) : Real(0.6931471803691238);
    constexpr Real ln2_low = single ? Real(1.42860682030941723e-6) : Real(1.9082149292705877e-10);
    constexpr Real log2_e = Real(1.4426950408889634);
    // Adding and subtracting this rounds to the nearest integer and leaves the integer in the low bits.
    constexpr Real magic = single ? Real(12582912.0) : Real(6755399441055744.0);
    constexpr int mantissa = single ? 23 : 52;
    constexpr Bits bias = single ? 127 : 1023;

    const Real clamped = x > lowest ? x : lowest;
    const Real shifted = clamped * log2_e + magic;
    const Bits n = std::bit_cast<Bits>(shifted) - std::bit_cast<Bits>(magic);
    const Real whole = static_cast<Real>(n);
    const Real r = (clamped - whole * ln2_high) - whole * ln2_low;
    constexpr int order = single ? 7 : 13;
    Real p = Real(1);
#pragma GCC unroll 16
    for (int i = order; i >= 1; --i) p = p * (r * (Real(1) / Real(i))) + Real(1);
    const Real scale = std::bit_cast<Real>(static_cast<Bits>((n + bias) << mantissa));
    return x > lowest ? p * scale : Real(0);
}

/// Squared distances below this share of the squared lengths are rounding: the points count as equal. Equal examples
/// then have the kernel value 1, with each other as with themselves, and no distance is negative.
template <class Real>
constexpr Real kEqual = 8 * std::numeric_limits<Real>::epsilon();

template <class Real>
POLYMARGIN_INLINE void rbf(const KernelSpec& kernel, Real norm, const Real* norms, const Real* products, Real* values,
                           Index count) {
    const auto gamma = static_cast<Real>(kernel.gamma);
    for (Index j = 0; j < count; ++j) {
        const Real sum = norm + norms[j];
        const Real distance = sum - Real(2) * products[j];
        values[j] = exp_nonpositive<Real>(-gamma * (distance > kEqual<Real> * sum ? distance : Real(0)));
    }
}

template <class Real>
POLYMARGIN_INLINE void sigmoid(const KernelSpec& kernel, const Real* products, Real* values, Index count) {
    const auto gamma = static_cast<Real>(kernel.gamma);
    const auto coef0 = static_cast<Real>(kernel.coef0);
    for (Index j = 0; j < count; ++j) {
        const Real z = gamma * products[j] + coef0;
        const Real size = z < Real(0) ? -z : z;
        const Real e = exp_nonpositive<Real>(Real(-2) * size);  // tanh|z| = (1 - e^-2|z|) / (1 + e^-2|z|)
        const Real t = (Real(1) - e) / (Real(1) + e);
        values[j] = z < Real(0) ? -t : t;
    }
}

/// Powers by squaring, a strip of the row at a time so that the strip stays in registers or L1.
template <class Real>
POLYMARGIN_INLINE void polynomial(const KernelSpec& kernel, const Real* products, Real* values, Index count) {
    const auto gamma = static_cast<Real>(kernel.gamma);
    const auto coef0 = static_cast<Real>(kernel.coef0);
    constexpr Index strip = 64;
    Real base[strip], power[strip];
    for (Index start = 0; start < count; start += strip) {
        const Index length = std::min(strip, count - start);
        for (Index j = 0; j < length; ++j) base[j] = gamma * products[start + j] + coef0;
        for (Index j = 0; j < length; ++j) power[j] = Real(1);
        for (int d = kernel.degree; d > 0; d >>= 1) {
            if (d & 1) {
                for (Index j = 0; j < length; ++j) power[j] *= base[j];
            }
            for (Index j = 0; j < length; ++j) base[j] *= base[j];
        }
        for (Index j = 0; j < length; ++j) values[start + j] = power[j];
    }
}

template <class Real>
POLYMARGIN_INLINE void row_of(const KernelSpec& kernel, Real norm, const Real* norms, const Real* products,
                              Real* values, Index count) {
    switch (kernel.type) {
        case KernelType::rbf:
            return rbf(kernel, norm, norms, products, values, count);
        case KernelType::polynomial:
            return polynomial(kernel, products, values, count);
        case KernelType::sigmoid:
            return sigmoid(kernel, products, values, count);
        case KernelType::linear:
        case KernelType::precomputed:
            if (values != products) std::copy_n(products, count, values);
    }
}

// Multi-versioning wants plain functions, hence one for each precision.
POLYMARGIN_MULTIVERSION void versioned_row(const KernelSpec& kernel, float norm, const float* norms,
                                           const float* products, float* values, Index count) {
    row_of<float>(kernel, norm, norms, products, values, count);
}
POLYMARGIN_MULTIVERSION void versioned_row(const KernelSpec& kernel, double norm, const double* norms,
                                           const double* products, double* values, Index count) {
    row_of<double>(kernel, norm, norms, products, values, count);
}

}  // namespace

double KernelSpec::diagonal(double norm) const {
    switch (type) {
        case KernelType::polynomial:
            return std::pow(gamma * norm + coef0, degree);
        case KernelType::rbf:
            return 1.0;
        case KernelType::sigmoid:
            return std::tanh(gamma * norm + coef0);
        default:
            return norm;
    }
}

template <class Real>
void apply_kernel(const KernelSpec& kernel, Real norm, const Real* norms, const Real* products, Real* values,
                  Index count) {
    versioned_row(kernel, norm, norms, products, values, count);
}

template <class Real>
void apply_kernel(const KernelSpec& kernel, std::span<const Real> products, std::span<Real> values,
                  const Workers& workers) {
    if (products.size() != values.size()) throw std::invalid_argument("every product needs a place for its value");
    const std::vector<Real> lengths(Workers::kPart, Real(0));
    const auto apply = [&](Range part) {
        for (Index at = part.begin; at < part.end; at += Workers::kPart) {
            const Index count = std::min(Workers::kPart, part.end - at);
            apply_kernel<Real>(kernel, Real(0), lengths.data(), products.data() + at, values.data() + at, count);
        }
    };
    constexpr Index parts = 256;  // in a task: what a thread does at once should take a while
    workers.for_parts(std::ssize(products), apply, parts * Workers::kPart);
}

template void apply_kernel<float>(const KernelSpec&, std::span<const float>, std::span<float>, const Workers&);
template void apply_kernel<double>(const KernelSpec&, std::span<const double>, std::span<double>, const Workers&);
template void apply_kernel<float>(const KernelSpec&, float, const float*, const float*, float*, Index);
template void apply_kernel<double>(const KernelSpec&, double, const double*, const double*, double*, Index);

}  // namespace polymargin
