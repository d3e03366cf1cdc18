#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "kernel/data.hpp"
#include "support/buffer.hpp"

namespace polymargin {

/// Call `each(column, value)` for the entries of one row of the caller's matrix that are not zero, in its order.
template <class Each>
void for_entries(const DenseView& dense, Index row, Each&& each) {
    std::visit(
        [&](const auto& values) {
            const auto* x = values.data() + row * dense.features;
            for (Index f = 0; f < dense.features; ++f) {
                if (x[f] != 0) each(f, static_cast<double>(x[f]));
            }
        },
        dense.values);
}

template <class Each>
void for_entries(const CsrView& csr, Index row, Each&& each) {
    std::visit(
        [&](const auto& values, const auto& columns, const auto& starts) {
            for (Index p = starts[row]; p < static_cast<Index>(starts[row + 1]); ++p) {
                if (values[p] != 0) each(static_cast<Index>(columns[p]), static_cast<double>(values[p]));
            }
        },
        csr.values, csr.columns, csr.row_starts);
}

template <class Each>
void for_entries(const DataView& data, Index row, Each&& each) {
    if (const auto* dense = std::get_if<DenseView>(&data)) return for_entries(*dense, row, std::forward<Each>(each));
    for_entries(std::get<CsrView>(data), row, std::forward<Each>(each));
}

/// How many entries of one row are not zero.
[[nodiscard]] inline Index entries_of(const DataView& data, Index row) {
    Index count = 0;
    if (const auto* dense = std::get_if<DenseView>(&data)) {
        std::visit(
            [&](const auto& values) {
                const auto* x = values.data() + row * dense->features;
                for (Index f = 0; f < dense->features; ++f) count += x[f] != 0;
            },
            dense->values);
    } else {
        for_entries(data, row, [&](Index, double) { ++count; });
    }
    return count;
}

/// The share of entries that are not zero, in the first rows of an order.
[[nodiscard]] inline double share_of_entries(const DataView& data, std::span<const Index> order, Index features,
                                             Index most_rows) {
    const Index rows = std::min(most_rows, static_cast<Index>(std::ssize(order)));
    Index count = 0;
    for (Index i = 0; i < rows; ++i) count += entries_of(data, order[i]);
    return static_cast<double>(count) / static_cast<double>(std::max<Index>(1, rows * features));
}

/// Squares, in sums that do not wait for each other.
template <class T>
[[nodiscard]] double sum_of_squares(const T* x, Index count) {
    constexpr Index lanes = 8;
    double sums[lanes] = {};
    Index f = 0;
    for (; f + lanes <= count; f += lanes) {
        for (Index l = 0; l < lanes; ++l) sums[l] += static_cast<double>(x[f + l]) * static_cast<double>(x[f + l]);
    }
    for (; f < count; ++f) sums[0] += static_cast<double>(x[f]) * static_cast<double>(x[f]);
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/// |x|^2 of one row
[[nodiscard]] inline double squared_length(const DataView& data, Index row) {
    if (const auto* dense = std::get_if<DenseView>(&data)) {
        return std::visit(
            [&](const auto& values) { return sum_of_squares(values.data() + row * dense->features, dense->features); },
            dense->values);
    }
    double sum = 0.0;
    for_entries(data, row, [&](Index, double v) { sum += v * v; });
    return sum;
}

/// Bring the beginning of a row that will be read into the cache.
inline void fetch_row(const DenseView& dense, Index row) {
    constexpr Index lines = 16;
    std::visit(
        [&](const auto& values) {
            const auto* x = values.data() + row * dense.features;
            constexpr auto step = static_cast<Index>(kCacheLine / sizeof *x);
            for (Index f = 0; f < std::min(dense.features, lines * step); f += step) __builtin_prefetch(x + f);
        },
        dense.values);
}
/// How many rows ahead: about the time that memory takes.
inline constexpr Index kRowsAhead = 8;

[[nodiscard]] inline Index features_of(const DataView& data) {
    if (const auto* dense = std::get_if<DenseView>(&data)) return dense->features;
    return std::get<CsrView>(data).features;
}

}  // namespace polymargin
