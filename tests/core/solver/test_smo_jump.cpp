#include "solver/smo_jump.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "check.hpp"
#include "fixtures.hpp"
#include "smo_block.hpp"

using namespace polymargin;
using fixtures::block_of;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr Index kNoLimit = 10'000'000;

/// Points of few features, whose kernel is singular on more free variables than that.
struct Flat {
    Matrix gram;
    std::vector<double> sign, cost_bounds;

    Flat(Index n, Index features, double cost, Random& random) : gram(n, n), sign(n), cost_bounds(n, cost) {
        const Matrix x = fixtures::random_matrix(n, features, random);
        gram = fixtures::plain_gram({.type = KernelType::linear}, x, fixtures::identity(n));
        for (Index i = 0; i < n; ++i) sign[i] = x.at(i, 0) + 0.3 * random.uniform(-1.0, 1.0) > 0 ? 1.0 : -1.0;
    }
};

template <class Real>
double dual(const SmoBlock<Real>& block, std::span<const double> sign) {
    double value = 0.0;
    for (Index i = 0; i < block.size; ++i) {
        const double b = block.beta.data()[i];
        value += b * sign[i] - b * (block.f.data()[i] + sign[i]) / 2;
    }
    return value;
}

/// A block all variables of which are between their bounds.
SmoBlock<double> block_within(const Flat& flat) {
    const Index n = std::ssize(flat.sign);
    std::vector<double> beta(n, 0.0);
    double positive = 0.0, negative = 0.0;
    for (const double s : flat.sign) (s > 0 ? positive : negative) += 1.0;
    for (Index i = 0; i < n; ++i) beta[i] = 0.5 * flat.sign[i] / (flat.sign[i] > 0 ? positive : negative);
    return block_of<double>(flat.gram, flat.sign, flat.cost_bounds, beta, 32);
}

template <class Real>
double sum(const SmoBlock<Real>& block) {
    return std::accumulate(block.beta.data(), block.beta.data() + block.size, 0.0);
}

template <class Real>
void check_arrival(double exact) {
    Random random(81);
    const Index n = 30;
    const Matrix x = fixtures::random_matrix(n, n, random);
    const Matrix gram = fixtures::plain_gram({.type = KernelType::linear}, x, fixtures::identity(n));
    std::vector<double> sign(n), cost_bounds(n, 1e6), beta(n, 0.0);
    for (Index i = 0; i < n; ++i) sign[i] = i % 2 == 0 ? 1.0 : -1.0;
    for (Index i = 0; i < 20; ++i) beta[i] = 10.0 * sign[i];  // far from all bounds, the others at theirs
    auto block = block_of<Real>(gram, sign, cost_bounds, beta, 32);
    for (Index i = 0; i < 20; ++i) block.upper.data()[i] = -(block.lower.data()[i] = -1e6);
    const double before = dual(block, sign);
    const Blas blas = plain::blas();
    CHECK(SmoJump<Real>(block, blas)(1) == SmoJump<Real>::Outcome::arrived);
    CHECK(dual(block, sign) > before);
    CHECK_CLOSE(sum(block), 0.0, 1e-9);
    for (Index i = 1; i < 20; ++i) CHECK_CLOSE(block.f.data()[i], block.f.data()[0], exact);
    for (Index i = 20; i < n; ++i) CHECK(block.beta.data()[i] == 0.0);
}

}  // namespace

TEST(a_jump_goes_to_the_optimum_of_the_free_variables) {
    check_arrival<double>(1e-9);
    check_arrival<float>(0.02);  // of gradients of some hundreds
}

TEST(a_stop_ends_a_row_of_jumps) {
    Random random(82);
    const Flat flat(24, 3, 1.0, random);
    const Blas blas = plain::blas();
    const auto steps_of = [&](const Control& control, double& cost) {
        auto block = block_within(flat);
        SmoJump<double> jump(block, blas, {}, &control);
        jump(64);
        cost = jump.cost();
        return jump.steps();
    };
    Control running, stopped;
    stopped.cancel();
    double cost = 0.0;
    CHECK(steps_of(running, cost) > 4 && cost > 0.0);
    CHECK(steps_of(stopped, cost) == 0 && cost == 0.0);  // not even a factorisation
}

TEST(a_jump_that_is_blocked_leaves_a_variable_at_its_bound) {
    Random random(82);
    const Flat flat(24, 3, 1.0, random);
    auto block = block_within(flat);
    const Blas blas = plain::blas();
    SmoJump<double> jump(block, blas);
    double last = dual(block, flat.sign);
    Index at_bound = 0;
    while (jump(1) == SmoJump<double>::Outcome::blocked) {
        Index now = 0;
        for (Index i = 0; i < 24; ++i) {
            const double b = block.beta.data()[i];
            CHECK(block.lower.data()[i] <= b && b <= block.upper.data()[i]);
            now += b == block.lower.data()[i] || b == block.upper.data()[i];
        }
        CHECK(now > at_bound);
        at_bound = now;
        CHECK(dual(block, flat.sign) >= last - 1e-9);
        last = dual(block, flat.sign);
        CHECK_CLOSE(sum(block), 0.0, 1e-11);
    }
    CHECK(at_bound >= 24 - 4);  // three features and the sum leave no more free
}

TEST(jumps_in_a_row_end_where_one_after_the_other_ends) {
    Random random(87);
    const Index n = 60;
    const Matrix x = fixtures::random_matrix(n, n + 10, random);
    const Matrix gram = fixtures::plain_gram({.type = KernelType::linear}, x, fixtures::identity(n));
    std::vector<double> sign(n), beta(n), cost_bounds(n, 0.05);
    for (Index i = 0; i < n; ++i) {
        sign[i] = i % 2 == 0 ? 1.0 : -1.0;
        beta[i] = 0.025 * sign[i];
    }
    auto together = block_of<double>(gram, sign, cost_bounds, beta, n);
    auto apart = block_of<double>(gram, sign, cost_bounds, beta, n);
    const Blas blas = plain::blas();
    SmoJump<double> jump(together, blas), single(apart, blas);
    int steps = 0, calls = 0, single_steps = 0;
    const auto goes_on = [](SmoJump<double>& each, int most, int& sum) {
        const auto outcome = each(most);
        sum += each.steps();
        return outcome == SmoJump<double>::Outcome::blocked;
    };
    do ++calls;
    while (goes_on(jump, 64, steps));
    while (goes_on(single, 1, single_steps)) continue;
    CHECK(steps == single_steps && steps > 4 * calls);
    for (Index i = 0; i < n; ++i) {
        CHECK_CLOSE(together.beta.data()[i], apart.beta.data()[i], 1e-9);
        CHECK_CLOSE(together.f.data()[i], apart.f.data()[i], 1e-9);
    }
}

TEST(what_cannot_be_solved_is_left_alone) {
    Random random(83);
    const Blas blas = plain::blas();
    const Flat flat(10, 3, 1.0, random);
    const std::vector<double> zero(10, 0.0);
    auto bound = block_of<double>(flat.gram, flat.sign, flat.cost_bounds, zero, 16);
    CHECK(SmoJump<double>(bound, blas)(1) == SmoJump<double>::Outcome::impossible);
    const std::vector<double> endless(10, std::numeric_limits<double>::infinity());
    auto hard = block_of<double>(flat.gram, flat.sign, endless, flat.sign, 16);
    CHECK(SmoJump<double>(hard, blas)(1) == SmoJump<double>::Outcome::impossible);
    CHECK(std::equal(flat.sign.begin(), flat.sign.end(), hard.beta.data()));
}

TEST(with_jumps_the_same_optimum_is_found_in_fewer_steps) {
    Random random(84);
    const Blas blas = plain::blas();
    for (const double cost : {100.0, 10000.0}) {
        const Flat flat(80, 5, cost, random);
        const std::vector<double> zero(80, 0.0);
        auto plain = block_of<double>(flat.gram, flat.sign, flat.cost_bounds, zero, 80);
        auto jumping = block_of<double>(flat.gram, flat.sign, flat.cost_bounds, zero, 80);
        const SmoResult slow = smo(plain, 1e-6, kNoLimit), fast = smo(jumping, 1e-6, kNoLimit, &blas);
        CHECK(slow.violation <= 1e-6 && fast.violation <= 1e-6);
        CHECK(fast.iterations < slow.iterations / 10);
        CHECK_CLOSE(dual(jumping, flat.sign), dual(plain, flat.sign), 1e-6 * cost);
        CHECK_CLOSE(sum(jumping), 0.0, 1e-9);
    }
}

TEST(a_stop_ends_steps_and_jumps) {
    Random random(84);
    const Blas blas = plain::blas();
    const Flat flat(80, 5, 100.0, random);
    const std::vector<double> zero(80, 0.0);
    auto block = block_of<double>(flat.gram, flat.sign, flat.cost_bounds, zero, 80);
    Control control;
    control.cancel();
    const double before = dual(block, flat.sign);
    const SmoResult stopped = smo(block, 1e-6, kNoLimit, &blas, {}, &control);
    CHECK(stopped.violation > 1e-6);
    CHECK(stopped.iterations > 0 && stopped.iterations <= 80);  // one turn
    CHECK(dual(block, flat.sign) > before);
    // Without jumps too, after as many steps as the poll is worth.
    const SmoSettings settings{.between_polls = 5 * block.width};
    CHECK(smo(block, 1e-6, kNoLimit, nullptr, settings, &control).iterations == 5);
}

TEST(a_jump_that_follows_the_last_one_goes_where_a_new_one_goes) {
    Random random(85);
    const Blas blas = plain::blas();
    const Index n = 60;
    const Matrix x = fixtures::random_matrix(n, n + 10, random);
    const Matrix gram = fixtures::plain_gram({.type = KernelType::linear}, x, fixtures::identity(n));
    std::vector<double> sign(n), beta(n), cost_bounds(n, 0.05);
    for (Index i = 0; i < n; ++i) {
        sign[i] = i % 2 == 0 ? 1.0 : -1.0;
        beta[i] = 0.025 * sign[i];
    }
    auto followed = block_of<double>(gram, sign, cost_bounds, beta, n);
    auto anew = block_of<double>(gram, sign, cost_bounds, beta, n);
    SmoJump<double> jump(followed, blas);
    double cost = 0.0, cost_anew = 0.0;
    for (int turn = 0; turn < 12; ++turn) {
        SmoJump<double> first(anew, blas);
        CHECK(jump(1) == first(1));
        cost += jump.cost();
        cost_anew += first.cost();
        for (Index i = 0; i < n; ++i) CHECK_CLOSE(followed.beta.data()[i], anew.beta.data()[i], 1e-9);
        for (auto* block : {&followed, &anew}) smo(*block, 1e-9, 2);  // frees variables and binds others
    }
    CHECK(cost < cost_anew);
}

TEST(rows_that_no_step_needs_are_not_fetched) {
    Random random(86);
    const Index n = 50;
    const Matrix x = fixtures::random_matrix(n, 4, random);
    const Matrix gram = fixtures::plain_gram({.type = KernelType::rbf, .gamma = 0.1}, x, fixtures::identity(n));
    std::vector<double> sign(n), cost_bounds(n, 1.0), beta(n, 0.0);
    for (Index i = 0; i < n; ++i) sign[i] = x.at(i, 0) > 0 ? 1.0 : -1.0;
    auto there = block_of<double>(gram, sign, cost_bounds, beta, n),
         lazy = block_of<double>(gram, sign, cost_bounds, beta, n);
    std::vector<Index> fetched;
    lazy.resize_empty(n, n, [&](Index t) {
        fetched.push_back(t);
        return lazy.own_row(t);
    });
    const SmoResult expected = smo(there, 1e-8, kNoLimit), found = smo(lazy, 1e-8, kNoLimit);
    CHECK(found.iterations == expected.iterations && found.violation == expected.violation);
    CHECK(std::equal(there.beta.data(), there.beta.data() + n, lazy.beta.data()));
    std::ranges::sort(fetched);
    CHECK(std::ranges::adjacent_find(fetched) == fetched.end());
    CHECK(!fetched.empty() && std::ssize(fetched) < n);
}
