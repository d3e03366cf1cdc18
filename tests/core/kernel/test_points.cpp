#include "kernel/points.hpp"

#include <limits>
#include <stdexcept>

#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::Csr;
using fixtures::Matrix;
using fixtures::Random;

namespace {

template <class Real>
void check_points(const DataView& data, const Matrix& x, std::span<const double> shift, bool copy) {
    Random random(31);
    auto order = random.permutation(x.rows);
    order.pop_back();  // some of the rows, in any order
    const Points<Real> points(data, order, {shift.begin(), shift.end()}, copy);
    const auto n = static_cast<Index>(order.size());
    CHECK(points.size() == n);
    CHECK(points.features() == x.columns);
    double largest = 0.0;
    for (Index g = 0; g < n; ++g) {
        double norm = 0.0;
        for (Index f = 0; f < x.columns; ++f) {
            const double v = x.at(order[g], f) - (shift.empty() ? 0.0 : shift[f]);
            norm += v * v;
        }
        CHECK_CLOSE(points.norms()[g], norm, 1e-6 * norm);
        largest = std::max(largest, norm);
    }
    CHECK_CLOSE(points.max_norm(), largest, 1e-6 * largest);
    if (!std::holds_alternative<DenseView>(data)) return;
    CHECK(points.owned_bytes() == (copy ? Points<Real>::copy_bytes(data, n) : 0));
    const std::vector<Index> which{3, 0, 3, n - 1};
    std::vector<Real> gathered(which.size() * x.columns);
    points.gather(which, gathered.data());
    Buffer<Real> scratch;
    const Real* range = points.range({2, 5}, scratch);
    for (Index f = 0; f < x.columns; ++f) {
        const auto value = [&](Index g) {
            return static_cast<Real>(x.at(order[g], f) - (shift.empty() ? 0.0 : shift[f]));
        };
        for (std::size_t i = 0; i < which.size(); ++i) CHECK(gathered[i * x.columns + f] == value(which[i]));
        for (Index g = 2; g < 5; ++g) CHECK(range[(g - 2) * x.columns + f] == value(g));
    }
}

}  // namespace

TEST(dense_points_with_and_without_copy) {
    Random random(32);
    const Matrix x = fixtures::random_matrix(9, 5, random);
    const std::vector<double> shift{0.1, -2.0, 0.0, 3.0, 1.0};
    for (const bool copy : {true, false}) {
        check_points<float>(x.dense(), x, {}, copy);
        check_points<double>(x.dense(), x, {}, copy);
        check_points<float>(x.dense(), x, shift, copy);
        check_points<double>(x.dense(), x, shift, copy);
    }
}

TEST(sparse_points) {
    Random random(33);
    const Matrix x = fixtures::random_matrix(9, 12, random, 0.3);
    check_points<float>(Csr<double, std::int32_t>(x).view(), x, {}, true);
    check_points<double>(Csr<double, std::int64_t>(x).view(), x, {}, true);
    const Csr<double, std::int32_t> csr(x);
    CHECK(Points<double>(csr.view(), fixtures::identity(9), {}, true).owned_bytes() == 0);
    CHECK(Points<double>::copy_bytes(csr.view(), 9) == 0);
    CHECK(Points<float>::copy_bytes(x.dense(), 9) == 9 * 12 * 4);
}

TEST(an_overflowing_length_names_row_and_column) {
    Matrix x(4, 3);
    x.at(2, 1) = -1e160;
    x.at(2, 0) = 5.0;
    const std::vector<Index> order{3, 2, 0};  // the row that is named is the caller's
    CHECK_THROWS(std::invalid_argument, "row 2, column 1", Points<double>(x.dense(), order, {}, true));
    CHECK_THROWS(std::invalid_argument, "row 2, column 1", Points<double>(x.dense(), order, {}, false));
    const Csr<double, std::int32_t> csr(x);
    CHECK_THROWS(std::invalid_argument, "row 2, column 1", Points<double>(csr.view(), order, {}, false));
    // Rows that are left out are not looked at.
    const Points<double> others(x.dense(), {3, 0, 1}, {}, true);
    CHECK(others.max_norm() == 0.0);
}

TEST(in_single_precision_overflow_only_shows) {
    Matrix x(2, 2);
    x.at(1, 0) = 1e160;
    CHECK(std::isinf(Points<float>(x.dense(), {0, 1}, {}, true).max_norm()));
    x.at(1, 0) = 1e30;  // a float, but its square is not: the norm must not be lost
    CHECK(Points<float>(x.dense(), {0, 1}, {}, true).max_norm() > std::numeric_limits<float>::max());
}

TEST(precomputed_points_take_their_norms_from_the_diagonal) {
    Matrix k(3, 3);
    for (Index i = 0; i < 3; ++i) k.at(i, i) = static_cast<double>(i + 1);
    const Points<double> points(k.precomputed(), {2, 0, 1}, {}, true);
    CHECK(points.norms()[0] == 3.0 && points.norms()[1] == 1.0 && points.norms()[2] == 2.0);
    CHECK(points.max_norm() == 3.0);
}

TEST(centre_is_the_mean_for_dense_rbf_only) {
    Matrix x(3, 2);
    x.values = {1.0, 10.0, 3.0, 20.0, 100.0, 1000.0};
    const std::vector<Index> order{0, 1};
    const KernelSpec rbf{.type = KernelType::rbf};
    CHECK(centre(x.dense(), order, rbf) == std::vector<double>{2.0, 15.0});
    CHECK(centre(x.dense(), order, {.type = KernelType::linear}).empty());
    CHECK(centre(Csr<double, std::int32_t>(x).view(), order, rbf).empty());
    CHECK(centre(x.precomputed(), order, rbf).empty());
    CHECK(centre(x.dense(), {}, rbf).empty());
}

TEST(a_sum_that_overflows_does_not_spread) {
    Matrix x(2, 2);
    x.values = {1.5e308, 1.0, 1.5e308, 3.0};
    CHECK(centre(x.dense(), std::vector<Index>{0, 1}, {.type = KernelType::rbf}) == std::vector<double>{0.0, 2.0});
}
