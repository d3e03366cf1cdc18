#include "machine/query_rows.hpp"

#include <numeric>
#include <stdexcept>

namespace polymargin {
namespace {

/// Call `visit(column, value)` for the entries of a row, stored zeros and all zeros of a dense row included.
template <class Visit>
void for_entries(const DataView& data, Index row, Visit&& visit) {
    if (const auto* dense = std::get_if<DenseView>(&data)) {
        std::visit(
            [&](const auto& values) {
                const auto* x = values.data() + row * dense->features;
                for (Index f = 0; f < dense->features; ++f) visit(f, static_cast<double>(x[f]));
            },
            dense->values);
    } else if (const auto* csr = std::get_if<CsrView>(&data)) {
        std::visit(
            [&](const auto& values, const auto& columns, const auto& starts) {
                for (Index p = starts[row]; p < starts[row + 1]; ++p) {
                    visit(static_cast<Index>(columns[p]), static_cast<double>(values[p]));
                }
            },
            csr->values, csr->columns, csr->row_starts);
    }
}

}  // namespace

QueryRows::QueryRows(const DataView& data, std::span<const Index> rows, const DataView& vectors) : view_(data) {
    if (!converts(data, vectors)) {
        order_.assign(rows.begin(), rows.end());
        return;
    }
    order_.resize(rows.size());
    std::iota(order_.begin(), order_.end(), Index{0});
    if (const auto* csr = std::get_if<CsrView>(&data)) {
        make_dense(*csr, rows);
    } else {
        make_csr(std::get<DenseView>(data), rows);
    }
}

void QueryRows::make_dense(const CsrView& csr, std::span<const Index> rows) {
    values_.assign(rows.size() * csr.features, 0.0);
    double* row = values_.data();
    const DataView data = csr;
    for (const Index r : rows) {
        for_entries(data, r, [&](Index f, double value) { row[f] = value; });
        row += csr.features;
    }
    view_ = DenseView{std::span<const double>(values_), std::ssize(rows), csr.features};
}

void QueryRows::make_csr(const DenseView& dense, std::span<const Index> rows) {
    const DataView data = dense;
    starts_.push_back(0);
    for (const Index r : rows) {
        for_entries(data, r, [&](Index f, double value) {
            if (value == 0.0) return;
            columns_.push_back(f);
            values_.push_back(value);
        });
        starts_.push_back(std::ssize(columns_));
    }
    view_ = CsrView{std::span<const double>(values_), std::span<const Index>(columns_), std::span<const Index>(starts_),
                    std::ssize(rows), dense.features};
}

template <class Real>
void load_row(const DataView& data, Index row, std::span<const double> shift, Real* out) {
    if (shift.empty()) {
        for_entries(data, row, [&](Index f, double value) { out[f] = static_cast<Real>(value); });
        return;
    }
    if (std::holds_alternative<CsrView>(data)) {
        for (std::size_t f = 0; f < shift.size(); ++f) out[f] = static_cast<Real>(-shift[f]);
    }
    for_entries(data, row, [&](Index f, double value) { out[f] = static_cast<Real>(value - shift[f]); });
}

double squared_length(const DataView& data, Index row) {
    double sum = 0.0;
    for_entries(data, row, [&](Index, double value) { sum += value * value; });
    return sum;
}

template void load_row<float>(const DataView&, Index, std::span<const double>, float*);
template void load_row<double>(const DataView&, Index, std::span<const double>, double*);

}  // namespace polymargin
