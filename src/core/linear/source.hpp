#pragma once

#include <utility>
#include <variant>

#include "kernel/data.hpp"

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

/// |x|^2 of one row, in four sums that do not wait for each other where all its values are there.
[[nodiscard]] inline double squared_length(const DataView& data, Index row) {
    double sums[4] = {};
    const auto add = [&](Index at, double v) { sums[at & 3] += v * v; };
    if (const auto* dense = std::get_if<DenseView>(&data)) {
        std::visit(
            [&](const auto& values) {
                const auto* x = values.data() + row * dense->features;
                for (Index f = 0; f < dense->features; ++f) add(f, static_cast<double>(x[f]));
            },
            dense->values);
    } else {
        for_entries(data, row, add);
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

[[nodiscard]] inline Index features_of(const DataView& data) {
    if (const auto* dense = std::get_if<DenseView>(&data)) return dense->features;
    return std::get<CsrView>(data).features;
}

}  // namespace polymargin
