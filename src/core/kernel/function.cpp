#include "kernel/function.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
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

/// What a kernel reads, number by number: as it was computed, ...
template <class Real>
struct AsComputed {
    const Real* inputs;
    POLYMARGIN_INLINE Real operator()(Index j) const { return inputs[j]; }
};

/// ... or squared distances from scalar products and squared lengths.
template <class Real>
struct SquaredDistances {
    Real norm;
    const Real* norms;
    const Real* products;
    POLYMARGIN_INLINE Real operator()(Index j) const {
        const Real sum = norm + norms[j];
        const Real distance = sum - Real(2) * products[j];
        return distance > kEqual<Real> * sum ? distance : Real(0);
    }
};

// The kernels. Each has its name, what it reads, whether points may be moved, its value for equal points, how rounding
// grows in it, and a loop without branches or calls from what it reads to values. One that reads sums over features
// also has the term of the sum.

struct Linear {
    static constexpr KernelName id{KernelType::linear, "linear", KernelInput::products};
    static constexpr bool translation_invariant = false;
    static constexpr bool exponential = false;

    static double diagonal(const KernelSpec&, double norm) { return norm; }
    static double rounding(const KernelSpec&, double max_norm) { return std::max(1.0, max_norm); }
    static double pair_rounding(const KernelSpec&, double size) { return size; }

    template <class Real, class Input>
    POLYMARGIN_INLINED static void values(const KernelSpec&, const Input& input, Real* values, Index count) {
        for (Index j = 0; j < count; ++j) values[j] = input(j);
    }
};

/// Powers by squaring, a strip of the row at a time so that the strip stays in registers or L1.
struct Polynomial {
    static constexpr KernelName id{KernelType::polynomial, "poly", KernelInput::products};
    static constexpr bool translation_invariant = false;
    static constexpr bool exponential = false;

    static double diagonal(const KernelSpec& kernel, double norm) {
        return std::pow(kernel.gamma * norm + kernel.coef0, kernel.degree);
    }
    static double rounding(const KernelSpec& kernel, double max_norm) {
        return std::max(1, kernel.degree) * std::max(1.0, std::abs(diagonal(kernel, max_norm)));
    }
    static double pair_rounding(const KernelSpec& kernel, double size) {
        return std::max(1, kernel.degree) * std::pow(kernel.gamma * size + std::abs(kernel.coef0), kernel.degree);
    }

    template <class Real, class Input>
    POLYMARGIN_INLINED static void values(const KernelSpec& kernel, const Input& input, Real* values, Index count) {
        const auto gamma = static_cast<Real>(kernel.gamma);
        const auto coef0 = static_cast<Real>(kernel.coef0);
        constexpr Index strip = 64;
        Real base[strip], power[strip];
        for (Index start = 0; start < count; start += strip) {
            const Index length = std::min(strip, count - start);
            for (Index j = 0; j < length; ++j) base[j] = gamma * input(start + j) + coef0;
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
};

struct Rbf {
    static constexpr KernelName id{KernelType::rbf, "rbf", KernelInput::squared_distances};
    static constexpr bool translation_invariant = true;
    static constexpr bool exponential = true;

    static double diagonal(const KernelSpec&, double) { return 1.0; }
    static double rounding(const KernelSpec& kernel, double max_norm) { return 1.0 + kernel.gamma * max_norm; }
    static double pair_rounding(const KernelSpec& kernel, double size) { return 1.0 + kernel.gamma * size; }

    template <class Real, class Input>
    POLYMARGIN_INLINED static void values(const KernelSpec& kernel, const Input& input, Real* values, Index count) {
        const auto gamma = static_cast<Real>(kernel.gamma);
        for (Index j = 0; j < count; ++j) values[j] = exp_nonpositive<Real>(-gamma * input(j));
    }
};

struct Sigmoid {
    static constexpr KernelName id{KernelType::sigmoid, "sigmoid", KernelInput::products};
    static constexpr bool translation_invariant = false;
    static constexpr bool exponential = false;

    static double diagonal(const KernelSpec& kernel, double norm) {
        return std::tanh(kernel.gamma * norm + kernel.coef0);
    }
    static double rounding(const KernelSpec& kernel, double max_norm) { return 1.0 + kernel.gamma * max_norm; }
    static double pair_rounding(const KernelSpec& kernel, double size) { return 1.0 + kernel.gamma * size; }

    template <class Real, class Input>
    POLYMARGIN_INLINED static void values(const KernelSpec& kernel, const Input& input, Real* values, Index count) {
        const auto gamma = static_cast<Real>(kernel.gamma);
        const auto coef0 = static_cast<Real>(kernel.coef0);
        for (Index j = 0; j < count; ++j) {
            const Real z = gamma * input(j) + coef0;
            const Real size = z < Real(0) ? -z : z;
            const Real e = exp_nonpositive<Real>(Real(-2) * size);  // tanh|z| = (1 - e^-2|z|) / (1 + e^-2|z|)
            const Real t = (Real(1) - e) / (Real(1) + e);
            values[j] = z < Real(0) ? -t : t;
        }
    }
};

struct Precomputed : Linear {
    static constexpr KernelName id{KernelType::precomputed, "precomputed", KernelInput::matrix};
};

struct Laplacian {
    static constexpr KernelName id{KernelType::laplacian, "laplacian", KernelInput::feature_sums};
    static constexpr bool translation_invariant = true;
    static constexpr bool exponential = true;

    static double diagonal(const KernelSpec&, double) { return 1.0; }
    /// Roundings of the features are a random walk, whose length is that of the point.
    static double rounding(const KernelSpec& kernel, double max_norm) {
        return 1.0 + kernel.gamma * std::sqrt(max_norm);
    }
    static double pair_rounding(const KernelSpec& kernel, double size) { return 1.0 + kernel.gamma * size; }

    template <class Real>
    POLYMARGIN_INLINED static Real term(Real x, Real y) {
        return std::abs(x - y);
    }

    template <class Real, class Input>
    POLYMARGIN_INLINED static void values(const KernelSpec& kernel, const Input& input, Real* values, Index count) {
        Rbf::values<Real>(kernel, input, values, count);
    }
};

/// The one list of them, in the order of the enumeration.
using Kernels = std::tuple<Linear, Polynomial, Rbf, Sigmoid, Precomputed, Laplacian>;

template <class... Kernel>
constexpr auto names_of(std::type_identity<std::tuple<Kernel...>>) {
    return std::array{Kernel::id...};
}
constexpr auto kNames = names_of(std::type_identity<Kernels>{});

constexpr bool in_order() {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (kNames[i].type != static_cast<KernelType>(i)) return false;
    }
    return true;
}
static_assert(in_order(), "kernels must be listed in the order of KernelType");

/// Call `visit(kernel)` with the kernel of a type.
template <class Visit, std::size_t... i>
POLYMARGIN_INLINE void visit_kernel(KernelType type, const Visit& visit, std::index_sequence<i...>) {
    static_cast<void>(
        ((static_cast<std::size_t>(type) == i && (visit(std::tuple_element_t<i, Kernels>{}), true)) || ...));
}
template <class Visit>
POLYMARGIN_INLINE void visit_kernel(KernelType type, const Visit& visit) {
    visit_kernel(type, visit, std::make_index_sequence<std::tuple_size_v<Kernels>>{});
}

template <class Kernel>
constexpr bool kSumsFeatures = Kernel::id.reads == KernelInput::feature_sums;

template <class Real>
POLYMARGIN_INLINE void row_of(const KernelSpec& kernel, Real norm, const Real* norms, const Real* inputs, Real* values,
                              Index count) {
    visit_kernel(kernel.type, [&]<class Kernel>(Kernel) POLYMARGIN_INLINED {
        if constexpr (Kernel::id.reads == KernelInput::squared_distances) {
            if (norms != nullptr) {
                return Kernel::template values<Real>(kernel, SquaredDistances<Real>{norm, norms, inputs}, values,
                                                     count);
            }
        }
        Kernel::template values<Real>(kernel, AsComputed<Real>{inputs}, values, count);
    });
}

/// Features summed at a time: their panel stays in the L1 cache, and sums of sums round less.
constexpr Index kFeaturesAtOnce = 256;

template <class Kernel, int columns_at_once, class Real>
POLYMARGIN_INLINE void add_feature_sums(const Real* panel, const Real* columns, Index features, Index count,
                                        Real* sums) {
    constexpr Index lanes = kLanes<Real>;
    Real acc[columns_at_once][lanes] = {};
    for (Index f = 0; f < count; ++f) {
        const Real* x = panel + f * lanes;
        for (int c = 0; c < columns_at_once; ++c) {
            const Real y = columns[c * features + f];
            for (Index l = 0; l < lanes; ++l) acc[c][l] += Kernel::template term<Real>(x[l], y);
        }
    }
    for (int c = 0; c < columns_at_once; ++c) {
        for (Index l = 0; l < lanes; ++l) sums[c * lanes + l] += acc[c][l];
    }
}

template <class Real>
POLYMARGIN_INLINE void dense_sums_of(const KernelSpec& kernel, const Real* panel, const Real* columns, Index features,
                                     Index count, Real* sums) {
    constexpr Index lanes = kLanes<Real>;
    constexpr int together = 4;
    visit_kernel(kernel.type, [&]<class Kernel>(Kernel) POLYMARGIN_INLINED {
        if constexpr (kSumsFeatures<Kernel>) {
            std::fill_n(sums, count * lanes, Real(0));
            for (Index f = 0; f < features; f += kFeaturesAtOnce) {
                const Index some = std::min(kFeaturesAtOnce, features - f);
                const Real* part = panel + f * lanes;
                Index c = 0;
                for (; c + together <= count; c += together) {
                    add_feature_sums<Kernel, together>(part, columns + c * features + f, features, some,
                                                       sums + c * lanes);
                }
                for (; c < count; ++c) {
                    add_feature_sums<Kernel, 1>(part, columns + c * features + f, features, some, sums + c * lanes);
                }
            }
        }
    });
}

/// Sums are formed in double: what empty features add is a difference of sums.
template <class Real>
POLYMARGIN_INLINE void sparse_sums_of(const KernelSpec& kernel, const Real* panel, const double* totals,
                                      const Real* values, const Index* places, Index count, Real* sums) {
    constexpr Index lanes = kLanes<Real>;
    visit_kernel(kernel.type, [&]<class Kernel>(Kernel) POLYMARGIN_INLINED {
        if constexpr (kSumsFeatures<Kernel>) {
            double acc[lanes] = {}, covered[lanes] = {};
            for (Index p = 0; p < count; ++p) {
                const Real y = values[p];
                const Real* x = panel + places[p] * lanes;
                for (Index l = 0; l < lanes; ++l) {
                    acc[l] += static_cast<double>(Kernel::template term<Real>(x[l], y));
                    covered[l] += static_cast<double>(Kernel::template term<Real>(x[l], Real(0)));
                }
            }
            for (Index l = 0; l < lanes; ++l) sums[l] = static_cast<Real>(acc[l] + (totals[l] - covered[l]));
        }
    });
}

// Multi-versioning wants plain functions, hence one for each precision.
#define POLYMARGIN_KERNEL_LOOPS(Real)                                                                                 \
    POLYMARGIN_MULTIVERSION void versioned_row(const KernelSpec& kernel, Real norm, const Real* norms,                \
                                               const Real* inputs, Real* values, Index count) {                       \
        row_of<Real>(kernel, norm, norms, inputs, values, count);                                                     \
    }                                                                                                                 \
    POLYMARGIN_MULTIVERSION void versioned_dense(const KernelSpec& kernel, const Real* panel, const Real* columns,    \
                                                 Index features, Index count, Real* sums) {                           \
        dense_sums_of<Real>(kernel, panel, columns, features, count, sums);                                           \
    }                                                                                                                 \
    POLYMARGIN_MULTIVERSION void versioned_sparse(const KernelSpec& kernel, const Real* panel, const double* totals,  \
                                                  const Real* values, const Index* places, Index count, Real* sums) { \
        sparse_sums_of<Real>(kernel, panel, totals, values, places, count, sums);                                     \
    }
POLYMARGIN_KERNEL_LOOPS(float)
POLYMARGIN_KERNEL_LOOPS(double)
#undef POLYMARGIN_KERNEL_LOOPS

}  // namespace

std::span<const KernelName> kernel_names() {
    return kNames;
}

KernelInput KernelSpec::reads() const {
    return kNames[static_cast<std::size_t>(type)].reads;
}

bool KernelSpec::is_translation_invariant() const {
    bool answer = false;
    visit_kernel(type, [&]<class Kernel>(Kernel) { answer = Kernel::translation_invariant; });
    return answer;
}

double KernelSpec::diagonal(double norm) const {
    double value = 0.0;
    visit_kernel(type, [&]<class Kernel>(Kernel) { value = Kernel::diagonal(*this, norm); });
    return value;
}

bool KernelSpec::is_exponential() const {
    bool answer = false;
    visit_kernel(type, [&]<class Kernel>(Kernel) { answer = Kernel::exponential; });
    return answer;
}

double KernelSpec::pair_rounding(double square, double largest_square) const {
    constexpr double largest = 1e150;  // sizes are multiplied by more
    double size = std::sqrt(square) * std::sqrt(largest_square);
    if (reads() == KernelInput::squared_distances) size = square + largest_square;
    // Roundings of the features are a random walk, whose length is that of the points.
    if (reads() == KernelInput::feature_sums) size = std::sqrt(square) + std::sqrt(largest_square);
    visit_kernel(type, [&]<class Kernel>(Kernel) { size = Kernel::pair_rounding(*this, size); });
    return size <= largest ? size : largest;  // also where it overflowed
}

double KernelSpec::rounding(double max_norm) const {
    double size = 0.0;
    visit_kernel(type, [&]<class Kernel>(Kernel) { size = Kernel::rounding(*this, max_norm); });
    return size;
}

template <class Real>
void apply_kernel(const KernelSpec& kernel, Real norm, const Real* norms, const Real* inputs, Real* values,
                  Index count) {
    versioned_row(kernel, norm, norms, inputs, values, count);
}

template <class Real>
void apply_kernel(const KernelSpec& kernel, std::span<const Real> inputs, std::span<Real> values,
                  const Workers& workers) {
    if (inputs.size() != values.size()) throw std::invalid_argument("every input needs a place for its value");
    const auto apply = [&](Range part) {
        apply_kernel<Real>(kernel, Real(0), nullptr, inputs.data() + part.begin, values.data() + part.begin,
                           part.size());
    };
    constexpr Index parts = 256;  // in a task: what a thread does at once should take a while
    workers.for_parts(std::ssize(inputs), apply, parts * Workers::kPart);
}

template <class Real>
void dense_feature_sums(const KernelSpec& kernel, const Real* panel, const Real* columns, Index features, Index count,
                        Real* sums) {
    versioned_dense(kernel, panel, columns, features, count, sums);
}

template <class Real>
void sparse_feature_sums(const KernelSpec& kernel, const Real* panel, const double* totals, const Real* values,
                         const Index* places, Index count, Real* sums) {
    versioned_sparse(kernel, panel, totals, values, places, count, sums);
}

template <class Real>
double feature_total(const KernelSpec& kernel, const Real* values, Index count) {
    double total = 0.0;
    visit_kernel(kernel.type, [&]<class Kernel>(Kernel) {
        if constexpr (kSumsFeatures<Kernel>) {
            for (Index p = 0; p < count; ++p) {
                total += static_cast<double>(Kernel::template term<Real>(values[p], Real(0)));
            }
        }
    });
    return total;
}

#define POLYMARGIN_INSTANTIATE(Real)                                                                                  \
    template void apply_kernel<Real>(const KernelSpec&, std::span<const Real>, std::span<Real>, const Workers&);      \
    template void apply_kernel<Real>(const KernelSpec&, Real, const Real*, const Real*, Real*, Index);                \
    template void dense_feature_sums<Real>(const KernelSpec&, const Real*, const Real*, Index, Index, Real*);         \
    template void sparse_feature_sums<Real>(const KernelSpec&, const Real*, const double*, const Real*, const Index*, \
                                            Index, Real*);                                                            \
    template double feature_total<Real>(const KernelSpec&, const Real*, Index);
POLYMARGIN_INSTANTIATE(float)
POLYMARGIN_INSTANTIATE(double)
#undef POLYMARGIN_INSTANTIATE

}  // namespace polymargin
