#include "solver/binary.hpp"

#include <thread>

#include "audit.hpp"
#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::KernelSetup;
using fixtures::KnownOptimum;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Index kAmple = Index{1} << 30;
// A solver that does not end fails its test; the limit is far beyond what any of these takes.
constexpr double kTimeLimit = 20.0;
const KernelSpec kRbf{.type = KernelType::rbf, .gamma = 0.2};

template <class Real>
constexpr double kRounding = std::is_same_v<Real, float> ? 2e-4 : 1e-10;

/// Overlapping classes in the order of the engine, and their kernel.
struct Data {
    Matrix x;
    Matrix gram;
    std::vector<double> cost_bounds;
    Index classes, per_class;

    Data(Index k, Index per, double C, std::uint64_t seed) : Data(k, per, C, Random(seed)) {}

  private:
    Data(Index k, Index per, double C, Random random)
        : x(fixtures::blobs(k, per, 4, 0.7, random)),
          gram(fixtures::plain_gram(kRbf, x, fixtures::identity(k * per))),
          cost_bounds(k * per),
          classes(k),
          per_class(per) {
        for (double& u : cost_bounds) u = C * random.uniform(0.5, 1.5);
    }
};

template <class Real>
std::vector<BinaryResult> solve(const Data& data, std::span<const BinaryProblem> problems,
                                const BinarySettings& settings, Index budget = kAmple, int threads = 1,
                                bool whole = false, std::span<const BinaryStart> starts = {}) {
    KernelSetup<Real> setup(kRbf, data.x.dense(), fixtures::identity(data.x.rows), budget, threads, kTimeLimit);
    if (whole) setup.store.compute_whole();
    auto results = solve_binary<Real>(problems, data.cost_bounds, setup.store, settings, setup.control, starts);
    CHECK(results.size() == problems.size());
    CHECK(setup.control.progress().done == static_cast<Index>(problems.size()));
    CHECK(setup.control.progress().total == static_cast<Index>(problems.size()));
    return results;
}

template <class Real>
void check_all(const Data& data, std::span<const BinaryProblem> problems, std::span<const BinaryResult> results,
               double tolerance) {
    for (std::size_t p = 0; p < problems.size(); ++p) {
        audit::check_solved(problems[p], data.cost_bounds, data.gram, results[p], tolerance, kRounding<Real>);
    }
}

template <class Real>
void check_random_problems(bool whole) {
    for (const double C : {0.1, 1.0, 30.0}) {
        const Data data(2, 150, C, 81);
        const auto pairs = audit::all_pairs(2, 150);
        for (const double tolerance : {1e-1, 1e-3}) {
            check_all<Real>(data, pairs, solve<Real>(data, pairs, {.tolerance = tolerance}, kAmple, 1, whole),
                            tolerance);
        }
    }
}

BinaryStart start_from(const BinaryResult& result) {
    return {result.support, result.beta};
}

/// The two points of a separable problem on a line, as many times as asked for.
Data tiny(Index per_class) {
    return Data(2, per_class, 1.0, 82);
}

/// The classes, each with its square in the store.
template <class Real>
std::vector<BinaryResult> solve_on_squares(const Data& data, std::span<const BinaryProblem> problems,
                                           const BinarySettings& settings, int threads = 1,
                                           std::span<const BinaryStart> starts = {}) {
    KernelSetup<Real> setup(kRbf, data.x.dense(), fixtures::identity(data.x.rows), kAmple, threads, kTimeLimit);
    std::vector<Range> classes;
    for (Index m = 0; m < data.classes; ++m) classes.push_back({m * data.per_class, (m + 1) * data.per_class});
    setup.store.compute_squares(classes);
    const Index before = setup.store.evaluations();
    auto results = solve_binary<Real>(problems, data.cost_bounds, setup.store, settings, setup.control, starts);
    CHECK(setup.control.progress().done == static_cast<Index>(problems.size()));
    CHECK(setup.store.evaluations() > before);  // the rows between the classes count too
    return results;
}

template <class Real>
void check_squares_against_rows() {
    const Data data(4, 80, 2.0, 102);
    const auto pairs = audit::all_pairs(4, 80);
    for (const Index working_set : {16, 512}) {
        const BinarySettings settings{.working_set = working_set};
        const auto squares = solve_on_squares<Real>(data, pairs, settings);
        const auto rows = solve<Real>(data, pairs, settings);
        check_all<Real>(data, pairs, squares, 1e-3);
        for (std::size_t p = 0; p < pairs.size(); ++p) {
            const double dual = rows[p].objectives.dual;
            CHECK_CLOSE(squares[p].objectives.dual, dual, 1e-4 * dual);
            CHECK_CLOSE(squares[p].objectives.primal, rows[p].objectives.primal, 1e-3 * dual);
        }
    }
}

/// Signs of classes, 0 for those that take no part, as a problem of one range for each class that does.
BinaryProblem coded(std::span<const int> code, Index per_class) {
    BinaryProblem problem;
    for (Index m = 0; m < std::ssize(code); ++m) {
        if (code[m] != 0) problem.ranges.push_back({m * per_class, (m + 1) * per_class, static_cast<double>(code[m])});
    }
    return problem;
}

}  // namespace

TEST(random_problems_are_solved_in_single_precision) {
    check_random_problems<float>(false);
    check_random_problems<float>(true);
}

TEST(random_problems_are_solved_in_double_precision) {
    check_random_problems<double>(false);
    check_random_problems<double>(true);
}

TEST(tight_tolerances_close_the_gap) {
    const Data data(2, 120, 2.0, 83);
    const auto pairs = audit::all_pairs(2, 120);
    const auto result = solve<double>(data, pairs, {.tolerance = 1e-8})[0];
    const auto a = audit::examine(pairs[0], data.cost_bounds, data.gram, result);
    CHECK(result.status == Status::converged);
    CHECK(a.violation <= 1e-8 + 1e-10);
    CHECK((a.primal - a.dual) / a.dual <= 1e-7);
}

TEST(a_known_optimum_is_found) {
    Random random(84);
    const KnownOptimum known(60, random);
    const BinaryProblem problem = audit::pair({0, 60}, {60, 120});
    KernelSetup<double> setup({.type = KernelType::precomputed}, known.gram.precomputed(), fixtures::identity(120),
                              kAmple, 1, kTimeLimit);
    const BinarySettings settings{.tolerance = 1e-9, .working_set = 32};
    const auto result =
        solve_binary<double>(std::span(&problem, 1), known.cost_bounds, setup.store, settings, setup.control)[0];
    CHECK(result.status == Status::converged);
    CHECK_CLOSE(result.intercept, known.intercept, 1e-7);
    std::vector<double> beta(120, 0.0);
    for (std::size_t i = 0; i < result.support.size(); ++i) beta[result.support[i]] = result.beta[i];
    for (Index i = 0; i < 120; ++i) CHECK_CLOSE(beta[i], known.beta[i], 1e-6);
}

TEST(many_problems_share_one_store) {
    const Data data(4, 60, 1.0, 85);
    for (const auto& problems : {audit::all_pairs(4, 60), audit::all_rests(4, 60)}) {
        for (const Index in_flight : {1, 3, 16}) {
            check_all<double>(data, problems, solve<double>(data, problems, {.in_flight = in_flight}), 1e-3);
        }
    }
}

TEST(a_class_may_lie_in_the_middle_or_come_second) {
    const Data data(3, 50, 1.0, 86);
    const std::vector<BinaryProblem> problems{audit::against_rest({50, 100}, {0, 150}),
                                              {{{0, 50, -1.0}, {100, 150, 1.0}}}};
    check_all<double>(data, problems, solve<double>(data, problems, {}), 1e-3);
}

TEST(many_signed_ranges_are_two_when_the_examples_are_sorted_by_sign) {
    const Index per = 30;
    const Data data(8, per, 2.0, 97);
    const std::vector<std::vector<int>> codes{{1, -1, 1, -1, 1, -1, 1, -1},
                                              {1, 0, -1, 0, 1, 0, -1, 1},
                                              {0, 1, 1, -1, 0, -1, 1, 0},
                                              {1, 0, 0, 0, 0, 0, 0, -1}};
    std::vector<BinaryProblem> problems;
    std::vector<double> expected;
    for (const auto& code : codes) {
        problems.push_back(coded(code, per));
        std::vector<Index> order;
        Index positive = 0;
        for (const int sign : {1, -1}) {
            for (Index g = 0; g < data.x.rows; ++g) {
                if (code[g / per] == sign) order.push_back(g);
            }
            if (sign > 0) positive = std::ssize(order);
        }
        std::vector<double> cost_bounds;
        for (const Index g : order) cost_bounds.push_back(data.cost_bounds[g]);
        KernelSetup<double> setup(kRbf, data.x.dense(), order, kAmple, 1, kTimeLimit);
        const BinaryProblem sorted = audit::pair({0, positive}, {positive, std::ssize(order)});
        expected.push_back(
            solve_binary<double>(std::span(&sorted, 1), cost_bounds, setup.store, {.tolerance = 1e-8}, setup.control)[0]
                .objectives.dual);
    }
    const BinarySettings settings{.tolerance = 1e-8, .working_set = 48};
    const Index tight = 300 * 240 * static_cast<Index>(sizeof(double));
    const std::vector<std::vector<BinaryResult>> answers{
        solve<double>(data, problems, settings), solve<double>(data, problems, settings, tight),
        solve<double>(data, problems, settings, kAmple, 2, true), solve_on_squares<double>(data, problems, settings)};
    for (const auto& results : answers) {
        check_all<double>(data, problems, results, 1e-8);
        for (std::size_t p = 0; p < problems.size(); ++p) {
            CHECK_CLOSE(results[p].objectives.dual, expected[p], 1e-9 * expected[p]);
        }
    }
    for (std::size_t p = 0; p < problems.size(); ++p) {  // a start from the answer ends there
        const std::vector<BinaryStart> start{{answers[0][p].support, answers[0][p].beta}};
        const auto again = solve<double>(data, std::span(&problems[p], 1), settings, kAmple, 1, false, start)[0];
        CHECK_CLOSE(again.objectives.dual, expected[p], 1e-9 * expected[p]);
        CHECK(again.iterations <= 10);
    }
}

TEST(unbalanced_classes) {
    const Data data(2, 100, 1.0, 87);
    const std::vector<BinaryProblem> problems{audit::pair({0, 1}, {1, 200}), audit::pair({97, 100}, {100, 200})};
    // Tables are shared by where a segment begins, so the two are solved apart.
    for (const auto& problem : problems) {
        check_all<double>(data, std::span(&problem, 1), solve<double>(data, std::span(&problem, 1), {}), 1e-3);
    }
}

TEST(very_small_problems) {
    for (const Index per_class : {1, 2, 3, 5}) {
        const Data data = tiny(per_class);
        const auto pairs = audit::all_pairs(2, per_class);
        check_all<double>(data, pairs, solve<double>(data, pairs, {}), 1e-3);
    }
}

TEST(one_class_alone_is_already_solved) {
    const Data data = tiny(5);
    const BinaryProblem problem{{{0, 5, 1.0}}};
    const auto result = solve<double>(data, std::span(&problem, 1), {})[0];
    CHECK(result.status == Status::converged && result.support.empty() && result.iterations == 0);
    CHECK(result.intercept == 1.0);
}

TEST(no_problems_at_all) {
    const Data data = tiny(5);
    CHECK(solve<double>(data, {}, {}).empty());
}

TEST(small_working_sets_take_more_rounds_to_the_same_end) {
    const Data data(2, 100, 5.0, 88);
    const auto pairs = audit::all_pairs(2, 100);
    for (const Index working_set : {8, 20, 64}) {
        check_all<double>(data, pairs, solve<double>(data, pairs, {.working_set = working_set}), 1e-3);
    }
}

TEST(more_free_variables_than_a_working_set_holds_are_optimised_in_one_piece) {
    const Data data(3, 60, 1000.0, 96);
    const auto rests = audit::all_rests(3, 60);
    const auto steps = [&](Index most_in_one_piece) {
        const BinarySettings settings{
            .working_set = 24, .entrants = 8, .rows_are_there = true, .most_in_one_piece = most_in_one_piece};
        const auto results = solve<double>(data, rests, settings, kAmple, 1, true);
        check_all<double>(data, rests, results, settings.tolerance);
        Index sum = 0;
        for (const auto& result : results) sum += result.iterations;
        return sum;
    };
    CHECK(2 * steps(data.x.rows) < steps(0));
    CHECK(steps(data.x.rows - 1) == steps(0));
}

TEST(few_enter_at_once_where_rows_are_long) {
    const Data data(2, 150, 5.0, 97);
    const auto pair = audit::all_pairs(2, 150);
    const auto steps = [&](Index long_row, bool rows_are_there) {
        const BinarySettings settings{.working_set = 48,
                                      .entrants = 8,
                                      .rows_are_there = rows_are_there,
                                      .examples_for_entrant = 10,
                                      .most_in_one_piece = 0,
                                      .long_row = long_row};
        return solve<double>(data, pair, settings, kAmple, 1, true)[0].iterations;
    };
    CHECK(steps(299, true) == steps(300, false));
    CHECK(steps(300, true) != steps(300, false));
}

TEST(a_tight_budget_changes_the_cost_and_not_the_answer) {
    const Data data(3, 80, 2.0, 89);
    const auto pairs = audit::all_pairs(3, 80);
    const BinarySettings settings{.working_set = 24, .in_flight = 1};
    // One problem at a time: 24 rows against 2 x 80 columns, and a little to spare.
    const Index budget = 40 * 2 * padded<double>(80) * 8;
    check_all<double>(data, pairs, solve<double>(data, pairs, settings, budget), 1e-3);
}

TEST(a_budget_that_cannot_work_is_refused) {
    const Data data(2, 80, 2.0, 90);
    const auto pairs = audit::all_pairs(2, 80);
    CHECK_THROWS(std::invalid_argument, "cache_size is too small", solve<double>(data, pairs, {}, 1000));
}

TEST(the_answer_does_not_depend_on_the_threads) {
    const Data data(4, 70, 3.0, 91);
    auto problems = audit::all_pairs(4, 70);
    const Index tight = 6 * 40 * 2 * padded<float>(70) * 4;
    for (const auto& [budget, whole] : {std::pair{kAmple, true}, {kAmple, false}, {tight, false}}) {
        const BinarySettings settings{.working_set = 32, .in_flight = 4};
        const auto alone = solve<float>(data, problems, settings, budget, 1, whole);
        for (const int threads : {2, 4}) {
            const auto together = solve<float>(data, problems, settings, budget, threads, whole);
            for (std::size_t p = 0; p < problems.size(); ++p) CHECK(audit::same(alone[p], together[p]));
        }
    }
}

TEST(a_warm_start_from_the_solution_is_the_solution) {
    const Data data(3, 100, 2.0, 92);
    const auto pairs = audit::all_pairs(3, 100);
    const auto cold = solve<double>(data, pairs, {.tolerance = 1e-6});
    std::vector<BinaryStart> starts;
    for (const auto& result : cold) starts.push_back(start_from(result));
    // A working set smaller than the support: the start comes in over several rounds.
    for (const Index working_set : {16, 256}) {
        const auto warm =
            solve<double>(data, pairs, {.tolerance = 1e-3, .working_set = working_set}, kAmple, 1, false, starts);
        for (std::size_t p = 0; p < pairs.size(); ++p) {
            CHECK(warm[p].iterations == 0);
            CHECK(warm[p].support == cold[p].support && warm[p].beta == cold[p].beta);
            CHECK_CLOSE(warm[p].objectives.dual, cold[p].objectives.dual, 1e-9);
        }
    }
    // At its own tolerance only rounding may be left to do.
    const auto again = solve<double>(data, pairs, {.tolerance = 1e-6}, kAmple, 1, false, starts);
    for (const auto& result : again) CHECK(result.iterations <= 10);
}

TEST(a_warm_start_for_another_C_is_as_good_as_a_cold_one) {
    const Data small(2, 100, 1.0, 93);
    Data large = small;
    for (double& u : large.cost_bounds) u *= 2.0;
    const auto pairs = audit::all_pairs(2, 100);
    std::vector<BinaryStart> starts{start_from(solve<double>(small, pairs, {})[0])};
    const auto warm = solve<double>(large, pairs, {.tolerance = 1e-6}, kAmple, 1, false, starts);
    check_all<double>(large, pairs, warm, 1e-6);
    CHECK_CLOSE(warm[0].objectives.dual, solve<double>(large, pairs, {.tolerance = 1e-6})[0].objectives.dual, 1e-4);
}

TEST(the_iteration_limit_is_kept) {
    const Data data(2, 100, 10.0, 94);
    const auto pairs = audit::all_pairs(2, 100);
    for (const Index limit : {0, 1, 7, 100}) {
        const auto result = solve<double>(data, pairs, {.tolerance = 1e-6, .max_iterations = limit})[0];
        CHECK(result.status == Status::max_iterations);
        CHECK(result.iterations == limit);
        const auto a = audit::examine(pairs[0], data.cost_bounds, data.gram, result);  // unfinished, but feasible
        CHECK_CLOSE(a.violation, result.violation, 1e-10);
        CHECK(result.violation > 1e-6);
        CHECK(result.objectives.primal >= result.objectives.dual);
        if (limit == 0) CHECK(result.support.empty() && result.violation == 2.0);
    }
}

TEST(a_hard_margin_separates) {
    Data data(2, 40, 1.0, 95);
    for (Index i = 40; i < 80; ++i) data.x.at(i, 0) += 8.0;
    data.gram = fixtures::plain_gram(kRbf, data.x, fixtures::identity(80));
    std::fill(data.cost_bounds.begin(), data.cost_bounds.end(), kInfinity);
    const auto pairs = audit::all_pairs(2, 40);
    const auto result = solve<double>(data, pairs, {.tolerance = 1e-8})[0];
    CHECK(result.status == Status::converged);
    const auto a = audit::examine(pairs[0], data.cost_bounds, data.gram, result);
    CHECK(a.violation <= 1e-8 + 1e-10);
    CHECK_CLOSE(result.objectives.primal, result.objectives.dual, 1e-5);
    CHECK_CLOSE(result.objectives.dual, a.dual, 1e-9);
}

TEST(equal_points_with_both_labels_have_no_hard_margin) {
    Data data(2, 30, 1.0, 96);
    std::copy_n(data.x.values.begin() + 7 * 4, 4, data.x.values.begin() + 41 * 4);
    const auto pairs = audit::all_pairs(2, 30);
    std::fill(data.cost_bounds.begin(), data.cost_bounds.end(), kInfinity);
    const auto result = solve<double>(data, pairs, {})[0];
    CHECK(result.status == Status::unbounded);
    // With a bound, the same data are a problem like any other.
    std::fill(data.cost_bounds.begin(), data.cost_bounds.end(), 1.0);
    data.gram = fixtures::plain_gram(kRbf, data.x, fixtures::identity(60));
    check_all<double>(data, pairs, solve<double>(data, pairs, {}), 1e-3);
}

TEST(an_indefinite_kernel_ends_too) {
    Random random(97);
    const Matrix x = fixtures::blobs(2, 60, 4, 0.7, random);
    const std::vector<double> cost_bounds(120, 1.0);
    const auto pairs = audit::all_pairs(2, 60);
    const KernelSpec sigmoid{.type = KernelType::sigmoid, .gamma = 0.5, .coef0 = -1.0};
    KernelSetup<double> setup(sigmoid, x.dense(), fixtures::identity(120), kAmple, 1, kTimeLimit);
    const auto result = solve_binary<double>(pairs, cost_bounds, setup.store, {}, setup.control)[0];
    const auto a =
        audit::examine(pairs[0], cost_bounds, fixtures::plain_gram(sigmoid, x, fixtures::identity(120)), result);
    CHECK(result.status == Status::converged);
    CHECK(a.violation <= 1e-3 + 1e-10);
}

TEST(a_stop_ends_all_problems) {
    const Data data(3, 60, 1.0, 98);
    const auto pairs = audit::all_pairs(3, 60);
    KernelSetup<double> cancelled(kRbf, data.x.dense(), fixtures::identity(180), kAmple);
    cancelled.control.cancel();
    const BinarySettings one_at_a_time{.in_flight = 1};
    for (const auto& result :
         solve_binary<double>(pairs, data.cost_bounds, cancelled.store, one_at_a_time, cancelled.control)) {
        CHECK(result.status == Status::stopped && result.iterations == 0);
    }
    KernelSetup<double> late(kRbf, data.x.dense(), fixtures::identity(180), kAmple, 1, 0.0);
    for (const auto& result : solve_binary<double>(pairs, data.cost_bounds, late.store, {}, late.control)) {
        CHECK(result.status == Status::time_limit);
    }
}

TEST(a_stop_in_the_middle_leaves_feasible_answers) {
    const Data data(3, 120, 1000.0, 99);
    const auto pairs = audit::all_pairs(3, 120);
    KernelSetup<double> setup(kRbf, data.x.dense(), fixtures::identity(360), kAmple, 2, kTimeLimit);
    std::vector<BinaryResult> results;
    run_watched(
        [&] {
            const BinarySettings hard{.tolerance = 1e-10, .working_set = 32};
            results = solve_binary<double>(pairs, data.cost_bounds, setup.store, hard, setup.control);
        },
        setup.control, [&] { return setup.control.progress().iterations < 100; }, std::chrono::milliseconds(1));
    CHECK(results.size() == pairs.size());
    for (std::size_t p = 0; p < pairs.size(); ++p) {
        CHECK(results[p].status == Status::stopped || results[p].status == Status::converged);
        const auto a = audit::examine(pairs[p], data.cost_bounds, data.gram, results[p]);
        CHECK_CLOSE(results[p].objectives.dual, a.dual, 1e-6 * std::max(1.0, std::abs(a.dual)));
    }
}

TEST(polishing_reaches_machine_precision) {
    const Data data(3, 80, 2.0, 100);
    const Blas blas = plain::blas();
    for (const auto& problems : {audit::all_pairs(3, 80), audit::all_rests(3, 80)}) {
        const auto results = solve<double>(data, problems, {.polish = &blas}, kAmple, 1, true);
        for (std::size_t p = 0; p < problems.size(); ++p) {
            const auto a = audit::examine(problems[p], data.cost_bounds, data.gram, results[p]);
            CHECK(results[p].status == Status::converged);
            CHECK(a.violation <= 1e-10);
            CHECK((a.primal - a.dual) / a.dual <= 1e-10);
        }
    }
}

TEST(without_the_whole_matrix_nothing_is_polished) {
    // The store holds hardly more than a working set, so the rows of most free variables are gone when
    // polishing starts.
    const Data data(2, 150, 2.0, 101);
    const Blas blas = plain::blas();
    const auto pairs = audit::all_pairs(2, 150);
    const BinarySettings settings{.working_set = 24, .in_flight = 1, .polish = &blas};
    const Index budget = 26 * 2 * padded<double>(150) * 8;
    check_all<double>(data, pairs, solve<double>(data, pairs, settings, budget), 1e-3);
}

TEST(pairs_solved_apart_are_solved_as_well) {
    check_squares_against_rows<float>();
    check_squares_against_rows<double>();
}

TEST(tight_tolerances_find_the_same_optimum_apart) {
    const Data data(3, 60, 2.0, 103);
    const auto pairs = audit::all_pairs(3, 60);
    const auto squares = solve_on_squares<double>(data, pairs, {.tolerance = 1e-8});
    const auto rows = solve<double>(data, pairs, {.tolerance = 1e-8});
    for (std::size_t p = 0; p < pairs.size(); ++p) {
        CHECK_CLOSE(squares[p].objectives.dual, rows[p].objectives.dual, 1e-9 * rows[p].objectives.dual);
        CHECK_CLOSE(squares[p].intercept, rows[p].intercept, 1e-6);
    }
}

TEST(pairs_solved_apart_do_not_depend_on_the_threads) {
    Data data(5, 60, 3.0, 104);
    const auto pairs = audit::all_pairs(5, 60);
    for (const Index working_set : {16, 512}) {
        const BinarySettings settings{.working_set = working_set};
        const auto alone = solve_on_squares<float>(data, pairs, settings, 1);
        for (const int threads : {2, 4}) {
            const auto together = solve_on_squares<float>(data, pairs, settings, threads);
            for (std::size_t p = 0; p < pairs.size(); ++p) CHECK(audit::same(alone[p], together[p]));
        }
    }
}

TEST(pairs_solved_apart_take_warm_starts_and_limits) {
    const Data data(3, 80, 2.0, 105);
    const auto pairs = audit::all_pairs(3, 80);
    const auto cold = solve_on_squares<double>(data, pairs, {.tolerance = 1e-6});
    std::vector<BinaryStart> starts;
    for (const auto& result : cold) starts.push_back(start_from(result));
    const auto warm = solve_on_squares<double>(data, pairs, {}, 2, starts);
    for (std::size_t p = 0; p < pairs.size(); ++p) {
        CHECK(warm[p].iterations == 0 && warm[p].beta == cold[p].beta);
    }
    for (const auto& result : solve_on_squares<double>(data, pairs, {.tolerance = 1e-6, .max_iterations = 7})) {
        CHECK(result.status == Status::max_iterations && result.iterations == 7);
    }
}

TEST(a_stop_ends_problems_solved_apart) {
    const Data data(3, 60, 1.0, 106);
    const auto pairs = audit::all_pairs(3, 60);
    KernelSetup<double> setup(kRbf, data.x.dense(), fixtures::identity(180), kAmple, 2);
    setup.store.compute_squares(std::vector<Range>{{0, 60}, {60, 120}, {120, 180}});
    setup.control.cancel();
    for (const auto& result : solve_binary<double>(pairs, data.cost_bounds, setup.store, {}, setup.control)) {
        CHECK(result.status == Status::stopped && result.iterations == 0);
    }
}
