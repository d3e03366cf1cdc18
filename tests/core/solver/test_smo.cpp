#include "solver/smo.hpp"

#include <limits>

#include "check.hpp"
#include "fixtures.hpp"
#include "smo_block.hpp"

using namespace polymargin;
using fixtures::block_of;
using fixtures::KnownOptimum;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Index kNoLimit = 1'000'000;

/// The violation of the block's variables with a gradient that is computed anew.
template <class Real>
double fresh_violation(const SmoBlock<Real>& block, std::span<const double> sign) {
    double lowest = kInfinity, highest = -kInfinity;
    for (Index i = 0; i < block.size; ++i) {
        double f = -sign[i];
        for (Index j = 0; j < block.size; ++j) {
            f += static_cast<double>(block.kernel.data()[i * block.stride + j]) * block.beta.data()[j];
        }
        CHECK_CLOSE(block.f.data()[i], f, 20 * std::numeric_limits<Real>::epsilon() * block.size);
        if (block.beta.data()[i] < block.upper.data()[i]) lowest = std::min(lowest, f);
        if (block.beta.data()[i] > block.lower.data()[i]) highest = std::max(highest, f);
    }
    return highest - lowest;
}

Matrix random_gram(Index n, Index rank, Random& random) {
    const Matrix x = fixtures::random_matrix(n, rank, random);
    return fixtures::plain_gram({.type = KernelType::linear}, x, fixtures::identity(n));
}

template <class Real>
void check_conditions() {
    Random random(71);
    // Sizes around the width of a vector, and kernels of full and of deficient rank.
    for (const Index n : {2, 3, 7, 8, 9, 16, 31, 100}) {
        for (const Index rank : {Index{3}, n}) {
            const Matrix gram = random_gram(n, rank, random);
            std::vector<double> sign(n), cost_bounds(n), beta(n, 0.0);
            for (Index i = 0; i < n; ++i) {
                sign[i] = i % 2 == 0 ? 1.0 : -1.0;
                cost_bounds[i] = random.uniform(0.1, 3.0);
            }
            // Start inside the feasible set, the sum not zero: SMO must preserve whatever it is.
            for (Index i = 0; i < n; i += 3) beta[i] = sign[i] * cost_bounds[i] / 2;
            const double sum = std::accumulate(beta.begin(), beta.end(), 0.0);
            auto block = block_of<Real>(gram, sign, cost_bounds, beta, 128);
            const double tolerance = std::is_same_v<Real, float> ? 1e-3 : 1e-6;
            const SmoResult result = smo(block, tolerance, kNoLimit);
            CHECK(!result.unbounded);
            CHECK(result.violation <= tolerance);
            CHECK(fresh_violation(block, sign) <= 1.5 * tolerance);
            const auto solution = block.beta.span().first(n);
            CHECK_CLOSE(std::accumulate(solution.begin(), solution.end(), 0.0), sum, 1e-11);
            for (Index i = 0; i < n; ++i) {
                CHECK(block.lower.data()[i] <= solution[i] && solution[i] <= block.upper.data()[i]);
            }
        }
    }
}

}  // namespace

TEST(the_optimality_conditions_hold_at_the_end) {
    check_conditions<float>();
    check_conditions<double>();
}

TEST(a_known_optimum_is_found) {
    Random random(72);
    for (const Index half : {3, 10, 45}) {
        const KnownOptimum known(half, random);
        const std::vector<double> zero(2 * half, 0.0);
        auto block = block_of<double>(known.gram, known.sign, known.cost_bounds, zero, 2 * half);
        const SmoResult result = smo(block, 1e-11, kNoLimit);
        CHECK(result.violation <= 1e-11);
        CHECK(result.iterations > 0);
        for (Index i = 0; i < 2 * half; ++i) CHECK_CLOSE(block.beta.data()[i], known.beta[i], 1e-8);
        // Bounds are met exactly, not to within rounding.
        for (Index i = 2; i < half; i += 3) CHECK(block.beta.data()[i] == known.cost_bounds[i]);
        for (Index i = 0; i < half; i += 3) CHECK(block.beta.data()[i] == 0.0);
    }
}

TEST(an_optimal_block_is_left_alone) {
    Random random(73);
    const KnownOptimum known(10, random);
    auto block = block_of<double>(known.gram, known.sign, known.cost_bounds, known.beta, 20);
    const SmoResult result = smo(block, 1e-6, kNoLimit);
    CHECK(result.iterations == 0);
    CHECK(std::equal(known.beta.begin(), known.beta.end(), block.beta.data()));
}

TEST(the_dual_rises_with_every_step) {
    Random random(74);
    const KnownOptimum known(20, random);
    const std::vector<double> zero(40, 0.0);
    double last = 0.0;
    for (Index steps = 1; steps < 60; ++steps) {
        auto block = block_of<double>(known.gram, known.sign, known.cost_bounds, zero, 40);
        const SmoResult result = smo(block, 1e-9, steps);
        CHECK(result.iterations <= steps);
        double dual = 0.0;
        for (Index i = 0; i < 40; ++i) {
            const double b = block.beta.data()[i];
            dual += b * known.sign[i] - b * (block.f.data()[i] + known.sign[i]) / 2;
        }
        CHECK(dual >= last - 1e-12);
        last = dual;
    }
}

TEST(the_step_limit_is_kept) {
    Random random(75);
    const KnownOptimum known(20, random);
    const std::vector<double> zero(40, 0.0);
    for (const Index limit : {0, 1, 5}) {
        auto block = block_of<double>(known.gram, known.sign, known.cost_bounds, zero, 40);
        const SmoResult result = smo(block, 1e-9, limit);
        CHECK(result.iterations == limit);
        CHECK(result.violation > 1e-9);
    }
}

TEST(equal_points_of_both_signs_make_the_hard_margin_unbounded) {
    Matrix gram(2, 2);
    gram.values = {1.0, 1.0, 1.0, 1.0};
    const std::vector<double> sign{1.0, -1.0}, zero(2, 0.0);
    auto hard = block_of<double>(gram, sign, std::vector<double>{kInfinity, kInfinity}, zero, 2);
    CHECK(smo(hard, 1e-3, kNoLimit).unbounded);
    auto soft = block_of<double>(gram, sign, std::vector<double>{2.0, 3.0}, zero, 2);
    CHECK(!smo(soft, 1e-3, kNoLimit).unbounded);
    CHECK(soft.beta.data()[0] == 2.0 && soft.beta.data()[1] == -2.0);
    // Bounded on one side only: the other variable stops it.
    auto half = block_of<double>(gram, sign, std::vector<double>{kInfinity, 3.0}, zero, 2);
    CHECK(!smo(half, 1e-3, kNoLimit).unbounded);
    CHECK(half.beta.data()[0] == 3.0 && half.beta.data()[1] == -3.0);
}

TEST(a_block_without_a_pair_ends_at_once) {
    Matrix gram(1, 1);
    gram.values = {1.0};
    auto block =
        block_of<double>(gram, std::vector<double>{1.0}, std::vector<double>{1.0}, std::vector<double>{0.0}, 8);
    const SmoResult result = smo(block, 1e-3, kNoLimit);
    CHECK(result.iterations == 0 && !result.unbounded && !(result.violation > 0.0));
}

TEST(a_block_can_be_used_again) {
    // From 20 variables to 10 and back: what is left in the padding must not take part.
    Random random(76);
    const KnownOptimum large(10, random), small(5, random);
    const std::vector<double> zero(20, 0.0);
    auto block = block_of<double>(large.gram, large.sign, large.cost_bounds, zero, 32);
    smo(block, 1e-10, kNoLimit);
    const double* memory = block.kernel.data();
    for (const KnownOptimum* known : {&small, &large}) {
        const Index n = known->gram.rows;
        block.resize(n, 32);
        CHECK(block.kernel.data() == memory);
        const auto fresh = block_of<double>(known->gram, known->sign, known->cost_bounds, zero, 32);
        for (Index i = 0; i < n; ++i) {
            std::copy_n(fresh.kernel.data() + i * fresh.stride, n, block.kernel.data() + i * block.stride);
        }
        std::copy_n(fresh.diagonal.data(), n, block.diagonal.data());
        std::copy_n(fresh.beta.data(), n, block.beta.data());
        std::copy_n(fresh.lower.data(), n, block.lower.data());
        std::copy_n(fresh.upper.data(), n, block.upper.data());
        std::copy_n(fresh.f.data(), n, block.f.data());
        CHECK(smo(block, 1e-10, kNoLimit).violation <= 1e-10);
        for (Index i = 0; i < n; ++i) CHECK_CLOSE(block.beta.data()[i], known->beta[i], 1e-7);
    }
}
