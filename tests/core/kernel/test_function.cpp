#include "kernel/function.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::Matrix;
using fixtures::Random;

namespace {

/// exp(-gamma d) of given squared distances: with products of zero and a norm of zero the norms are the
/// distances.
template <class Real>
std::vector<Real> of_distances(const KernelSpec& kernel, const std::vector<Real>& distances) {
    const auto count = static_cast<Index>(distances.size());
    const std::vector<Real> products(distances.size(), Real(0));
    std::vector<Real> values(distances.size());
    apply_kernel<Real>(kernel, Real(0), distances.data(), products.data(), values.data(), count);
    return values;
}

template <class Real>
std::vector<Real> rbf_of(const std::vector<Real>& distances, double gamma) {
    return of_distances<Real>({.type = KernelType::rbf, .gamma = gamma}, distances);
}

template <class Real>
std::vector<Real> of_products(const KernelSpec& kernel, const std::vector<Real>& products) {
    std::vector<Real> values(products.size());
    // Only RBF may read the norms.
    apply_kernel<Real>(kernel, Real(0), nullptr, products.data(), values.data(), static_cast<Index>(products.size()));
    return values;
}

template <class Real>
void check_exp() {
    constexpr double unit = std::numeric_limits<Real>::epsilon();
    // Results below the smallest normal number (with a little room: the cut is at a round argument) may be
    // zero.
    constexpr double tiny = std::numeric_limits<Real>::min() * 10;
    std::vector<Real> arguments{Real(0),     Real(1e-30), Real(1e-10), Real(0.34657), Real(0.34658), Real(1),
                                Real(80),    Real(86.9),  Real(87.1),  Real(88),      Real(104),     Real(700),
                                Real(707.9), Real(708.1), Real(745),   Real(1000),    Real(1e6),     Real(1e30)};
    Random random(21);
    for (int i = 0; i < 20000; ++i) arguments.push_back(static_cast<Real>(std::pow(10.0, random.uniform(-12.0, 3.0))));
    const auto values = rbf_of<Real>(arguments, 1.0);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double exact = std::exp(-static_cast<double>(arguments[i]));
        CHECK_CLOSE(values[i], exact, 3 * unit * exact + (exact < tiny ? tiny : 0.0));
        CHECK(values[i] >= Real(0) && values[i] <= Real(1));
    }
    CHECK(values[0] == Real(1));
    CHECK(rbf_of<Real>({std::numeric_limits<Real>::max() / 4}, 1.0)[0] == Real(0));
}

template <class Real>
void check_rbf_distance() {
    const KernelSpec kernel{.type = KernelType::rbf, .gamma = 0.5};
    const Real norms[] = {Real(1), Real(4), Real(2)};
    const Real products[] = {Real(1), Real(-1), Real(3)};
    Real values[3];
    apply_kernel<Real>(kernel, Real(1), norms, products, values, 3);
    CHECK(values[0] == Real(1));                   // the same point
    CHECK_CLOSE(values[1], std::exp(-3.5), 1e-7);  // 1 + 4 + 2
    CHECK(values[2] == Real(1));                   // rounding made the distance negative: it counts as zero
}

template <class Real>
void check_tanh() {
    constexpr double unit = std::numeric_limits<Real>::epsilon();
    Random random(22);
    std::vector<Real> products{Real(0), Real(1e-10), Real(-1e-10), Real(20), Real(-20), Real(500), Real(-1e8)};
    for (int i = 0; i < 5000; ++i) products.push_back(static_cast<Real>(random.uniform(-12.0, 12.0)));
    for (const double coef0 : {0.0, 0.25, -3.0}) {
        const KernelSpec kernel{.type = KernelType::sigmoid, .gamma = 0.5, .coef0 = coef0};
        const auto values = of_products<Real>(kernel, products);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double z = 0.5 * static_cast<double>(products[i]) + coef0;
            CHECK_CLOSE(values[i], std::tanh(z), 4 * unit);
        }
    }
}

template <class Real>
void check_power() {
    constexpr double unit = std::numeric_limits<Real>::epsilon();
    Random random(23);
    std::vector<Real> products(137);  // more than two strips, the last one short
    for (Real& p : products) p = static_cast<Real>(random.uniform(-3.0, 3.0));
    for (const int degree : {0, 1, 2, 3, 4, 5, 7, 10}) {
        const KernelSpec kernel{.type = KernelType::polynomial, .gamma = 0.5, .coef0 = 0.25, .degree = degree};
        const auto values = of_products<Real>(kernel, products);
        for (std::size_t i = 0; i < values.size(); ++i) {
            // The base is rounded once and each product after it once more.
            const double base = 0.5 * static_cast<double>(products[i]) + 0.25;
            const double allowed = 4 * unit * (degree + 1) * std::pow(std::abs(base) + unit, degree);
            CHECK_CLOSE(values[i], std::pow(base, degree), allowed + unit * unit);
        }
    }
}

/// A matrix at once is what its values are one by one.
template <class Real>
void check_matrix() {
    Random random(41);
    std::vector<Real> inputs(600'000);  // several parts
    for (Real& v : inputs) v = static_cast<Real>(random.uniform(0.0, 3.0));
    ThreadPool pool(2);
    const Control control;
    for (const KernelName& named : kernel_names()) {
        const KernelSpec kernel{.type = named.type, .gamma = 0.3, .coef0 = 0.5, .degree = 3};
        std::vector<Real> values(inputs.size());
        apply_kernel<Real>(kernel, std::span<const Real>(inputs), std::span<Real>(values), {&pool, &control});
        const bool reads_distances = named.reads == KernelInput::squared_distances;
        CHECK(values == (reads_distances ? of_distances(kernel, inputs) : of_products(kernel, inputs)));
    }
    std::vector<Real> few(3);
    CHECK_THROWS(std::invalid_argument, "a place",
                 apply_kernel<Real>({}, std::span<const Real>(inputs), std::span<Real>(few), {}));
}

}  // namespace

TEST(a_matrix_of_inputs_becomes_one_of_kernel_values) {
    check_matrix<float>();
    check_matrix<double>();
}

TEST(exp_matches_the_library) {
    check_exp<float>();
    check_exp<double>();
}

TEST(rbf_takes_distances_from_norms_and_products) {
    check_rbf_distance<float>();
    check_rbf_distance<double>();
}

TEST(gamma_scales_the_distance) {
    for (const double gamma : {1e-8, 0.3, 40.0}) {
        const auto values = rbf_of<double>({0.0, 0.01, 1.0, 2.5}, gamma);
        CHECK_CLOSE(values[1], std::exp(-gamma * 0.01), 1e-15);
        CHECK_CLOSE(values[3], std::exp(-gamma * 2.5), 1e-14);
    }
}

TEST(sigmoid_matches_tanh) {
    check_tanh<float>();
    check_tanh<double>();
}

TEST(polynomial_matches_pow) {
    check_power<float>();
    check_power<double>();
}

TEST(linear_and_precomputed_pass_through) {
    const std::vector<double> products{1.5, -2.0, 0.0};
    CHECK(of_products<double>({.type = KernelType::linear}, products) == products);
    CHECK(of_products<double>({.type = KernelType::precomputed}, products) == products);
}

TEST(values_may_overwrite_products) {
    Random random(24);
    std::vector<double> products(200), norms(200);
    for (double& p : products) p = random.uniform(-1.0, 1.0);
    for (double& n : norms) n = random.uniform(1.0, 2.0);
    for (const auto type : {KernelType::linear, KernelType::polynomial, KernelType::rbf, KernelType::sigmoid}) {
        const KernelSpec kernel{.type = type, .gamma = 0.7, .coef0 = 0.1, .degree = 3};
        std::vector<double> apart(200), in_place = products;
        apply_kernel<double>(kernel, 1.5, norms.data(), products.data(), apart.data(), 200);
        apply_kernel<double>(kernel, 1.5, norms.data(), in_place.data(), in_place.data(), 200);
        CHECK(apart == in_place);
    }
}

TEST(kernels_are_listed_in_the_order_of_their_types) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < kernel_names().size(); ++i) {
        const KernelName& named = kernel_names()[i];
        CHECK(named.type == static_cast<KernelType>(i));
        CHECK(KernelSpec{.type = named.type}.reads() == named.reads);
        CHECK(std::ranges::find(names, named.name) == names.end());
        names.emplace_back(named.name);
    }
    CHECK(names.size() == kernel_names().size());
}

TEST(moving_all_points_changes_no_kernel_that_says_so) {
    Random random(25);
    const Matrix x = fixtures::random_matrix(2, 5, random);
    for (const KernelName& named : kernel_names()) {
        if (named.reads == KernelInput::matrix) continue;
        const KernelSpec kernel{.type = named.type, .gamma = 0.3, .coef0 = 0.5, .degree = 3};
        Matrix moved = x;
        for (double& v : moved.values) v += 0.75;
        const double change = std::abs(fixtures::plain_kernel(kernel, x.row(0), x.row(1)) -
                                       fixtures::plain_kernel(kernel, moved.row(0), moved.row(1)));
        CHECK(kernel.is_translation_invariant() == (change < 1e-12));
    }
}

TEST(diagonal_is_the_kernel_of_a_point_with_itself) {
    const std::vector<double> x{1.0, -2.0, 0.5};
    for (const auto type :
         {KernelType::linear, KernelType::polynomial, KernelType::rbf, KernelType::sigmoid, KernelType::laplacian}) {
        const KernelSpec kernel{.type = type, .gamma = 0.3, .coef0 = -0.5, .degree = 4};
        CHECK_CLOSE(kernel.diagonal(5.25), fixtures::plain_kernel(kernel, x, x), 1e-14);
    }
}
