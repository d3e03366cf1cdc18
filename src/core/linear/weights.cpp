#include "linear/weights.hpp"

#include <algorithm>

#include "support/vectors.hpp"

namespace polymargin {
namespace {

/// Half a cache line: what AVX2 holds, and what the widest processors do two of at a time.
constexpr int kBytes = 32;
template <class Real>
constexpr int kLanes = Vectors<Real, kBytes>::count;

template <class Real>
using Vector = typename Vectors<Real, kBytes>::Reals;

/// A matrix of weights, of which a pass uses some neighbouring vectors of each row.
template <class Real>
struct Strip {
    Real* values;
    Index width;
    bool far;
};

/// How many non-zeros ahead the weights are fetched: about the time that memory takes.
constexpr Index kAhead = 12;

template <int N, class Real>
POLYMARGIN_INLINE void fetch(const Strip<Real>& w, const Row<Real>& x, Index p) {
    if (!w.far || p + kAhead >= x.count) return;
    const auto* at = reinterpret_cast<const char*>(w.values + static_cast<Index>(x.columns[p + kAhead]) * w.width);
    for (int b = 0; b < N * kBytes; b += static_cast<int>(kCacheLine)) __builtin_prefetch(at + b, 1);
}

template <int N, class Real>
POLYMARGIN_INLINE void products_of(const Strip<Real>& w, const Row<Real>& x, Real* out) {
    Vector<Real> sum[N] = {}, second[N] = {};
    const auto step = [&](Vector<Real>(&into)[N], Index p, const Real* row) {
        for (int v = 0; v < N; ++v) into[v] += x.values[p] * load<kBytes>(row + v * kLanes<Real>);
    };
    Index p = 0;
    if (x.columns == nullptr) {
        for (; p + 2 <= x.count; p += 2) {
            step(sum, p, w.values + p * w.width);
            step(second, p + 1, w.values + (p + 1) * w.width);
        }
        for (; p < x.count; ++p) step(sum, p, w.values + p * w.width);
    } else {
        for (; p + 2 <= x.count; p += 2) {
            fetch<N>(w, x, p);
            fetch<N>(w, x, p + 1);
            step(sum, p, w.values + static_cast<Index>(x.columns[p]) * w.width);
            step(second, p + 1, w.values + static_cast<Index>(x.columns[p + 1]) * w.width);
        }
        for (; p < x.count; ++p) step(sum, p, w.values + static_cast<Index>(x.columns[p]) * w.width);
    }
    for (int v = 0; v < N; ++v) store<kBytes>(out + v * kLanes<Real>, sum[v] + second[v]);
}

template <int N, class Real>
POLYMARGIN_INLINE void add_to(const Strip<Real>& w, const Row<Real>& x, const Real* by) {
    Vector<Real> change[N];
    for (int v = 0; v < N; ++v) change[v] = load<kBytes>(by + v * kLanes<Real>);
    const auto step = [&](Real value, Real* row) {
        for (int v = 0; v < N; ++v) {
            Real* at = row + v * kLanes<Real>;
            store<kBytes>(at, load<kBytes>(at) + value * change[v]);
        }
    };
    // Stores might change anything: keep what does not change at hand.
    const auto [values, columns, count] = x;
    const Index width = w.width;
    Real* const weights = w.values;
    if (columns == nullptr) {
        for (Index p = 0; p < count; ++p) step(values[p], weights + p * width);
    } else {
        for (Index p = 0; p < count; ++p) step(values[p], weights + static_cast<Index>(columns[p]) * width);
    }
}

/// `vectors` is between 1 and 8.
template <class Real>
POLYMARGIN_INLINE void products_of(int vectors, const Strip<Real>& w, const Row<Real>& x, Real* out) {
    switch (vectors) {
        case 1:
            return products_of<1>(w, x, out);
        case 2:
            return products_of<2>(w, x, out);
        case 3:
            return products_of<3>(w, x, out);
        case 4:
            return products_of<4>(w, x, out);
        case 5:
            return products_of<5>(w, x, out);
        case 6:
            return products_of<6>(w, x, out);
        case 7:
            return products_of<7>(w, x, out);
        default:
            return products_of<8>(w, x, out);
    }
}

template <class Real>
POLYMARGIN_INLINE void add_to(int vectors, const Strip<Real>& w, const Row<Real>& x, const Real* by) {
    switch (vectors) {
        case 1:
            return add_to<1>(w, x, by);
        case 2:
            return add_to<2>(w, x, by);
        case 3:
            return add_to<3>(w, x, by);
        case 4:
            return add_to<4>(w, x, by);
        case 5:
            return add_to<5>(w, x, by);
        case 6:
            return add_to<6>(w, x, by);
        case 7:
            return add_to<7>(w, x, by);
        default:
            return add_to<8>(w, x, by);
    }
}

POLYMARGIN_MULTIVERSION void versioned_products(int n, const Strip<float>& w, const Row<float>& x, float* out) {
    products_of(n, w, x, out);
}
POLYMARGIN_MULTIVERSION void versioned_products(int n, const Strip<double>& w, const Row<double>& x, double* out) {
    products_of(n, w, x, out);
}
POLYMARGIN_MULTIVERSION void versioned_add(int n, const Strip<float>& w, const Row<float>& x, const float* by) {
    add_to(n, w, x, by);
}
POLYMARGIN_MULTIVERSION void versioned_add(int n, const Strip<double>& w, const Row<double>& x, const double* by) {
    add_to(n, w, x, by);
}

/// Weights up to this size are taken to be near the processor.
constexpr Index kNear = 256 * 1024;
constexpr int kMostVectors = 8;

}  // namespace

template <class Real>
Weights<Real>::Weights(Index features, Index classes)
    : features_(features),
      classes_(classes),
      width_((classes + kLanes<Real> - 1) / kLanes<Real> * kLanes<Real>),
      far_(features * width_ * static_cast<Index>(sizeof(Real)) > kNear),
      values_(std::max<Index>(1, features * width_)) {
    std::fill_n(values_.data(), values_.size(), Real(0));
}

template <class Real>
void Weights<Real>::products(const Row<Real>& x, Real* out) const {
    for (Index first = 0; first < width_; first += kMostVectors * kLanes<Real>) {
        const Index vectors = std::min<Index>(kMostVectors, (width_ - first) / kLanes<Real>);
        const Strip<Real> strip{const_cast<Real*>(values_.data()) + first, width_, far_};
        versioned_products(static_cast<int>(vectors), strip, x, out + first);
    }
}

template <class Real>
void Weights<Real>::add(const Row<Real>& x, const Real* by) {
    for (Index first = 0; first < width_; first += kMostVectors * kLanes<Real>) {
        const Index vectors = std::min<Index>(kMostVectors, (width_ - first) / kLanes<Real>);
        versioned_add(static_cast<int>(vectors), Strip<Real>{values_.data() + first, width_, far_}, x, by + first);
    }
}

template <class Real>
void Weights<Real>::products(const Row<Real>& x, std::span<const Index> classes, Real* out) const {
    std::fill_n(out, classes.size(), Real(0));
    for (Index p = 0; p < x.count; ++p) {
        const Real* w = row(x.columns == nullptr ? p : static_cast<Index>(x.columns[p]));
        for (std::size_t c = 0; c < classes.size(); ++c) out[c] += x.values[p] * w[classes[c]];
    }
}

template <class Real>
void Weights<Real>::add(const Row<Real>& x, std::span<const Index> classes, const Real* by) {
    for (Index p = 0; p < x.count; ++p) {
        Real* w = row(x.columns == nullptr ? p : static_cast<Index>(x.columns[p]));
        for (std::size_t c = 0; c < classes.size(); ++c) w[classes[c]] += x.values[p] * by[c];
    }
}

namespace {

POLYMARGIN_MULTIVERSION void versioned_add_products(const Row<double>& x, const double* weights, double* scores,
                                                    Index classes) {
    for (Index p = 0; p < x.count; ++p) {
        const double value = x.values[p];
        const double* w = weights + static_cast<Index>(x.columns[p]) * classes;
        for (Index m = 0; m < classes; ++m) scores[m] += value * w[m];
    }
}

}  // namespace

void add_products(const Row<double>& x, std::span<const double> weights, std::span<double> scores) {
    versioned_add_products(x, weights.data(), scores.data(), std::ssize(scores));
}

template class Weights<float>;
template class Weights<double>;

}  // namespace polymargin
