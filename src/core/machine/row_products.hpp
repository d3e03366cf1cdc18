#pragma once

#include <span>

#include "kernel/data.hpp"

namespace polymargin {

/// `out[j] = <x, rows[j]>` for `count` rows of a dense row-major matrix that begin `stride` numbers apart: what a
/// matrix product does for many `x`, without packing and without threads.
template <class Real>
void row_products(const Real* x, const Real* rows, Index count, Index width, Index stride, Real* out);

/// `out[j] = <x, row order[j]>` for sparse rows; `x` is dense.
template <class Real>
void row_products(const Real* x, const CsrView& rows, std::span<const Index> order, Real* out);

/// `<a, b>` of two arrays.
template <class Real>
[[nodiscard]] Real dot(const Real* a, const Real* b, Index count) {
    Real out;
    row_products<Real>(a, b, 1, count, count, &out);
    return out;
}

}  // namespace polymargin
