#include "support/vectors.hpp"

#include <algorithm>
#include <vector>

#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::Random;

namespace {

/// The first place of the smallest value, found as passes do.
template <int Bytes, class Real>
POLYMARGIN_INLINE Found<Real> smallest_of(const std::vector<Real>& values) {
    using V = Vectors<Real, Bytes>;
    typename V::Ints index = V::lanes;
    Best<Real, Bytes> best[kChains];
    for (int c = 0; c < kChains; ++c) {
        best[c] = {typename V::Reals{} + std::numeric_limits<Real>::infinity(), index};
    }
    for (Index t = 0; t < std::ssize(values); t += kChains * V::count) {
        for (int c = 0; c < kChains; ++c) {
            const auto value = load<Bytes>(values.data() + t + c * V::count);
            const auto better = value < best[c].value;
            best[c].value = better ? value : best[c].value;
            best[c].at = better ? index : best[c].at;
            index += V::count;
        }
    }
    return smallest(best[0], best[1]);
}

template <class Real>
void check_every_place() {
    const Index size = 3 * kStep<Real>;
    Random random(181);
    std::vector<Real> values(size);
    for (Real& v : values) v = static_cast<Real>(random.uniform(1.0, 2.0));
    const auto check = [](const Found<Real>& found, Index place) {
        CHECK(found.at == place && found.value == Real(-1));
    };
    for (Index place = 0; place < size; ++place) {
        std::vector<Real> marked = values;
        marked[place] = Real(-1);
        // Widths that the processor does not have are slow, but right.
        check(smallest_of<16>(marked), place);
        check(smallest_of<32>(marked), place);
        check(smallest_of<64>(marked), place);
        check(with_widest_vectors([&](auto bytes) POLYMARGIN_INLINED { return smallest_of<bytes>(marked); }), place);
    }
}

template <class Real, int Bytes>
void check_lanes() {
    using V = Vectors<Real, Bytes>;
    CHECK(V::count * static_cast<int>(sizeof(Real)) == Bytes && sizeof(typename V::Reals) == Bytes);
    CHECK(kStep<Real> % (kChains * V::count) == 0);
    for (int l = 0; l < V::count; ++l) CHECK(V::lanes[l] == l);
}

}  // namespace

TEST(vectors_of_every_width_find_the_smallest_value_in_every_place) {
    check_every_place<float>();
    check_every_place<double>();
}

TEST(lanes_are_numbered_and_padding_fits_every_width) {
    check_lanes<float, 16>();
    check_lanes<float, 32>();
    check_lanes<float, 64>();
    check_lanes<double, 16>();
    check_lanes<double, 32>();
    check_lanes<double, 64>();
}
