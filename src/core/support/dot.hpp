#pragma once

#include "support/multiversion.hpp"
#include "support/types.hpp"

namespace polymargin {

/// `a'b` in a few lanes, so that sums do not wait for each other; added up in a fixed order.
POLYMARGIN_INLINE double dot_in_lanes(const double* a, const double* b, Index count) {
    constexpr Index lanes = 8;
    double sums[lanes] = {};
    Index t = 0;
    for (; t + lanes <= count; t += lanes) {
        for (Index l = 0; l < lanes; ++l) sums[l] += a[t + l] * b[t + l];
    }
    for (; t < count; ++t) sums[t % lanes] += a[t] * b[t];
    double sum = 0.0;
    for (const double v : sums) sum += v;
    return sum;
}

}  // namespace polymargin
