#include "solver/smo.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/multiversion.hpp"

namespace polymargin {
namespace {

constexpr int kLanes = 8;
using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));
using Longs = std::int64_t __attribute__((vector_size(kLanes * sizeof(std::int64_t))));
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Ints = std::int32_t __attribute__((vector_size(kLanes * sizeof(std::int32_t))));

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Stands in for the curvature along directions in which the kernel is flat or, indefinite, bends the wrong way.
constexpr double kFlat = 1e-12;

template <class Vector, class T>
POLYMARGIN_INLINE Vector load(const T* from) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

POLYMARGIN_INLINE Doubles load_doubles(const float* from) {
    return __builtin_convertvector(load<Floats>(from), Doubles);
}
POLYMARGIN_INLINE Doubles load_doubles(const double* from) {
    return load<Doubles>(from);
}
POLYMARGIN_INLINE Floats load_floats(const float* from) {
    return load<Floats>(from);
}
POLYMARGIN_INLINE Floats load_floats(const double* from) {
    return __builtin_convertvector(load<Doubles>(from), Floats);
}

/// Passes keep this many running bests, so that one comparison does not wait for the last.
constexpr int kChains = 2;
constexpr Index kStep = kLanes * kChains;

struct First {
    Index i = -1;
    double lowest = kInfinity;
    double highest = -kInfinity;
};

/// f += step (row_i - row_j); the variable with the lowest f among those that may grow, and the highest f among those
/// that may fall.
template <class Real>
POLYMARGIN_INLINE First update_and_choose(SmoBlock<Real>& block, const Real* row_i, const Real* row_j, double step) {
    Longs index[kChains], at[kChains];
    Doubles lowest[kChains], highest[kChains];
    for (int c = 0; c < kChains; ++c) {
        index[c] = at[c] = Longs{0, 1, 2, 3, 4, 5, 6, 7} + kLanes * c;
        lowest[c] = Doubles{} + kInfinity;
        highest[c] = Doubles{} - kInfinity;
    }
    double* f = block.f.data();
    const double* up = block.up.data();
    const double* low = block.low.data();
    for (Index t = 0; t < block.width; t += kStep) {
        for (int c = 0; c < kChains; ++c) {
            const Index at_c = t + kLanes * c;
            const Doubles value =
                load<Doubles>(f + at_c) + step * (load_doubles(row_i + at_c) - load_doubles(row_j + at_c));
            std::memcpy(f + at_c, &value, sizeof value);
            const Doubles candidate = value + load<Doubles>(up + at_c);
            const Longs better = candidate < lowest[c];
            lowest[c] = better ? candidate : lowest[c];
            at[c] = better ? index[c] : at[c];
            const Doubles other = value + load<Doubles>(low + at_c);
            highest[c] = other > highest[c] ? other : highest[c];
            index[c] += kStep;
        }
    }
    First first;
    for (int c = 0; c < kChains; ++c) {
        for (int l = 0; l < kLanes; ++l) {
            if (lowest[c][l] < first.lowest) {
                first.lowest = lowest[c][l];
                first.i = at[c][l];
            }
            if (highest[c][l] > first.highest) first.highest = highest[c][l];
        }
    }
    return first;
}

/// The partner of `i`: the variable that may fall and promises the largest gain, (f_j - f_i)^2 / curvature.
template <class Real>
POLYMARGIN_INLINE Index choose_second(const SmoBlock<Real>& block, Index i, double lowest) {
    Ints index[kChains], at[kChains];
    Floats best[kChains];
    for (int c = 0; c < kChains; ++c) {
        index[c] = at[c] = Ints{0, 1, 2, 3, 4, 5, 6, 7} + kLanes * c;
        best[c] = Floats{};
    }
    const Real* row = block.kernel.data() + i * block.stride;
    const double* f = block.f.data();
    const double* low = block.low.data();
    const float* diagonal = block.diagonal.data();
    const float own = diagonal[i];
    const Floats zero = {};
    const Floats flat = zero + static_cast<float>(kFlat);
    for (Index t = 0; t < block.width; t += kStep) {
        for (int c = 0; c < kChains; ++c) {
            const Index at_c = t + kLanes * c;
            const Doubles apart = load<Doubles>(f + at_c) + load<Doubles>(low + at_c) - lowest;
            Floats difference = __builtin_convertvector(apart, Floats);
            difference = difference > zero ? difference : zero;
            Floats curvature = own + load_floats(diagonal + at_c) - 2.0f * load_floats(row + at_c);
            curvature = curvature > flat ? curvature : flat;
            const Floats gain = difference * (difference / curvature);
            const Ints better = gain > best[c];
            best[c] = better ? gain : best[c];
            at[c] = better ? index[c] : at[c];
            index[c] += static_cast<int>(kStep);
        }
    }
    Index j = -1;
    float gain = 0.0f;
    for (int c = 0; c < kChains; ++c) {
        for (int l = 0; l < kLanes; ++l) {
            if (best[c][l] > gain) {
                gain = best[c][l];
                j = at[c][l];
            }
        }
    }
    return j;
}

template <class Real>
POLYMARGIN_INLINE void set_variable(SmoBlock<Real>& block, Index t, double value) {
    block.beta.data()[t] = value;
    block.up.data()[t] = value < block.upper.data()[t] ? 0.0 : kInfinity;
    block.low.data()[t] = value > block.lower.data()[t] ? 0.0 : -kInfinity;
}

template <class Real>
POLYMARGIN_INLINE SmoResult run(SmoBlock<Real>& block, double tolerance, Index max_iterations) {
    for (Index t = 0; t < block.size; ++t) set_variable(block, t, block.beta.data()[t]);
    const Real* kernel = block.kernel.data();
    SmoResult result;
    First first = update_and_choose(block, kernel, kernel, 0.0);
    while (true) {
        result.violation = first.highest - first.lowest;
        if (!(result.violation > tolerance) || result.iterations >= max_iterations) return result;
        const Index i = first.i;
        const Index j = choose_second(block, i, first.lowest);
        if (j < 0) return result;
        const Real* row_i = kernel + i * block.stride;
        const Real* row_j = kernel + j * block.stride;
        const double curvature = static_cast<double>(row_i[i]) + row_j[j] - 2.0 * row_i[j];
        const double wanted = (block.f.data()[j] - first.lowest) / std::max(curvature, kFlat);
        const double room_i = block.upper.data()[i] - block.beta.data()[i];
        const double room_j = block.beta.data()[j] - block.lower.data()[j];
        const double step = std::min({wanted, room_i, room_j});
        if (curvature <= kFlat && std::isinf(std::min(room_i, room_j))) {
            result.unbounded = true;
            return result;
        }
        // A variable that meets its bound gets the bound itself, not the bound plus rounding.
        set_variable(block, i, step == room_i ? block.upper.data()[i] : block.beta.data()[i] + step);
        set_variable(block, j, step == room_j ? block.lower.data()[j] : block.beta.data()[j] - step);
        first = update_and_choose(block, row_i, row_j, step);
        ++result.iterations;
    }
}

POLYMARGIN_MULTIVERSION SmoResult versioned_run(SmoBlock<float>& block, double tolerance, Index max_iterations) {
    return run(block, tolerance, max_iterations);
}
POLYMARGIN_MULTIVERSION SmoResult versioned_run(SmoBlock<double>& block, double tolerance, Index max_iterations) {
    return run(block, tolerance, max_iterations);
}

}  // namespace

template <class Real>
void SmoBlock<Real>::resize(Index count, Index capacity) {
    size = count;
    width = (count + kStep - 1) / kStep * kStep;
    if (!kernel) {
        // One cache line more than needed: rows a power of two apart would share the sets of the cache.
        stride = padded<float>(capacity) + padded<float>(1);
        kernel = Buffer<Real>(capacity * stride);
        // The padding of a row takes part in the arithmetic; it must be finite, its value does not matter.
        std::fill_n(kernel.data(), kernel.size(), Real(0));
        diagonal.reserve(stride);
        for (auto* array : {&beta, &lower, &upper, &f, &up, &low}) array->reserve(stride);
    }
    for (Index t = size; t < width; ++t) {
        diagonal.data()[t] = 0.0f;
        beta.data()[t] = lower.data()[t] = upper.data()[t] = f.data()[t] = 0.0;
        up.data()[t] = kInfinity;
        low.data()[t] = -kInfinity;
    }
}

template <class Real>
SmoResult smo(SmoBlock<Real>& block, double tolerance, Index max_iterations) {
    return versioned_run(block, tolerance, max_iterations);
}

template struct SmoBlock<float>;
template struct SmoBlock<double>;
template SmoResult smo<float>(SmoBlock<float>&, double, Index);
template SmoResult smo<double>(SmoBlock<double>&, double, Index);

}  // namespace polymargin
