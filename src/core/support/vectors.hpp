#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "support/buffer.hpp"
#include "support/multiversion.hpp"

namespace polymargin {

/// Vectors of `Bytes` bytes. Sums and products of any width are fast. Comparisons and choices are so only where a
/// register of the processor holds the vector, else the compiler takes it apart, number by number: such passes get
/// their width from `with_widest_vectors`.
template <class Real, int Bytes>
struct Vectors {
    using Int = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;
    using Reals [[gnu::vector_size(Bytes)]] = Real;
    using Ints [[gnu::vector_size(Bytes)]] = Int;
    static constexpr int count = Bytes / static_cast<int>(sizeof(Real));
    static constexpr Ints lanes = []<int... lane>(std::integer_sequence<int, lane...>) {
        return Ints{lane...};
    }(std::make_integer_sequence<int, count>{});
};

/// Passes keep this many running bests, so that one comparison does not wait for the last.
constexpr int kChains = 2;
/// Arrays that passes run over are padded to multiples of this: what the chains take in one turn, at any width.
template <class Real>
constexpr Index kStep = kChains * static_cast<Index>(kCacheLine / sizeof(Real));
template <class Real>
[[nodiscard]] constexpr Index whole_steps(Index n) {
    return (n + kStep<Real> - 1) / kStep<Real> * kStep<Real>;
}

template <int Bytes, class Real>
POLYMARGIN_INLINE typename Vectors<Real, Bytes>::Reals load(const Real* from) {
    typename Vectors<Real, Bytes>::Reals v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <int Bytes, class Real>
POLYMARGIN_INLINE void store(Real* to, const typename Vectors<Real, Bytes>::Reals& v) {
    std::memcpy(to, &v, sizeof v);
}

/// The running best of each lane and where it was found.
template <class Real, int Bytes>
struct Best {
    typename Vectors<Real, Bytes>::Reals value;
    typename Vectors<Real, Bytes>::Ints at;
};

template <class Real>
struct Found {
    Real value;
    Index at;
};

/// What all lanes come to by `reduce(a, b)`, which does not care about the order, in every lane: each lane meets its
/// opposite, then its neighbours, so that the lanes do not wait in line.
template <class Real, int Bytes, class Vector, class Reduce>
POLYMARGIN_INLINE Vector of_all_lanes(Vector v, const Reduce& reduce) {
    using V = Vectors<Real, Bytes>;
    for (int half = V::count / 2; half > 0; half /= 2) v = reduce(v, __builtin_shuffle(v, V::lanes ^ half));
    return v;
}

/// The smallest of all lanes, without branches: where it is cannot be predicted.
template <class Real, int Bytes>
POLYMARGIN_INLINE Found<Real> smallest(const Best<Real, Bytes>& a, const Best<Real, Bytes>& b) {
    using V = Vectors<Real, Bytes>;
    const auto first = a.value <= b.value;
    const auto value = first ? a.value : b.value;
    const auto at = first ? a.at : b.at;
    const auto lower = [](auto x, auto y) POLYMARGIN_INLINED { return x < y ? x : y; };
    const auto higher = [](auto x, auto y) POLYMARGIN_INLINED { return x > y ? x : y; };
    const Real least = of_all_lanes<Real, Bytes>(value, lower)[0];
    const typename V::Ints nowhere = typename V::Ints{} - 1;
    const auto lane = of_all_lanes<Real, Bytes>(value == least ? V::lanes : nowhere, higher)[0];
    return {least, at[lane & (V::count - 1)]};
}

/// The largest of all lanes.
template <class Real, int Bytes>
POLYMARGIN_INLINE Real largest(const typename Vectors<Real, Bytes>::Reals& v) {
    return of_all_lanes<Real, Bytes>(v, [](auto x, auto y) POLYMARGIN_INLINED { return x > y ? x : y; })[0];
}

namespace detail {
template <int Bytes>
using Width = std::integral_constant<int, Bytes>;

#ifdef POLYMARGIN_HAS_VERSIONS
template <class Pass>
__attribute__((target("arch=x86-64-v4"))) auto with_avx512(const Pass& pass) {
    return pass(Width<64>{});
}
template <class Pass>
__attribute__((target("arch=x86-64-v3"))) auto with_avx2(const Pass& pass) {
    return pass(Width<32>{});
}
#endif
}  // namespace detail

/// Call `pass(width)`, compiled for this processor, with the width of its vectors in bytes as a constant. The pass and
/// all that it calls must be inlined, to share the instruction set.
template <class Pass>
auto with_widest_vectors(const Pass& pass) {
#ifdef POLYMARGIN_HAS_VERSIONS
    if (__builtin_cpu_supports("x86-64-v4")) return detail::with_avx512(pass);
    if (__builtin_cpu_supports("x86-64-v3")) return detail::with_avx2(pass);
#endif
    return pass(detail::Width<16>{});
}

}  // namespace polymargin
