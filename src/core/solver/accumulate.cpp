#include "solver/accumulate.hpp"

#include <algorithm>

#include "support/multiversion.hpp"

namespace polymargin {
namespace {

/// Four rows at a time, so that f is read and written once for four; a strip at a time, so that f stays in L1. The sum
/// of four is formed in the precision of the rows, whose entries are not more exact than that.
template <class Real>
POLYMARGIN_INLINE void add_rows(const Real* const* rows, const double* c, Index row_count, double* f, Index count) {
    constexpr Index strip = 1024;
    for (Index start = 0; start < count; start += strip) {
        const Index length = std::min(strip, count - start);
        double* out = f + start;
        Index r = 0;
        for (; r + 4 <= row_count; r += 4) {
            const Real *r0 = rows[r] + start, *r1 = rows[r + 1] + start, *r2 = rows[r + 2] + start,
                       *r3 = rows[r + 3] + start;
            const auto c0 = static_cast<Real>(c[r]), c1 = static_cast<Real>(c[r + 1]), c2 = static_cast<Real>(c[r + 2]),
                       c3 = static_cast<Real>(c[r + 3]);
            for (Index t = 0; t < length; ++t) {
                out[t] += static_cast<double>(c0 * r0[t] + c1 * r1[t] + c2 * r2[t] + c3 * r3[t]);
            }
        }
        for (; r < row_count; ++r) {
            const Real* row = rows[r] + start;
            for (Index t = 0; t < length; ++t) out[t] += c[r] * static_cast<double>(row[t]);
        }
    }
}

POLYMARGIN_MULTIVERSION void versioned_add(const float* const* rows, const double* c, Index row_count, double* f,
                                           Index count) {
    add_rows<float>(rows, c, row_count, f, count);
}
POLYMARGIN_MULTIVERSION void versioned_add(const double* const* rows, const double* c, Index row_count, double* f,
                                           Index count) {
    add_rows<double>(rows, c, row_count, f, count);
}

}  // namespace

template <class Real>
void accumulate(std::span<const Real* const> rows, std::span<const double> coefficients, double* f, Index count) {
    versioned_add(rows.data(), coefficients.data(), static_cast<Index>(rows.size()), f, count);
}

template void accumulate<float>(std::span<const float* const>, std::span<const double>, double*, Index);
template void accumulate<double>(std::span<const double* const>, std::span<const double>, double*, Index);

}  // namespace polymargin
