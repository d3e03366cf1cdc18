#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "problem/multiclass.hpp"
#include "support/vectors.hpp"

namespace polymargin {

/// Examples whose violations are computed together.
struct ExampleStrip {
    ClassMajor<const double> gradient;
    ClassMajor<const double> beta;
    const Index* labels;
    const double* cost_bounds;
    Index count;
};

namespace detail {

template <RowLoss Loss>
POLYMARGIN_INLINE void measure_strip(const Loss& loss, const ExampleStrip& strip, double* out) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr Index lanes = 64;
    double highest[lanes], lowest[lanes], own[lanes];
    for (Index start = 0; start < strip.count; start += lanes) {
        const Index count = std::min(lanes, strip.count - start);
        const Index* label = strip.labels + start;
        const double* bound = strip.cost_bounds + start;
        std::fill_n(highest, count, -infinity);
        std::fill_n(lowest, count, infinity);
        std::fill_n(own, count, 0.0);
        for (Index m = 0; m < strip.gradient.classes; ++m) {
            const double* g = strip.gradient.row(m) + start;
            const double* b = strip.beta.row(m) + start;
            for (Index i = 0; i < count; ++i) {
                const bool mine = label[i] == m;
                const double top = loss.may_fall(b[i], mine, bound[i]) ? g[i] : -infinity;
                const double bottom = loss.may_grow(b[i], mine, bound[i]) ? g[i] : infinity;
                highest[i] = top > highest[i] ? top : highest[i];
                lowest[i] = bottom < lowest[i] ? bottom : lowest[i];
                own[i] = mine ? g[i] : own[i];
            }
        }
        // A row without a variable that may grow, or fall, has infinite extremes and nothing to gain.
        for (Index i = 0; i < count; ++i) {
            const double size = loss.violation({highest[i], lowest[i], own[i]});
            out[start + i] = size > 0.0 ? size : 0.0;
        }
    }
}

/// Add the coefficient of a class, of a loss with a shared limit, to what is known of its row.
template <RowLoss Loss>
POLYMARGIN_INLINE void add_signed(const Loss& loss, double gradient, double b, bool own, RowExtremes& row) {
    const double h = own ? gradient : -gradient;
    row.highest = b != 0.0 && h > row.highest ? h : row.highest;
    row.lowest = (!own || loss.may_grow(b, own, row.cost_bound)) && h < row.lowest ? h : row.lowest;
    row.total += b < 0.0 ? -b : b;
}

/// As `measure_strip`, for losses with a shared limit.
template <RowLoss Loss>
POLYMARGIN_INLINE void measure_shared_strip(const Loss& loss, const ExampleStrip& strip, double* out) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr Index lanes = 64;
    RowExtremes rows[lanes];
    for (Index start = 0; start < strip.count; start += lanes) {
        const Index count = std::min(lanes, strip.count - start);
        for (Index i = 0; i < count; ++i) rows[i] = {-infinity, infinity, 0.0, 0.0, strip.cost_bounds[start + i]};
        for (Index m = 0; m < strip.gradient.classes; ++m) {
            const double* g = strip.gradient.row(m) + start;
            const double* b = strip.beta.row(m) + start;
            for (Index i = 0; i < count; ++i) add_signed(loss, g[i], b[i], strip.labels[start + i] == m, rows[i]);
        }
        for (Index i = 0; i < count; ++i) out[start + i] = std::max(0.0, loss.violation(rows[i]));
    }
}

}  // namespace detail

/// How far each example of a strip is from optimal, given the others: one pass for all losses, whose inline pieces it
/// is compiled with for the instruction set of the processor.
template <RowLoss Loss>
void measure_violations(const Loss& loss, const ExampleStrip& strip, double* out) {
    with_widest_vectors([&](auto) POLYMARGIN_INLINED {
        if constexpr (kSharedLimit<Loss>) {
            detail::measure_shared_strip(loss, strip, out);
        } else {
            detail::measure_strip(loss, strip, out);
        }
    });
}

/// The same of one row.
template <RowLoss Loss>
[[nodiscard]] RowExtremes extremes_of(const Loss& loss, std::span<const double> gradient, std::span<const double> row,
                                      const Example& example) {
    RowExtremes found{-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity(), 0.0, 0.0,
                      example.cost_bound};
    for (Index m = 0; m < std::ssize(row); ++m) {
        const bool own = m == example.label;
        if constexpr (kSharedLimit<Loss>) {
            detail::add_signed(loss, gradient[m], row[m], own, found);
            continue;
        }
        if (loss.may_fall(row[m], own, example.cost_bound)) found.highest = std::max(found.highest, gradient[m]);
        if (loss.may_grow(row[m], own, example.cost_bound)) found.lowest = std::min(found.lowest, gradient[m]);
        if (own) found.own = gradient[m];
    }
    return found;
}

/// What an example promises at most, zero exactly when it is optimal: with rows that sum to zero what one class that
/// may fall can give to one that may grow, else what each can do alone. The violation is at least half of it.
template <RowLoss Loss>
[[nodiscard]] double promise_of(const Loss& loss, const RowExtremes& row) {
    if constexpr (kSharedLimit<Loss>) return std::max(0.0, loss.violation(row));
    return std::max(0.0, Loss::kRowsSumToZero ? row.highest - row.lowest : std::max(row.highest, -row.lowest));
}

}  // namespace polymargin
