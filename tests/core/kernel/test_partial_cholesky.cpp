#include "kernel/partial_cholesky.hpp"

#include <numeric>

#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::KernelSetup;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr Index kAmple = Index{1} << 30;

KernelSpec rbf(double gamma) {
    return {.type = KernelType::rbf, .gamma = gamma};
}

template <class Real>
KernelFeatures features_of(const KernelSpec& kernel, const Matrix& x, Index most, double share, int threads = 1) {
    std::vector<Index> order(x.rows);
    std::iota(order.begin(), order.end(), Index{0});
    KernelSetup<Real> setup(kernel, x.dense(), order, kAmple, threads);
    setup.store.compute_whole();
    return partial_cholesky(setup.store, most, share);
}

/// Likewise, but of a store that computes the rows it is asked for and keeps a few.
KernelFeatures features_of_rows(const KernelSpec& kernel, const Matrix& x, Index most, double share, Index kept) {
    std::vector<Index> order(x.rows);
    std::iota(order.begin(), order.end(), Index{0});
    KernelSetup<double> setup(kernel, x.dense(), order, kept * padded<double>(x.rows + 1) * Index{sizeof(double)}, 1);
    const auto features = partial_cholesky(setup.store, most, share);
    CHECK(!setup.store.whole() && setup.store.evaluations() == features.rank * x.rows);
    return features;
}

double product(const KernelFeatures& features, Index i, Index j) {
    const auto row = [&](Index at) { return features.values.begin() + at * features.rank; };
    return std::inner_product(row(i), row(i) + features.rank, row(j), 0.0);
}

template <class Real>
void check_products(double share, double rounding) {
    Random random(61);
    const Matrix x = fixtures::random_matrix(300, 3, random);
    std::vector<Index> order(300);
    std::iota(order.begin(), order.end(), Index{0});
    const Matrix gram = fixtures::plain_gram(rbf(0.05), x, order);
    const auto features = features_of<Real>(rbf(0.05), x, 100, share);
    CHECK(features.rank > 1 && features.rank < 100);
    CHECK(std::ssize(features.values) == 300 * features.rank);
    double left = 0.0;
    for (Index i = 0; i < 300; ++i) left += gram.at(i, i) - product(features, i, i);
    CHECK(left <= share * 300 + 300 * rounding);  // one column leaves less than all
    // What is left out is positive semi-definite: no entry is larger than the diagonal.
    for (Index i = 0; i < 300; ++i) {
        for (Index j = 0; j < 300; ++j) CHECK_CLOSE(product(features, i, j), gram.at(i, j), left + 10 * rounding);
    }
}

}  // namespace

TEST(products_of_the_features_are_the_kernel_but_for_a_share) {
    check_products<double>(1e-3, 1e-13);
    check_products<double>(1e-6, 1e-13);
    check_products<float>(1e-3, 1e-6);
}

TEST(linear_kernels_have_as_many_features_as_their_examples) {
    Random random(62);
    const Matrix x = fixtures::random_matrix(200, 5, random);
    CHECK(features_of<double>({.type = KernelType::linear}, x, 50, 1e-9).rank == 5);
}

TEST(narrow_kernels_have_no_few_features) {
    Random random(63);
    const Matrix x = fixtures::random_matrix(200, 5, random);
    CHECK(features_of<double>(rbf(10.0), x, 50, 1e-3).rank == 0);
    CHECK(features_of<double>(rbf(0.01), x, 3, 1e-6).rank == 0);
}

TEST(examples_that_are_all_the_same_have_one_feature) {
    const Matrix x(100, 2);
    CHECK(features_of<double>(rbf(1.0), x, 20, 1e-3).rank == 1);
    CHECK(features_of<double>({.type = KernelType::linear}, x, 20, 1e-3).rank == 0);  // zero
    CHECK(features_of<double>({.type = KernelType::sigmoid, .gamma = 1.0, .coef0 = -1.0}, x, 20, 1e-3).rank == 0);
}

TEST(kernel_features_do_not_depend_on_the_threads) {
    Random random(64);
    const Matrix x = fixtures::random_matrix(1500, 3, random);
    const auto one = features_of<float>(rbf(0.05), x, 90, 1e-4, 1),
               four = features_of<float>(rbf(0.05), x, 90, 1e-4, 4);
    CHECK(one.rank > 0 && one.values == four.values);
}

TEST(only_the_rows_of_the_pivots_are_computed) {
    Random random(64);
    const Matrix x = fixtures::random_matrix(300, 3, random);
    const auto whole = features_of<double>(rbf(0.05), x, 100, 1e-3);
    const auto rows = features_of_rows(rbf(0.05), x, 100, 1e-3, 5);
    CHECK(rows.rank == whole.rank);
    for (std::size_t i = 0; i < whole.values.size(); ++i) CHECK_CLOSE(rows.values[i], whole.values[i], 1e-9);
}
