#include "solver/example_block.hpp"

#include "check.hpp"
#include "fixtures.hpp"
#include "plain_blas.hpp"
#include "plain_losses.hpp"
#include "problem/crammer_singer.hpp"
#include "problem/weston_watkins.hpp"

using namespace polymargin;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const Blas blas = plain::blas();
const KernelSpec kRbf{.type = KernelType::rbf, .gamma = 0.2};

/// Examples of a block and, as plain loops would have it, their kernel.
struct Problem {
    Index classes;
    std::vector<Index> labels;
    std::vector<double> cost_bounds;
    Matrix gram;

    Problem(Index k, Index count, double C, std::uint64_t seed, const KernelSpec& kernel = kRbf)
        : classes(k), gram(0, 0) {
        Random random(seed);
        const Matrix x = fixtures::random_matrix(count, 3, random);
        gram = fixtures::plain_gram(kernel, x, fixtures::identity(count));
        for (Index i = 0; i < count; ++i) {
            labels.push_back(random.below(k));
            cost_bounds.push_back(C * random.uniform(0.5, 1.5));
        }
    }
    [[nodiscard]] Index size() const { return std::ssize(labels); }
};

/// Put the problem into the block, all coefficients zero.
template <class Real, class Loss>
void fill(ExampleBlock<Real>& block, const Loss& loss, const Problem& problem) {
    block.resize(problem.size(), 0.0);
    for (Index s = 0; s < problem.size(); ++s) {
        for (Index u = 0; u < problem.size(); ++u) block.kernel(s)[u] = static_cast<Real>(problem.gram.at(s, u));
        std::ranges::fill(block.row(s), 0.0);
        block.load(loss, s, {problem.labels[s], problem.cost_bounds[s]},
                   [&](Index m) { return loss.offsets(problem.labels[s])[m]; });
    }
}

template <class Real>
plain::Machine machine_of(ExampleBlock<Real>& block, const Problem& problem) {
    plain::Machine machine{.classes = problem.classes, .rows = {}, .weight = 0.0, .shift = {}};
    for (Index s = 0; s < problem.size(); ++s) {
        machine.rows.insert(machine.rows.end(), block.row(s).begin(), block.row(s).end());
    }
    return machine;
}

template <class Real, class Loss>
void check_blocks(const Loss& loss, const plain::Loss& plain_loss) {
    const double rounding = std::is_same_v<Real, float> ? 1e-4 : 1e-10;
    ExampleBlock<Real> block(70, 4);
    // Whole vectors, one more, one less, and a block that was larger before.
    for (const Index size : {1, 2, 15, 16, 17, 70, 33}) {
        const Problem problem(4, size, 2.0, 271 + size);
        for (const double tolerance : {0.1, 1e-3}) {
            fill(block, loss, problem);
            const Index steps = block.solve(loss, tolerance, 1'000'000, nullptr);
            CHECK(steps > 0 && steps < 1'000'000);
            const auto w = plain::evaluate(plain_loss, problem.gram, problem.labels, problem.cost_bounds,
                                           machine_of(block, problem));
            CHECK(w.violation <= tolerance + rounding);
            CHECK(block.solve(loss, tolerance, 10, nullptr) == 0);
        }
    }
}

}  // namespace

TEST(blocks_are_solved_to_the_tolerance) {
    check_blocks<float>(WestonWatkins(), plain::weston_watkins());
    check_blocks<double>(WestonWatkins(), plain::weston_watkins());
    check_blocks<float>(CrammerSinger(), plain::crammer_singer());
    check_blocks<double>(CrammerSinger(), plain::crammer_singer());
}

TEST(every_step_of_a_block_gains) {
    const Problem problem(5, 30, 3.0, 272);
    const WestonWatkins loss;
    ExampleBlock<double> block(30, 5);
    fill(block, loss, problem);
    double last = 0.0;
    for (int step = 0; step < 60; ++step) {
        CHECK(block.solve(loss, 1e-9, 1, nullptr) == 1);
        const auto machine = machine_of(block, problem);
        const double dual =
            plain::evaluate(plain::weston_watkins(), problem.gram, problem.labels, problem.cost_bounds, machine).dual;
        CHECK(dual > last);
        last = dual;
    }
}

/// Steps of single examples move all gradients alike there, exchanges do not.
TEST(blocks_with_a_wide_kernel_are_solved) {
    const Problem problem(4, 60, 100.0, 274, {.type = KernelType::rbf, .gamma = 1e-3});
    const auto check = [&](const auto& loss, const plain::Loss& plain_loss) {
        ExampleBlock<double> block(60, 4);
        fill(block, loss, problem);
        const Index steps = block.solve(loss, 1e-3, 1'000'000, nullptr);
        CHECK(steps > 0 && steps < 1'000'000);
        const auto w =
            plain::evaluate(plain_loss, problem.gram, problem.labels, problem.cost_bounds, machine_of(block, problem));
        CHECK(w.violation <= 1e-3 + 1e-10);
    };
    check(WestonWatkins(), plain::weston_watkins());
    check(CrammerSinger(), plain::crammer_singer());
}

TEST(jumps_that_bring_nothing_get_little_of_the_work) {
    // Overlapping classes and a wide kernel: far more coefficients are free than a jump takes, and bounds cut all
    // short.
    const Problem problem(6, 200, 100.0, 276, {.type = KernelType::rbf, .gamma = 1e-2});
    const auto work = [&](double worth) {
        ExampleBlock<double> block(200, 6, {.jump_worth = worth, .most_free = 64});
        fill(block, CrammerSinger(), problem);
        for (int part = 0; part < 10; ++part) CHECK(block.solve(CrammerSinger(), 1e-6, 8000, &blas) == 8000);
        return block.work();
    };
    CHECK(work(BlockSettings{}.jump_worth) < 0.8 * work(0.0));
}

TEST(equal_examples_exchange_nothing_that_matters) {
    Problem problem(3, 24, 2.0, 275);
    for (Index i = 0; i < 24; ++i) {  // all in pairs of equal points, of any classes
        for (Index j = 0; j < 24; ++j) problem.gram.at(i, j) = problem.gram.at(i - i % 2, j - j % 2);
    }
    ExampleBlock<float> block(24, 3);
    fill(block, CrammerSinger(), problem);
    const Index steps = block.solve(CrammerSinger(), 1e-3, 1'000'000, nullptr);
    CHECK(steps > 0 && steps < 1'000'000);
    const auto w = plain::evaluate(plain::crammer_singer(), problem.gram, problem.labels, problem.cost_bounds,
                                   machine_of(block, problem));
    CHECK(w.violation <= 1e-3 + 1e-4);
}

TEST(a_block_without_end_says_so) {
    Problem problem(3, 4, 1.0, 273);
    std::ranges::fill(problem.cost_bounds, kInfinity);
    std::ranges::fill(problem.gram.values, 0.0);
    ExampleBlock<double> block(4, 3);
    fill(block, CrammerSinger(), problem);
    CHECK(block.solve(CrammerSinger(), 1e-3, 100, nullptr) == -1);
    for (Index s = 0; s < 4; ++s) {
        for (const double b : block.row(s)) CHECK(b == 0.0);
    }
}
