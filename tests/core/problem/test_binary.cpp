#include "problem/binary.hpp"

#include <stdexcept>

#include "check.hpp"
#include "fixtures.hpp"
#include "problem/cost_path.hpp"

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
    return {{{0, n / 2, 1.0}, {n / 2, n, -1.0}}};
}

}  // namespace

TEST(runs_of_a_pair_of_classes) {
    const auto runs = runs_of({{{10, 13, 1.0}, {20, 25, -1.0}}});
    CHECK(runs.size() == 2);
    check_run(runs[0], 0, 10, 3, 1.0);
    check_run(runs[1], 3, 20, 5, -1.0);
}

TEST(runs_when_the_second_range_is_positive) {
    const auto runs = runs_of({{{0, 2, -1.0}, {7, 9, 1.0}}});
    CHECK(runs.size() == 2);
    check_run(runs[0], 0, 0, 2, -1.0);
    check_run(runs[1], 2, 7, 2, 1.0);
}

TEST(runs_of_a_class_in_the_middle) {
    const auto runs = runs_of({{{0, 4, -1.0}, {4, 6, 1.0}, {6, 10, -1.0}}});
    CHECK(runs.size() == 3);
    check_run(runs[0], 0, 0, 4, -1.0);
    check_run(runs[1], 4, 4, 2, 1.0);
    check_run(runs[2], 6, 6, 4, -1.0);
}

TEST(the_size_of_a_problem_is_that_of_its_ranges) {
    CHECK(runs_of({}).empty());
    CHECK(BinaryProblem{{{10, 13, 1.0}, {20, 25, -1.0}}}.size() == 8);
}

TEST(problems_are_read_from_a_table) {
    const std::vector<Index> table{0, 0, 3, 1, 0, 5, 9, -1, 1, 2, 3, -1, 1, 3, 5, 1, 1, 5, 6, -1};
    const auto problems = problems_from(table);
    CHECK(problems.size() == 2);
    CHECK((problems[0].ranges == std::vector<SignedRange>{{0, 3, 1.0}, {5, 9, -1.0}}));
    CHECK((problems[1].ranges == std::vector<SignedRange>{{2, 3, -1.0}, {3, 5, 1.0}, {5, 6, -1.0}}));
    CHECK(problems_from({}).empty());
    check_within(problems, 9);
    CHECK_THROWS(std::invalid_argument, "problem 0: its ranges go beyond", check_within(problems, 8));
}

TEST(a_table_that_is_not_sound_is_refused_by_row) {
    const auto read = [](std::vector<Index> table) { static_cast<void>(problems_from(table)); };
    CHECK_THROWS(std::invalid_argument, "row 0: problems must be numbered", read({1, 0, 3, 1, 1, 3, 6, -1}));
    CHECK_THROWS(std::invalid_argument, "row 2: problems must be numbered",
                 read({0, 0, 3, 1, 0, 3, 6, -1, 2, 0, 3, 1, 2, 3, 6, -1}));
    CHECK_THROWS(std::invalid_argument, "row 1: the sign must be", read({0, 0, 3, 1, 0, 3, 6, 0}));
    CHECK_THROWS(std::invalid_argument, "row 1: the ranges of a problem", read({0, 0, 3, 1, 0, 2, 6, -1}));
    CHECK_THROWS(std::invalid_argument, "row 0: the ranges of a problem", read({0, 3, 3, 1, 0, 3, 6, -1}));
    CHECK_THROWS(std::invalid_argument, "row 0: the ranges of a problem", read({0, -1, 3, 1, 0, 3, 6, -1}));
    CHECK_THROWS(std::invalid_argument, "problem 1: there must be examples of both signs",
                 read({0, 0, 3, 1, 0, 3, 6, -1, 1, 0, 3, 1, 1, 3, 6, 1}));
}

TEST(pairs_keep_their_classes_apart_and_other_problems_their_neighbours_together) {
    const BinaryProblem pair{{{0, 3, 1.0}, {3, 6, -1.0}}}, other{{{0, 3, 1.0}, {6, 9, -1.0}}};
    const BinaryProblem first{{{0, 3, 1.0}, {3, 9, -1.0}}}, second{{{0, 3, -1.0}, {3, 6, 1.0}, {6, 9, -1.0}}};
    const BinaryProblem code{{{0, 3, -1.0}, {3, 6, 1.0}, {9, 12, -1.0}}};
    using Segments = std::vector<std::vector<Range>>;
    CHECK((segments_of(std::vector{pair, other}, 12) == Segments{{{0, 3}, {3, 6}}, {{0, 3}, {6, 9}}}));
    CHECK((segments_of(std::vector{pair}, 12) == Segments{{{0, 3}, {3, 6}}}));
    CHECK((segments_of(std::vector{first, second}, 12) == Segments{{{0, 9}}, {{0, 9}}}));
    CHECK((segments_of(std::vector{pair}, 6) == Segments{{{0, 6}}}));
    CHECK((segments_of(std::vector{code, pair}, 12) == Segments{{{0, 6}, {9, 12}}, {{0, 3}, {3, 6}}}));
}

TEST(a_known_optimum_has_no_violation_and_no_gap) {
    Random random(11);
    const KnownOptimum known(30, random);
    const auto runs = runs_of(halves(60));
    const BinaryState state{known.beta, known.f};
    CHECK_CLOSE(violation(runs, state, known.cost_bounds).size(), 0.0, 1e-13);
    CHECK_CLOSE(intercept(runs, state, known.cost_bounds), known.intercept, 1e-13);
    const Objectives value = objectives(runs, state, known.cost_bounds, known.intercept);
    double quadratic = 0.0, loss = 0.0;
    for (Index i = 0; i < 60; ++i) {
        double score = 0.0;
        for (Index j = 0; j < 60; ++j) score += known.gram.at(i, j) * known.beta[j];
        quadratic += known.beta[i] * score;
        loss += known.cost_bounds[i] * std::max(0.0, 1.0 - known.sign[i] * (score + known.intercept));
    }
    CHECK_CLOSE(value.primal, quadratic / 2 + loss, 1e-10);
    CHECK_CLOSE(value.primal, value.dual, 1e-10);
}

TEST(the_start_violates_by_two) {
    const auto runs = runs_of(halves(4));
    const BinaryState state{{0, 0, 0, 0}, {-1, -1, 1, 1}};
    const std::vector<double> cost_bounds(4, 1.0);
    const Violation v = violation(runs, state, cost_bounds);
    CHECK(v.lowest_up == -1.0);
    CHECK(v.highest_low == 1.0);
    CHECK(v.size() == 2.0);
    CHECK(intercept(runs, state, cost_bounds) == 0.0);
    const Objectives value = objectives(runs, state, cost_bounds, 0.0);
    CHECK(value.primal == 4.0);
    CHECK(value.dual == 0.0);
}

TEST(violation_sees_only_variables_that_can_move) {
    const auto runs = runs_of(halves(4));
    const std::vector<double> cost_bounds(4, 1.0);
    // All at their bounds: positives can only fall, negatives only grow.
    const Violation v = violation(runs, {{1, 1, -1, -1}, {-5, -4, 3, 4}}, cost_bounds);
    CHECK(v.highest_low == -4.0);
    CHECK(v.lowest_up == 3.0);
    CHECK(v.size() == -7.0);
}

TEST(the_intercept_without_free_variables_is_the_middle) {
    const auto runs = runs_of(halves(4));
    const std::vector<double> cost_bounds(4, 1.0);
    CHECK_CLOSE(intercept(runs, {{1, 1, -1, -1}, {-5, -4, 3, 4}}, cost_bounds), 0.5, 0.0);
}

TEST(the_intercept_of_one_class_is_finite) {
    // Nothing may fall, so one side of the interval is infinite and the other decides.
    const auto runs = runs_of({{{0, 3, 1.0}}});
    const std::vector<double> cost_bounds(3, 1.0);
    CHECK(intercept(runs, {{0, 0, 0}, {-1, -1, -1}}, cost_bounds) == 1.0);
    const auto negative = runs_of({{{0, 3, -1.0}}});
    CHECK(intercept(negative, {{0, 0, 0}, {1, 1, 1}}, cost_bounds) == -1.0);
}

TEST(bounds_belong_to_the_engine_numbering) {
    const auto runs = runs_of({{{2, 3, 1.0}, {5, 6, -1.0}}});
    const std::vector<double> cost_bounds{9, 9, 0.5, 9, 9, 2.0};
    // Local variable 0 is example 2 with C = 0.5: at its bound. Local variable 1 is example 5 with C = 2:
    // free.
    CHECK(intercept(runs, {{0.5, -0.5}, {7.0, 0.25}}, cost_bounds) == -0.25);
    const Objectives value = objectives(runs, {{0.0, 0.0}, {-1.0, 1.0}}, cost_bounds, 0.0);
    CHECK(value.primal == 2.5);
}

TEST(hard_margin_primal_is_scaled_to_feasibility) {
    // x = +-1 on a line, b = +-1/4 instead of the optimal 1/2: margins are 1/2, so w is doubled.
    const auto runs = runs_of(halves(2));
    const std::vector<double> cost_bounds(2, kInfinity);
    const Objectives half = objectives(runs, {{0.25, -0.25}, {-0.5, 0.5}}, cost_bounds, 0.0);
    CHECK_CLOSE(half.primal, 0.5, 1e-15);
    CHECK_CLOSE(half.dual, 0.375, 1e-15);
    const Objectives solved = objectives(runs, {{0.5, -0.5}, {0.0, 0.0}}, cost_bounds, 0.0);
    CHECK_CLOSE(solved.primal, 0.5, 1e-15);
    CHECK_CLOSE(solved.dual, 0.5, 1e-15);
    CHECK(objectives(runs, {{0.0, 0.0}, {-1.0, 1.0}}, cost_bounds, 0.0).primal == kInfinity);
}

TEST(runs_of_every_length_are_summed_to_their_end) {
    Random random(5);
    for (Index n = 2; n <= 80; n += 3) {
        const auto runs = runs_of({{{0, n / 2, 1.0}, {n / 2, n, -1.0}}});
        BinaryState state;
        std::vector<double> cost_bounds;
        double sum = 0.0, free = 0.0, quadratic = 0.0, linear = 0.0, loss = 0.0;
        for (Index i = 0; i < n; ++i) {
            const double sign = i < n / 2 ? 1.0 : -1.0, bound = random.uniform(0.5, 2.0);
            const double size = i % 3 == 0 ? 0.0 : i % 3 == 1 ? bound : bound / 2;
            cost_bounds.push_back(bound);
            state.beta.push_back(sign * size);
            state.f.push_back(random.normal());
            if (size > 0.0 && size < bound) sum += state.f[i], free += 1.0;
            quadratic += state.beta[i] * (state.f[i] + sign);
            linear += state.beta[i] * sign;
            loss += bound * std::max(0.0, -sign * (state.f[i] + 0.25));
        }
        if (free > 0.0) CHECK_CLOSE(intercept(runs, state, cost_bounds), -sum / free, 1e-13);
        const Objectives value = objectives(runs, state, cost_bounds, 0.25);
        CHECK_CLOSE(value.primal, quadratic / 2 + loss, 1e-12);
        CHECK_CLOSE(value.dual, linear - quadratic / 2, 1e-12);
    }
}

TEST(a_path_knows_by_how_much_every_bound_grows) {
    const CostPath path(std::vector<double>{0.5, 1.0, 8.0}, std::vector<double>{0.0, 1.0, 3.0});
    CHECK(path.growth == (std::vector<double>{1.0, 2.0, 8.0}));
}
