#include "solver/smo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "solver/smo_jump.hpp"
#include "support/vectors.hpp"

namespace polymargin {
namespace {

template <class Real>
constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
/// Stands in for the curvature along directions in which the kernel is flat or, indefinite, bends the wrong way.
constexpr double kFlat = 1e-12;

template <class Real>
struct First {
    Found<Real> lowest;
    Real highest;
};

/// f += step (row_i - row_j); the variable with the lowest f among those that may grow, and the highest f among those
/// that may fall.
template <int Bytes, class Real>
POLYMARGIN_INLINE First<Real> update_and_choose(SmoBlock<Real>& block, const Real* row_i, const Real* row_j,
                                                Real step) {
    using V = Vectors<Real, Bytes>;
    typename V::Ints index = V::lanes;
    Best<Real, Bytes> lowest[kChains];
    typename V::Reals highest[kChains];
    for (int c = 0; c < kChains; ++c) {
        lowest[c] = {typename V::Reals{} + kInfinity<Real>, index};
        highest[c] = typename V::Reals{} - kInfinity<Real>;
    }
    Real* f = block.f.data();
    const Real* up = block.up.data();
    const Real* low = block.low.data();
    for (Index t = 0; t < block.width; t += kChains * V::count) {
        for (int c = 0; c < kChains; ++c) {
            const Index p = t + V::count * c;
            const auto value = load<Bytes>(f + p) + step * (load<Bytes>(row_i + p) - load<Bytes>(row_j + p));
            store<Bytes>(f + p, value);
            const auto candidate = value + load<Bytes>(up + p);
            const auto better = candidate < lowest[c].value;
            lowest[c].value = better ? candidate : lowest[c].value;
            lowest[c].at = better ? index : lowest[c].at;
            const auto other = value + load<Bytes>(low + p);
            highest[c] = other > highest[c] ? other : highest[c];
            index += V::count;
        }
    }
    const auto top = highest[0] > highest[1] ? highest[0] : highest[1];
    return {smallest(lowest[0], lowest[1]), largest<Real, Bytes>(top)};
}

/// The partner of `i`: the variable that may fall and promises the largest gain, (f_j - f_i)^2 / curvature. Negated, so
/// that the largest is the smallest.
template <int Bytes, class Real>
POLYMARGIN_INLINE Found<Real> choose_second(const SmoBlock<Real>& block, const Real* row, Index i, Real lowest) {
    using V = Vectors<Real, Bytes>;
    typename V::Ints index = V::lanes;
    Best<Real, Bytes> best[kChains];
    for (int c = 0; c < kChains; ++c) best[c] = {typename V::Reals{}, index};
    const Real* f = block.f.data();
    const Real* low = block.low.data();
    const Real* diagonal = block.diagonal.data();
    const Real own = diagonal[i];
    const typename V::Reals zero = {};
    const auto flat = zero + static_cast<Real>(kFlat);
    for (Index t = 0; t < block.width; t += kChains * V::count) {
        for (int c = 0; c < kChains; ++c) {
            const Index p = t + V::count * c;
            auto difference = load<Bytes>(f + p) + load<Bytes>(low + p) - lowest;
            difference = difference > zero ? difference : zero;
            auto curvature = own + load<Bytes>(diagonal + p) - Real(2) * load<Bytes>(row + p);
            curvature = curvature > flat ? curvature : flat;
            const auto gain = -difference * (difference / curvature);
            const auto better = gain < best[c].value;
            best[c].value = better ? gain : best[c].value;
            best[c].at = better ? index : best[c].at;
            index += V::count;
        }
    }
    return smallest(best[0], best[1]);
}

template <class Real>
POLYMARGIN_INLINE void set_variable(SmoBlock<Real>& block, Index t, double value) {
    block.beta.data()[t] = value;
    block.up.data()[t] = value < block.upper.data()[t] ? Real(0) : kInfinity<Real>;
    block.low.data()[t] = value > block.lower.data()[t] ? Real(0) : -kInfinity<Real>;
}

template <int Bytes, class Real>
POLYMARGIN_INLINE SmoResult run(SmoBlock<Real>& block, double tolerance, Index max_iterations) {
    for (Index t = 0; t < block.size; ++t) set_variable(block, t, block.beta.data()[t]);
    SmoResult result;
    const Real* none = block.diagonal.data();  // any numbers do for a step of zero
    First<Real> first = update_and_choose<Bytes>(block, none, none, Real(0));
    while (true) {
        result.violation = static_cast<double>(first.highest) - first.lowest.value;
        if (!(result.violation > tolerance) || result.iterations >= max_iterations) return result;
        const Index i = first.lowest.at;
        const Real* row_i = block.row(i);
        const Found<Real> second = choose_second<Bytes>(block, row_i, i, first.lowest.value);
        if (!(second.value < Real(0))) return result;
        const Index j = second.at;
        const Real* row_j = block.row(j);
        const double* diagonal_ridge = block.ridge.empty() ? nullptr : block.ridge.data();
        const double ridge = diagonal_ridge == nullptr ? 0.0 : diagonal_ridge[i] + diagonal_ridge[j];
        const double curvature = static_cast<double>(row_i[i]) + row_j[j] - 2.0 * row_i[j] + ridge;
        const double wanted =
            (static_cast<double>(block.f.data()[j]) - first.lowest.value) / std::max(curvature, kFlat);
        const double max_step_i = block.upper.data()[i] - block.beta.data()[i];
        const double max_step_j = block.beta.data()[j] - block.lower.data()[j];
        const double step = std::min({wanted, max_step_i, max_step_j});
        if (curvature <= kFlat && std::isinf(std::min(max_step_i, max_step_j))) {
            result.unbounded = true;
            return result;
        }
        // A variable that meets its bound gets the bound itself, not the bound plus rounding.
        set_variable(block, i, step == max_step_i ? block.upper.data()[i] : block.beta.data()[i] + step);
        set_variable(block, j, step == max_step_j ? block.lower.data()[j] : block.beta.data()[j] - step);
        if (diagonal_ridge != nullptr) {
            block.f.data()[i] += static_cast<Real>(step * diagonal_ridge[i]);
            block.f.data()[j] -= static_cast<Real>(step * diagonal_ridge[j]);
        }
        first = update_and_choose<Bytes>(block, row_i, row_j, static_cast<Real>(step));
        ++result.iterations;
    }
}

}  // namespace

template <class Real>
void SmoBlock<Real>::resize_state(Index count, Index capacity) {
    size = count;
    width = whole_steps<Real>(count);
    // One cache line more than needed: rows a power of two apart would share the sets of the cache.
    if (stride == 0) stride = whole_steps<Real>(capacity) + padded<Real>(1);
    diagonal.reserve(stride);
    for (auto* array : {&beta, &lower, &upper}) array->reserve(stride);
    for (auto* array : {&f, &up, &low}) array->reserve(stride);
    for (Index t = size; t < width; ++t) {
        diagonal.data()[t] = f.data()[t] = Real(0);
        beta.data()[t] = lower.data()[t] = upper.data()[t] = 0.0;
        up.data()[t] = kInfinity<Real>;
        low.data()[t] = -kInfinity<Real>;
    }
}

template <class Real>
void SmoBlock<Real>::resize(Index count, Index capacity) {
    resize_state(count, capacity);
    if (!kernel) kernel = Buffer<Real>(capacity * stride);
    rows.resize(size);
    // The padding of a row takes part in the arithmetic; it must be finite, its value does not matter.
    for (Index r = 0; r < size; ++r) {
        rows[r] = own_row(r);
        std::fill_n(own_row(r) + size, width - size, Real(0));
    }
}

template <class Real>
void SmoBlock<Real>::resize_empty(Index count, Index capacity, std::function<const Real*(Index)> how) {
    resize_state(count, capacity);
    rows.assign(size, nullptr);
    fetch = std::move(how);
}

template <class Real>
SmoResult smo(SmoBlock<Real>& block, double tolerance, Index max_iterations, const Blas* blas,
              const SmoSettings& settings, const Control* control) {
    SmoResult all;
    const Index between_polls = std::max<Index>(1, settings.between_polls / block.width);
    Index step_limit = settings.steps_before_jump * block.size;
    int most_jumps = settings.first_jumps;
    std::optional<SmoJump<Real>> jump;
    const auto stopped = [&] { return control != nullptr && control->stop_requested(); };
    while (true) {
        const Index left = max_iterations - all.iterations;
        const Index most = std::min({left, blas != nullptr ? step_limit : left, between_polls});
        const SmoResult some =
            with_widest_vectors([&](auto bytes) POLYMARGIN_INLINED { return run<bytes>(block, tolerance, most); });
        all = {all.iterations + some.iterations, some.violation, some.unbounded};
        if (some.iterations < most || all.iterations >= max_iterations) return all;
        if (stopped()) return all;
        step_limit -= some.iterations;
        if (blas == nullptr || step_limit > 0) continue;
        using Outcome = typename SmoJump<Real>::Outcome;
        if (!jump) jump.emplace(block, *blas, settings, control);
        const double step_cost = static_cast<double>(settings.step_cost * block.width);
        const auto enough = static_cast<Index>(settings.share_before_jump * jump->price() / step_cost);
        if (all.iterations < enough) {
            step_limit = enough - all.iterations;
            continue;
        }
        const Outcome outcome = (*jump)(static_cast<int>(std::min<Index>(most_jumps, max_iterations - all.iterations)));
        all.iterations += jump->steps();
        if (stopped()) return all;
        if (outcome == Outcome::impossible) blas = nullptr;  // once it fails, steps alone must do
        // Jumps and steps take turns, and about the same time.
        step_limit = std::max(block.size / 2, static_cast<Index>(jump->cost() / step_cost));
        most_jumps = std::min(2 * most_jumps, settings.most_jumps);
    }
}

template struct SmoBlock<float>;
template struct SmoBlock<double>;
template SmoResult smo<float>(SmoBlock<float>&, double, Index, const Blas*, const SmoSettings&, const Control*);
template SmoResult smo<double>(SmoBlock<double>&, double, Index, const Blas*, const SmoSettings&, const Control*);

}  // namespace polymargin
