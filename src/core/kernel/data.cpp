#include "kernel/data.hpp"

#include <stdexcept>
#include <string>

namespace polymargin {
namespace {

template <class Starts>
void check_row_starts(const Starts& starts, Index rows, Index stored) {
    const auto size = static_cast<Index>(starts.size());
    if (size != rows + 1) {
        throw std::invalid_argument("CSR indptr has " + std::to_string(size) + " entries; a matrix of " +
                                    std::to_string(rows) + " rows needs " + std::to_string(rows + 1));
    }
    if (starts[0] != 0) {
        throw std::invalid_argument("CSR indptr must start at 0, not at " + std::to_string(starts[0]));
    }
    for (Index i = 0; i < rows; ++i) {
        if (starts[i + 1] < starts[i]) {
            throw std::invalid_argument("CSR indptr must not decrease, but it does after row " + std::to_string(i));
        }
    }
    if (starts[rows] > stored) {
        throw std::invalid_argument("CSR indptr ends at " + std::to_string(starts[rows]) + ", beyond the " +
                                    std::to_string(stored) + " stored entries");
    }
}

template <class Columns>
void check_columns(const Columns& columns, Index used, Index features) {
    for (Index p = 0; p < used; ++p) {
        if (columns[p] < 0 || columns[p] >= features) {
            throw std::invalid_argument("CSR index " + std::to_string(columns[p]) + " at position " +
                                        std::to_string(p) + " is outside [0, " + std::to_string(features) + ")");
        }
    }
}

}  // namespace

void check_structure(const Indices& columns, const Indices& row_starts, Index stored, Index rows, Index features) {
    const Index named = std::visit([](const auto& array) { return static_cast<Index>(array.size()); }, columns);
    if (named != stored) {
        throw std::invalid_argument("CSR indices has " + std::to_string(named) + " entries, data has " +
                                    std::to_string(stored) + "; they must be as many");
    }
    std::visit([&](const auto& starts) { check_row_starts(starts, rows, stored); }, row_starts);
    const Index used = std::visit([&](const auto& starts) { return static_cast<Index>(starts[rows]); }, row_starts);
    std::visit([&](const auto& array) { check_columns(array, used, features); }, columns);
}

}  // namespace polymargin
