#pragma once

#include <cstdint>

namespace polymargin {

/// Every size and index of the core: 64 bits, signed.
using Index = std::int64_t;

/// The half-open interval [begin, end) of example numbers.
struct Range {
    Index begin = 0;
    Index end = 0;

    [[nodiscard]] constexpr Index size() const { return end - begin; }
    [[nodiscard]] constexpr bool contains(Index i) const { return begin <= i && i < end; }
    friend constexpr bool operator==(Range, Range) = default;
};

}  // namespace polymargin
