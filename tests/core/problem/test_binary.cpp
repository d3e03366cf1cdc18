#include "problem/binary.hpp"

#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::KnownOptimum;
using fixtures::Random;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void check_run(const Run& run, Index local, Index global, Index size, double sign) {
    CHECK(run.local == local);
    CHECK(run.global == global);
    CHECK(run.size == size);
    CHECK(run.sign == sign);
}

BinaryProblem halves(Index n) {
    return {.segments = {{0, n}}, .positive = {0, n / 2}};
}

}  // namespace

TEST(runs_of_a_pair_of_classes) {
    const auto runs = runs_of({.segments = {{10, 13}, {20, 25}}, .positive = {10, 13}});
    CHECK(runs.size() == 2);
    check_run(runs[0], 0, 10, 3, 1.0);
    check_run(runs[1], 3, 20, 5, -1.0);
}

TEST(runs_when_the_second_segment_is_positive) {
    const auto runs = runs_of({.segments = {{0, 2}, {7, 9}}, .positive = {7, 9}});
    CHECK(runs.size() == 2);
    check_run(runs[0], 0, 0, 2, -1.0);
    check_run(runs[1], 2, 7, 2, 1.0);
}

TEST(runs_of_a_class_in_the_middle_of_one_segment) {
    const auto runs = runs_of({.segments = {{0, 10}}, .positive = {4, 6}});
    CHECK(runs.size() == 3);
    check_run(runs[0], 0, 0, 4, -1.0);
    check_run(runs[1], 4, 4, 2, 1.0);
    check_run(runs[2], 6, 6, 4, -1.0);
}

TEST(runs_leave_out_what_is_empty) {
    CHECK(runs_of({.segments = {{0, 3}}, .positive = {0, 3}}).size() == 1);
    CHECK(runs_of({.segments = {{0, 3}}, .positive = {5, 8}}).size() == 1);
    CHECK(runs_of({.segments = {{0, 3}, {3, 3}}, .positive = {0, 1}}).size() == 2);
    CHECK(runs_of({}).empty());
    CHECK(BinaryProblem{.segments = {{10, 13}, {20, 25}}, .positive = {10, 13}}.size() == 8);
}

TEST(a_known_optimum_has_no_violation_and_no_gap) {
    Random random(11);
    const KnownOptimum known(30, random);
    const auto runs = runs_of(halves(60));
    const BinaryState state{known.beta, known.f};
    CHECK_CLOSE(violation(runs, state, known.upper).size(), 0.0, 1e-13);
    CHECK_CLOSE(intercept(runs, state, known.upper), known.intercept, 1e-13);
    const Objectives value = objectives(runs, state, known.upper, known.intercept);
    double quadratic = 0.0, loss = 0.0;
    for (Index i = 0; i < 60; ++i) {
        double score = 0.0;
        for (Index j = 0; j < 60; ++j) score += known.gram.at(i, j) * known.beta[j];
        quadratic += known.beta[i] * score;
        loss += known.upper[i] * std::max(0.0, 1.0 - known.sign[i] * (score + known.intercept));
    }
    CHECK_CLOSE(value.primal, quadratic / 2 + loss, 1e-10);
    CHECK_CLOSE(value.primal, value.dual, 1e-10);
}

TEST(the_start_violates_by_two) {
    const auto runs = runs_of(halves(4));
    const BinaryState state{{0, 0, 0, 0}, {-1, -1, 1, 1}};
    const std::vector<double> upper(4, 1.0);
    const Violation v = violation(runs, state, upper);
    CHECK(v.lowest_up == -1.0);
    CHECK(v.highest_low == 1.0);
    CHECK(v.size() == 2.0);
    CHECK(intercept(runs, state, upper) == 0.0);
    const Objectives value = objectives(runs, state, upper, 0.0);
    CHECK(value.primal == 4.0);
    CHECK(value.dual == 0.0);
}

TEST(violation_sees_only_variables_that_can_move) {
    const auto runs = runs_of(halves(4));
    const std::vector<double> upper(4, 1.0);
    // All at their bounds: positives can only fall, negatives only grow.
    const Violation v = violation(runs, {{1, 1, -1, -1}, {-5, -4, 3, 4}}, upper);
    CHECK(v.highest_low == -4.0);
    CHECK(v.lowest_up == 3.0);
    CHECK(v.size() == -7.0);
}

TEST(the_intercept_without_free_variables_is_the_middle) {
    const auto runs = runs_of(halves(4));
    const std::vector<double> upper(4, 1.0);
    CHECK_CLOSE(intercept(runs, {{1, 1, -1, -1}, {-5, -4, 3, 4}}, upper), 0.5, 0.0);
}

TEST(the_intercept_of_one_class_is_finite) {
    // Nothing may fall, so one side of the interval is infinite and the other decides.
    const auto runs = runs_of({.segments = {{0, 3}}, .positive = {0, 3}});
    const std::vector<double> upper(3, 1.0);
    CHECK(intercept(runs, {{0, 0, 0}, {-1, -1, -1}}, upper) == 1.0);
    const auto negative = runs_of({.segments = {{0, 3}}, .positive = {0, 0}});
    CHECK(intercept(negative, {{0, 0, 0}, {1, 1, 1}}, upper) == -1.0);
}

TEST(bounds_belong_to_the_engine_numbering) {
    const auto runs = runs_of({.segments = {{2, 3}, {5, 6}}, .positive = {2, 3}});
    const std::vector<double> upper{9, 9, 0.5, 9, 9, 2.0};
    // Local variable 0 is example 2 with C = 0.5: at its bound. Local variable 1 is example 5 with C = 2:
    // free.
    CHECK(intercept(runs, {{0.5, -0.5}, {7.0, 0.25}}, upper) == -0.25);
    const Objectives value = objectives(runs, {{0.0, 0.0}, {-1.0, 1.0}}, upper, 0.0);
    CHECK(value.primal == 2.5);
}

TEST(hard_margin_primal_is_scaled_to_feasibility) {
    // x = +-1 on a line, b = +-1/4 instead of the optimal 1/2: margins are 1/2, so w is doubled.
    const auto runs = runs_of(halves(2));
    const std::vector<double> upper(2, kInfinity);
    const Objectives half = objectives(runs, {{0.25, -0.25}, {-0.5, 0.5}}, upper, 0.0);
    CHECK_CLOSE(half.primal, 0.5, 1e-15);
    CHECK_CLOSE(half.dual, 0.375, 1e-15);
    const Objectives solved = objectives(runs, {{0.5, -0.5}, {0.0, 0.0}}, upper, 0.0);
    CHECK_CLOSE(solved.primal, 0.5, 1e-15);
    CHECK_CLOSE(solved.dual, 0.5, 1e-15);
    CHECK(objectives(runs, {{0.0, 0.0}, {-1.0, 1.0}}, upper, 0.0).primal == kInfinity);
}
