#include "kernel/engine.hpp"

#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::Csr;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr KernelType kTypes[] = {KernelType::linear, KernelType::polynomial, KernelType::rbf, KernelType::sigmoid,
                                 KernelType::laplacian};

KernelSpec spec(KernelType type) {
    return {.type = type, .gamma = 0.2, .coef0 = 0.5, .degree = 3};
}

template <class Real>
constexpr double kAccuracy = std::is_same_v<Real, float> ? 2e-5 : 1e-12;

/// A block of each shape against plain loops. `rows` and `columns` hold the same numbers as `a` and `b`.
template <class Real>
void check_blocks(const KernelSpec& kernel, const Matrix& a, const DataView& rows, const Matrix& b,
                  const DataView& columns, bool copy) {
    Random random(41);
    const auto row_order = random.permutation(a.rows), column_order = random.permutation(b.rows);
    const auto shift = centre(columns, column_order, kernel);
    const Points<Real> row_points(rows, row_order, shift, copy), column_points(columns, column_order, shift, copy);
    const KernelEngine<Real> engine(kernel, row_points, column_points, plain::blas());
    CHECK(engine.rows() == a.rows && engine.columns() == b.rows);
    // One engine, several shapes: its scratch memory grows, shrinks and must come back clean.
    for (const auto& [count, range] : {std::pair{Index{1}, Range{0, b.rows}},
                                       {Index{40}, Range{3, b.rows - 2}},
                                       {Index{17}, Range{5, 6}},
                                       {Index{2}, Range{0, 3}}}) {
        std::vector<Index> which(count);
        for (Index& w : which) w = random.below(a.rows);
        // Rows go where the caller says, in any order and with gaps.
        std::vector<Real> memory(count * (range.size() + 3), Real(-77));
        std::vector<Real*> out(count);
        for (Index i = 0; i < count; ++i) out[i] = memory.data() + (count - 1 - i) * (range.size() + 3);
        engine.block(which, range, out);
        for (Index i = 0; i < count; ++i) {
            for (Index j = 0; j < range.size(); ++j) {
                const double exact =
                    fixtures::plain_kernel(kernel, a.row(row_order[which[i]]), b.row(column_order[range.begin + j]));
                CHECK_CLOSE(out[i][j], exact, kAccuracy<Real> * std::max(1.0, std::abs(exact)));
            }
            for (Index j = 0; j < 3; ++j) CHECK(out[i][range.size() + j] == Real(-77));
        }
    }
}

template <class Real, class Value, class Column, class Start = Column>
void check_sparse() {
    Random random(42);
    Matrix a = fixtures::random_matrix(25, 60, random, 0.1), b = fixtures::random_matrix(30, 60, random, 0.1);
    std::fill_n(a.values.begin(), 60, 0.0);  // an empty row
    for (auto* x : {&a, &b}) {
        for (double& v : x->values) v = static_cast<float>(v);  // the same number in every type
    }
    const Csr<Value, Column, Start> rows(a), columns(b);
    for (const auto type : kTypes) check_blocks<Real>(spec(type), a, rows.view(), b, columns.view(), false);
}

template <class Real>
void check_precomputed() {
    Random random(43);
    Matrix k = fixtures::random_matrix(20, 20, random);
    for (double& v : k.values) v = static_cast<float>(v);  // the same number in both types
    const std::vector<float> narrow(k.values.begin(), k.values.end());
    const auto order = random.permutation(20);
    const KernelSpec kernel{.type = KernelType::precomputed};
    for (const DataView& data : {DataView(k.precomputed()), DataView(PrecomputedView{std::span(narrow), 20, 20})}) {
        const Points<Real> points(data, order, {}, true);
        const KernelEngine<Real> engine(kernel, points, points, plain::blas());
        const std::vector<Index> which{19, 4, 4, 0};
        std::vector<Real> memory(4 * 10);
        const std::vector<Real*> out{&memory[0], &memory[10], &memory[20], &memory[30]};
        engine.block(which, {7, 17}, out);
        for (std::size_t i = 0; i < which.size(); ++i) {
            for (Index j = 0; j < 10; ++j) {
                CHECK_CLOSE(out[i][j], k.at(order[which[i]], order[7 + j]), kAccuracy<Real>);
            }
        }
    }
}

}  // namespace

TEST(dense_blocks) {
    Random random(44);
    Matrix a = fixtures::random_matrix(25, 7, random), b = fixtures::random_matrix(30, 7, random);
    for (auto* x : {&a, &b}) {
        for (double& v : x->values) v = static_cast<float>(v);
    }
    const std::vector<float> a_narrow(a.values.begin(), a.values.end()), b_narrow(b.values.begin(), b.values.end());
    const DenseView a_float{std::span(a_narrow), 25, 7}, b_float{std::span(b_narrow), 30, 7};
    for (const auto type : kTypes) {
        for (const bool copy : {true, false}) {
            check_blocks<float>(spec(type), a, a.dense(), b, b.dense(), copy);
            check_blocks<double>(spec(type), a, a.dense(), b, b.dense(), copy);
            check_blocks<float>(spec(type), a, a_float, b, b_float, copy);
            check_blocks<double>(spec(type), a, a_float, b, b_float, copy);
            check_blocks<double>(spec(type), a, a.dense(), b, b_float, copy);
        }
    }
}

TEST(sparse_blocks_of_every_type) {
    check_sparse<float, float, std::int32_t>();
    check_sparse<float, float, std::int64_t>();
    check_sparse<float, double, std::int32_t>();
    check_sparse<float, double, std::int64_t>();
    check_sparse<double, float, std::int32_t>();
    check_sparse<double, float, std::int64_t>();
    check_sparse<double, double, std::int32_t>();
    check_sparse<double, double, std::int64_t>();
    check_sparse<double, double, std::int32_t, std::int64_t>();
}

TEST(precomputed_blocks) {
    check_precomputed<float>();
    check_precomputed<double>();
}

TEST(near_points_far_from_the_origin) {
    // Without the shift, squared distances of 1e-2 would drown in norms of 1e12.
    Matrix x(3, 2);
    x.values = {1e6, 1e6, 1e6 + 0.1, 1e6, 1e6, 1e6 - 0.1};
    const auto order = fixtures::identity(3);
    for (const auto& [type, distance] : {std::pair{KernelType::rbf, 0.01}, {KernelType::laplacian, 0.1}}) {
        const KernelSpec kernel = spec(type);
        const Points<float> points(x.dense(), order, centre(x.dense(), order, kernel), true);
        const KernelEngine<float> engine(kernel, points, points, plain::blas());
        float values[3];
        const std::vector<float*> out{values};
        engine.block(std::vector<Index>{0}, {0, 3}, out);
        CHECK(values[0] == 1.0f);
        CHECK_CLOSE(values[1], std::exp(-0.2 * distance), 1e-6);
        CHECK_CLOSE(values[2], std::exp(-0.2 * distance), 1e-6);
    }
}

TEST(features_beyond_one_part_are_summed) {
    Random random(45);
    const Matrix a = fixtures::random_matrix(21, 600, random), b = fixtures::random_matrix(9, 600, random);
    KernelSpec kernel = spec(KernelType::laplacian);
    kernel.gamma = 0.002;
    check_blocks<float>(kernel, a, a.dense(), b, b.dense(), true);
    check_blocks<double>(kernel, a, a.dense(), b, b.dense(), false);
}

TEST(equal_sparse_points_have_distance_zero) {
    // What a row has outside the column is a difference of sums: it must vanish exactly where there is nothing.
    Random random(46);
    Matrix x = fixtures::random_matrix(12, 80, random, 0.3);
    for (Index f = 0; f < 80; ++f) x.at(1, f) = x.at(0, f);
    const Csr<double, std::int32_t> csr(x);
    const KernelSpec kernel{.type = KernelType::laplacian, .gamma = 1e6};
    const auto order = fixtures::identity(12);
    const Points<float> points(csr.view(), order, {}, false);
    const KernelEngine<float> engine(kernel, points, points, plain::blas());
    for (Index i = 0; i < 12; ++i) {
        float values[12];
        const std::vector<float*> out{values};
        engine.block(std::vector<Index>{i}, {0, 12}, out);
        for (Index j = 0; j < 12; ++j) CHECK(values[j] == (i == j || i + j == 1 ? 1.0f : 0.0f));
    }
}

TEST(single_precision_is_for_small_problems) {
    const KernelSpec rbf = spec(KernelType::rbf), linear{.type = KernelType::linear};
    CHECK(single_precision_suffices(rbf, 10.0, 1.0, 5e-4));
    CHECK(single_precision_suffices(linear, 10.0, 1.0, 5e-4));
    CHECK(!single_precision_suffices(rbf, 10.0, 1e6, 5e-4));
    CHECK(!single_precision_suffices(rbf, 1e8, 1.0, 5e-4));
    CHECK(!single_precision_suffices(rbf, 10.0, std::numeric_limits<double>::infinity(), 5e-4));
    CHECK(!single_precision_suffices(rbf, std::numeric_limits<double>::infinity(), 1.0, 5e-4));
    CHECK(!single_precision_suffices(linear, 1e35, 1e-40, 5e-4));
    const KernelSpec laplacian = spec(KernelType::laplacian);
    CHECK(single_precision_suffices(laplacian, 10.0, 1.0, 5e-4));
    CHECK(!single_precision_suffices(laplacian, 1e12, 1.0, 5e-4));
    CHECK(!single_precision_suffices(laplacian, 10.0, 1e6, 5e-4));
}
