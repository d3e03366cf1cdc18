#pragma once

#include <cstdint>
#include <cstring>

#include "support/buffer.hpp"
#include "support/multiversion.hpp"

namespace polymargin {

/// Vectors of one cache line: what AVX-512 holds; the compiler splits them for smaller registers.
template <class Real>
struct Vectors;
template <>
struct Vectors<float> {
    using Reals = float __attribute__((vector_size(kCacheLine)));
    using Ints = std::int32_t __attribute__((vector_size(kCacheLine)));
    static constexpr Ints lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
};
template <>
struct Vectors<double> {
    using Reals = double __attribute__((vector_size(kCacheLine)));
    using Ints = std::int64_t __attribute__((vector_size(kCacheLine)));
    static constexpr Ints lanes = {0, 1, 2, 3, 4, 5, 6, 7};
};

template <class Real>
constexpr int kLanes = static_cast<int>(kCacheLine / sizeof(Real));
/// Passes keep this many running bests, so that one comparison does not wait for the last.
constexpr int kChains = 2;
template <class Real>
constexpr Index kStep = kLanes<Real> * kChains;

template <class Real>
POLYMARGIN_INLINE typename Vectors<Real>::Reals load(const Real* from) {
    typename Vectors<Real>::Reals v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class Real>
POLYMARGIN_INLINE void store(Real* to, const typename Vectors<Real>::Reals& v) {
    std::memcpy(to, &v, sizeof v);
}

/// The running best of each lane and where it was found.
template <class Real>
struct Best {
    typename Vectors<Real>::Reals value;
    typename Vectors<Real>::Ints at;
};

template <class Real>
struct Found {
    Real value;
    Index at;
};

/// The smallest of all lanes, without branches: where it is cannot be predicted.
template <class Real>
POLYMARGIN_INLINE Found<Real> smallest(const Best<Real>& a, const Best<Real>& b) {
    const auto first = a.value <= b.value;
    const auto value = first ? a.value : b.value;
    const auto at = first ? a.at : b.at;
    Real least = value[0];
    for (int l = 1; l < kLanes<Real>; ++l) least = value[l] < least ? value[l] : least;
    const auto here = value == least;
    auto place = at[0];
    for (int l = 0; l < kLanes<Real>; ++l) place = here[l] ? at[l] : place;
    return {least, place};
}

}  // namespace polymargin
