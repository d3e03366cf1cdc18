#include "machine/row_products.hpp"

#include "support/vectors.hpp"

namespace polymargin {
namespace {

/// Rows taken together: loads of `x` are shared, and one row's sum does not wait for its last.
constexpr int kRows = 4;

/// The sum of the lanes, half onto half.
template <class Real, int Lanes>
POLYMARGIN_INLINE Real sum_of(const Real* lanes) {
    if constexpr (Lanes == 1) {
        return lanes[0];
    } else {
        Real half[Lanes / 2];
        for (int l = 0; l < Lanes / 2; ++l) half[l] = lanes[l] + lanes[l + Lanes / 2];
        return sum_of<Real, Lanes / 2>(half);
    }
}

template <class Real, int Count>
POLYMARGIN_INLINE void products_of_some(const Real* x, const Real* rows, Index width, Index stride, Real* out) {
    constexpr int bytes = kCacheLine;
    using V = Vectors<Real, bytes>;
    typename V::Reals sums[Count] = {};
    Index f = 0;
    for (; f + V::count <= width; f += V::count) {
        const auto at = load<bytes>(x + f);
        for (int r = 0; r < Count; ++r) sums[r] += at * load<bytes>(rows + r * stride + f);
    }
    Real rest[Count] = {};
    for (; f < width; ++f) {
        for (int r = 0; r < Count; ++r) rest[r] += x[f] * rows[r * stride + f];
    }
    for (int r = 0; r < Count; ++r) {
        Real lanes[V::count];
        store<bytes>(lanes, sums[r]);
        out[r] = sum_of<Real, V::count>(lanes) + rest[r];
    }
}

template <class Real>
POLYMARGIN_INLINE void dense_products(const Real* x, const Real* rows, Index count, Index width, Index stride,
                                      Real* out) {
    Index j = 0;
    for (; j + kRows <= count; j += kRows) {
        products_of_some<Real, kRows>(x, rows + j * stride, width, stride, out + j);
    }
    for (; j < count; ++j) products_of_some<Real, 1>(x, rows + j * stride, width, stride, out + j);
}

POLYMARGIN_MULTIVERSION void versioned(const float* x, const float* rows, Index count, Index width, Index stride,
                                       float* out) {
    dense_products<float>(x, rows, count, width, stride, out);
}
POLYMARGIN_MULTIVERSION void versioned(const double* x, const double* rows, Index count, Index width, Index stride,
                                       double* out) {
    dense_products<double>(x, rows, count, width, stride, out);
}

}  // namespace

template <class Real>
void row_products(const Real* x, const Real* rows, Index count, Index width, Index stride, Real* out) {
    versioned(x, rows, count, width, stride, out);
}

template <class Real>
void row_products(const Real* x, const CsrView& rows, std::span<const Index> order, Real* out) {
    std::visit(
        [&](const auto& values, const auto& columns, const auto& starts) {
            for (std::size_t j = 0; j < order.size(); ++j) {
                Real sum = 0;
                for (Index p = starts[order[j]]; p < starts[order[j] + 1]; ++p) {
                    sum += static_cast<Real>(values[p]) * x[columns[p]];
                }
                out[j] = sum;
            }
        },
        rows.values, rows.columns, rows.row_starts);
}

template void row_products<float>(const float*, const float*, Index, Index, Index, float*);
template void row_products<double>(const double*, const double*, Index, Index, Index, double*);
template void row_products<float>(const float*, const CsrView&, std::span<const Index>, float*);
template void row_products<double>(const double*, const CsrView&, std::span<const Index>, double*);

}  // namespace polymargin
