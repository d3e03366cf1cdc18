#pragma once

#include <span>
#include <variant>

#include "support/types.hpp"

namespace polymargin {

/// Numbers or indices of either width, as the caller has them: nothing is converted before it is needed.
using Reals = std::variant<std::span<const float>, std::span<const double>>;
using Indices = std::variant<std::span<const std::int32_t>, std::span<const std::int64_t>>;

/// Examples as rows of a dense row-major matrix.
struct DenseView {
    Reals values;
    Index rows = 0;
    Index features = 0;
};

/// Examples as rows of a CSR matrix, without duplicate entries.
struct CsrView {
    Reals values;
    Indices columns;
    Indices row_starts;
    Index rows = 0;
    Index features = 0;
};

/// Not examples but their kernel values: entry (i, j) is the kernel of row example i and column example j.
struct PrecomputedView {
    Reals values;
    Index rows = 0;
    Index columns = 0;
};

using DataView = std::variant<DenseView, CsrView, PrecomputedView>;

[[nodiscard]] inline Index rows_of(const DataView& data) {
    return std::visit([](const auto& view) { return view.rows; }, data);
}

/// Throw std::invalid_argument, naming the array and the place, unless the structure of a CSR matrix with `stored`
/// entries is sound. Everything after this call may index without checks.
void check_structure(const Indices& columns, const Indices& row_starts, Index stored, Index rows, Index features);

}  // namespace polymargin
