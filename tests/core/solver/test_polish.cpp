#include "solver/polish.hpp"

#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::KnownOptimum;
using fixtures::Matrix;
using fixtures::Random;

namespace {

PolishKernel kernel_of(const Matrix& gram, BinaryState& state) {
    return {.values =
                [&gram](Index i, std::span<const Index> which, double* out) {
                    for (const Index j : which) *out++ = gram.at(i, j);
                },
            .moved =
                [&gram, &state](std::span<const Index> which, std::span<const double> change) {
                    for (std::size_t w = 0; w < which.size(); ++w) {
                        for (Index t = 0; t < gram.rows; ++t) state.f[t] += change[w] * gram.at(t, which[w]);
                    }
                }};
}

BinaryState state_at(const Matrix& gram, std::span<const double> sign, std::vector<double> beta) {
    BinaryState state{.beta = std::move(beta), .f = {}};
    for (Index t = 0; t < gram.rows; ++t) {
        double f = -sign[t];
        for (Index s = 0; s < gram.rows; ++s) f += gram.at(t, s) * state.beta[s];
        state.f.push_back(f);
    }
    return state;
}

/// Move the free variables off their optimum and back into balance.
std::vector<double> disturbed(const KnownOptimum& known, Random& random) {
    std::vector<double> beta = known.beta;
    const auto half = static_cast<Index>(beta.size()) / 2;
    for (Index i = 1; i < half; i += 3) {
        const double change = 0.05 * known.cost_bounds[i] * random.uniform(-1.0, 1.0);
        beta[i] += change;
        beta[i + half] -= change;
    }
    return beta;
}

}  // namespace

TEST(polish_finds_a_known_optimum) {
    Random random(111);
    for (const Index half : {6, 30}) {
        const KnownOptimum known(half, random);
        const auto runs = runs_of({{{0, half, 1.0}, {half, 2 * half, -1.0}}});
        BinaryState state = state_at(known.gram, known.sign, disturbed(known, random));
        CHECK(violation(runs, state, known.cost_bounds).size() > 1e-3);
        polish(runs, known.cost_bounds, state, kernel_of(known.gram, state), plain::blas());
        CHECK(violation(runs, state, known.cost_bounds).size() <= 1e-11);
        for (Index i = 0; i < 2 * half; ++i) CHECK_CLOSE(state.beta[i], known.beta[i], 1e-10);
        // The gradient it leaves is that of the variables it leaves.
        const BinaryState fresh = state_at(known.gram, known.sign, state.beta);
        for (Index i = 0; i < 2 * half; ++i) CHECK_CLOSE(state.f[i], fresh.f[i], 1e-11);
    }
}

TEST(polish_with_equal_examples) {
    // Every example twice, so that the linear system is singular, and half the bound for each copy.
    Random random(112);
    const KnownOptimum known(12, random);
    const auto once = [](Index t) { return t / 2; };
    Matrix gram(48, 48);
    std::vector<double> sign(48), cost_bounds(48), beta(48);
    const auto start = disturbed(known, random);
    for (Index i = 0; i < 48; ++i) {
        sign[i] = known.sign[once(i)];
        cost_bounds[i] = known.cost_bounds[once(i)] / 2;
        beta[i] = start[once(i)] / 2;
        for (Index j = 0; j < 48; ++j) gram.at(i, j) = known.gram.at(once(i), once(j));
    }
    const auto runs = runs_of({{{0, 24, 1.0}, {24, 48, -1.0}}});
    BinaryState state = state_at(gram, sign, beta);
    polish(runs, cost_bounds, state, kernel_of(gram, state), plain::blas());
    CHECK(violation(runs, state, cost_bounds).size() <= 1e-11);
    for (Index i = 0; i < 24; ++i) CHECK_CLOSE(state.beta[2 * i] + state.beta[2 * i + 1], known.beta[i], 1e-10);
}

TEST(polish_leaves_large_problems_as_they_are) {
    Random random(113);
    const KnownOptimum known(30, random);
    const auto runs = runs_of({{{0, 30, 1.0}, {30, 60, -1.0}}});
    BinaryState state = state_at(known.gram, known.sign, disturbed(known, random));
    const BinaryState before = state;
    polish(runs, known.cost_bounds, state, kernel_of(known.gram, state), plain::blas(), 5);
    CHECK(state.beta == before.beta && state.f == before.f);
}

TEST(polish_ends_after_so_many_systems) {
    Random random(115);
    const KnownOptimum known(30, random);
    const auto runs = runs_of({{{0, 30, 1.0}, {30, 60, -1.0}}});
    BinaryState state = state_at(known.gram, known.sign, disturbed(known, random));
    const BinaryState before = state;
    polish(runs, known.cost_bounds, state, kernel_of(known.gram, state), plain::blas(), kMostFree, 0);
    CHECK(state.beta == before.beta && state.f == before.f);
}

TEST(a_stop_ends_polishing) {
    Random random(116);
    const KnownOptimum known(30, random);
    const auto runs = runs_of({{{0, 30, 1.0}, {30, 60, -1.0}}});
    BinaryState state = state_at(known.gram, known.sign, disturbed(known, random));
    const BinaryState before = state;
    Control control;
    control.cancel();
    polish(runs, known.cost_bounds, state, kernel_of(known.gram, state), plain::blas(), kMostFree, 64, &control);
    CHECK(state.beta == before.beta && state.f == before.f);
}

TEST(exact_answers_are_cheap_for_few_variables_of_few_problems) {
    const PolishRule rule;
    CHECK(rule.solves(10, 100, 100) >= rule.least);
    CHECK(rule.solves(10, 100, 100'000'000) == rule.most);
    CHECK(rule.solves(200, 400, 1000) == 0);
    PolishRule many = rule;
    many.problems = 1000;
    CHECK(many.solves(10, 100, 100) == 0);
}

TEST(polish_keeps_the_better_of_two_states) {
    // An indefinite kernel: whatever the linear conditions say, the violation must not rise.
    Random random(114);
    for (int repeat = 0; repeat < 20; ++repeat) {
        KnownOptimum known(9, random);
        for (Index i = 0; i < 18; ++i) known.gram.at(i, i) -= 1.5;
        const auto runs = runs_of({{{0, 9, 1.0}, {9, 18, -1.0}}});
        BinaryState state = state_at(known.gram, known.sign, disturbed(known, random));
        const double before = violation(runs, state, known.cost_bounds).size();
        polish(runs, known.cost_bounds, state, kernel_of(known.gram, state), plain::blas());
        CHECK(violation(runs, state, known.cost_bounds).size() <= before);
        for (Index i = 0; i < 18; ++i) {
            CHECK(known.sign[i] * state.beta[i] >= 0.0 && known.sign[i] * state.beta[i] <= known.cost_bounds[i]);
        }
        CHECK_CLOSE(std::accumulate(state.beta.begin(), state.beta.end(), 0.0), 0.0, 1e-10);
    }
}
