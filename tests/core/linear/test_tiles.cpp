#include "linear/tiles.hpp"

#include <algorithm>

#include "check.hpp"
#include "fixtures.hpp"
#include "linear_problems.hpp"
#include "plain_blas.hpp"

using namespace polymargin;
using fixtures::LinearProblem;
using fixtures::Random;

namespace {

/// A tile does what its rows do one by one.
template <class Real>
void check_tile(const LinearRows<Real>& rows, const RowTile<Real>& tile, Index classes) {
    const Blas blas = plain::blas();
    Random random(2);
    Weights<Real> weights(rows.features(), classes), sums(rows.features(), classes), plain(rows.features(), classes);
    for (Index f = 0; f < rows.features(); ++f) {
        for (Index m = 0; m < classes; ++m) weights.row(f)[m] = static_cast<Real>(random.normal());
    }
    const Index width = weights.width();
    std::vector<Real> out(tile.size() * width), by(tile.size() * width, Real(0)), expected(width);
    tile.products(weights, blas, out.data());
    for (Index t = 0; t < tile.size(); ++t) {
        weights.products(rows.row(tile.number(t)), expected.data());
        for (Index m = 0; m < width; ++m) CHECK_CLOSE(out[t * width + m], expected[m], 1e-5);
        // Every third row is left out.
        for (Index m = 0; t % 3 != 0 && m < classes; ++m) by[t * width + m] = static_cast<Real>(random.normal());
        plain.add(rows.row(tile.number(t)), by.data() + t * width);
    }
    tile.add_to(sums, blas, by.data());
    for (Index f = 0; f < rows.features(); ++f) {
        for (Index m = 0; m < width; ++m) CHECK_CLOSE(sums.row(f)[m], plain.row(f)[m], 1e-4);
    }
}

}  // namespace

TEST(tiles_do_what_their_rows_do) {
    for (const double density : {0.2, 1.0}) {
        const LinearProblem problem(5, 100, 7, density, 3);
        const LinearRows<float> single(problem.csr.view(), problem.order, {});
        const LinearRows<double> exact(problem.csr.view(), problem.order, {});
        CHECK(single.dense() == (density == 1.0));
        const std::vector<std::uint32_t> numbers{90, 3, 4, 57, 99};
        std::vector<float> room(RowTile<float>::kMost * single.features());
        check_tile<float>(single, {single, 10, 37}, 5);
        check_tile<float>(single, {single, numbers, room.data()}, 5);
        check_tile<double>(exact, {exact, 0, 100}, 5);
    }
}
