#include "machine/train_binary.hpp"

#include <stdexcept>

#include "audit.hpp"
#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::Csr;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr Index kAmple = Index{1} << 30;
constexpr double kTimeLimit = 30.0;

/// Examples in the caller's order, which is not the engine's: `order` sorts them by class.
struct Data {
    Matrix x;
    std::vector<Index> order;
    std::vector<double> cost_bounds;

    Data(Index classes, Index per_class, std::uint64_t seed) : x(classes * per_class, 4) {
        Random random(seed);
        const Matrix sorted = fixtures::blobs(classes, per_class, 4, 0.8, random);
        order = random.permutation(sorted.rows);
        for (Index g = 0; g < sorted.rows; ++g) {
            std::copy_n(sorted.row(g).begin(), 4, x.values.begin() + order[g] * 4);
            cost_bounds.push_back(random.uniform(0.5, 2.0));
        }
    }
};

BinaryRequest request_for(const Data& data, const DataView& view, const KernelSpec& kernel,
                          std::vector<BinaryProblem> problems) {
    BinaryRequest request;
    request.data = view;
    request.kernel = kernel;
    request.order = data.order;
    request.cost_bounds = data.cost_bounds;
    request.problems = std::move(problems);
    request.budget_bytes = kAmple;
    return request;
}

BinaryReport run(const BinaryRequest& request) {
    Control control(kTimeLimit);
    return train_binary(request, plain::blas(), control);
}

void check_report(const BinaryRequest& request, const Matrix& gram, const BinaryReport& report, double rounding) {
    CHECK(report.results.size() == request.problems.size());
    CHECK(report.evaluations > 0);
    for (std::size_t p = 0; p < request.problems.size(); ++p) {
        audit::check_solved(request.problems[p], request.cost_bounds, gram, report.results[p],
                            request.settings.tolerance, rounding);
    }
}

}  // namespace

TEST(small_problems_are_solved_on_the_whole_matrix_in_double) {
    const Data data(3, 60, 121);
    for (const auto type : {KernelType::linear, KernelType::polynomial, KernelType::rbf}) {
        const KernelSpec kernel{.type = type, .gamma = 0.2, .coef0 = 1.0, .degree = 2};
        const Matrix gram = fixtures::plain_gram(kernel, data.x, data.order);
        for (const auto& problems : {audit::all_pairs(3, 60), audit::all_rests(3, 60)}) {
            const auto request = request_for(data, data.x.dense(), kernel, problems);
            const auto report = run(request);
            CHECK(report.whole_matrix && !report.single_precision);
            CHECK(report.evaluations == 180 * 181 / 2);
            check_report(request, gram, report, 1e-8);
        }
    }
}

TEST(small_problems_are_polished) {
    const Data data(3, 60, 122);
    const KernelSpec kernel{.type = KernelType::rbf, .gamma = 0.2};
    const Matrix gram = fixtures::plain_gram(kernel, data.x, data.order);
    const auto request = request_for(data, data.x.dense(), kernel, audit::all_pairs(3, 60));
    const auto report = run(request);
    for (std::size_t p = 0; p < 3; ++p) {
        const auto a = audit::examine(request.problems[p], request.cost_bounds, gram, report.results[p]);
        CHECK(a.violation <= 1e-10);
        CHECK((a.primal - a.dual) / a.dual <= 1e-10);
    }
}

TEST(with_a_narrow_kernel_all_classes_begin_together) {
    const Data data(3, 60, 139);
    const KernelSpec kernel{.type = KernelType::rbf, .gamma = 20.0};
    auto request = request_for(data, data.x.dense(), kernel, audit::all_rests(3, 60));
    std::ranges::fill(request.cost_bounds, 100.0);
    const auto steps = [](const BinaryReport& report) {
        Index sum = 0;
        for (const BinaryResult& result : report.results) sum += result.iterations;
        return sum;
    };
    const auto together = run(request);
    check_report(request, fixtures::plain_gram(kernel, data.x, data.order), together, 1e-8);
    const Index few = steps(together);
    CHECK(0 < few && few < 3 * 60);               // not one for each example
    request.settings.max_iterations = 1'000'000;  // somebody counts steps
    CHECK(steps(run(request)) > 2 * few);
    request.settings.max_iterations = -1;
    request.budget_bytes = GramStore<double>::square_bytes(180) + 20'000;  // little beside the matrix and the examples
    const auto apart = run(request);
    CHECK(apart.whole_matrix && steps(apart) > 2 * few);
}

TEST(exactness_is_asked_for_by_the_tolerance) {
    // Too many pairs for exact answers to be cheap, and no weights.
    Data data(8, 60, 132);
    std::ranges::fill(data.cost_bounds, 1.0);
    const KernelSpec kernel{.type = KernelType::rbf, .gamma = 0.5};
    const Matrix gram = fixtures::plain_gram(kernel, data.x, data.order);
    auto request = request_for(data, data.x.dense(), kernel, audit::all_pairs(8, 60));
    const auto largest = [&] {
        const auto report = run(request);
        check_report(request, gram, report, 1e-8);
        double most = 0.0;
        for (const BinaryResult& result : report.results) most = std::max(most, result.violation);
        return most;
    };
    const double plain = largest();
    CHECK(plain > 1e-6 && plain <= request.settings.tolerance);
    request.settings.tolerance = request.settings.polishing.exact_tolerance;
    CHECK(largest() <= 1e-10);
}

TEST(rows_of_a_class_with_small_partners_are_computed_on_demand) {
    const Data data(3, 540, 133);
    const KernelSpec kernel{.type = KernelType::rbf, .gamma = 0.2};
    const Matrix gram = fixtures::plain_gram(kernel, data.x, data.order);
    const SignedRange large{0, 1600, 1.0}, small{1600, 1610, 1.0}, other{1610, 1620, -1.0};
    auto request =
        request_for(data, data.x.dense(), kernel, {{{large, {1600, 1610, -1.0}}}, {{large, other}}, {{small, other}}});
    const auto report = run(request);
    check_report(request, gram, report, 1e-4);
    CHECK(report.evaluations < 1600 * 1601 / 2);
    request.threads = 3;
    const auto threaded = run(request);
    for (std::size_t p = 0; p < 3; ++p) CHECK(threaded.results[p].beta == report.results[p].beta);
}

TEST(dense_sparse_and_precomputed_agree) {
    const Data data(3, 50, 123);
    const KernelSpec kernel{.type = KernelType::rbf, .gamma = 0.3};
    const auto pairs = audit::all_pairs(3, 50);
    const auto dense = run(request_for(data, data.x.dense(), kernel, pairs));
    const Csr<double, std::int32_t, std::int64_t> csr(data.x);
    const auto sparse = run(request_for(data, csr.view(), kernel, pairs));
    // The matrix of the caller, in the caller's order.
    const Matrix k = fixtures::plain_gram(kernel, data.x, fixtures::identity(150));
    const auto precomputed = run(request_for(data, k.precomputed(), {.type = KernelType::precomputed}, pairs));
    for (std::size_t p = 0; p < pairs.size(); ++p) {
        for (const auto* other : {&sparse.results[p], &precomputed.results[p]}) {
            CHECK(other->support == dense.results[p].support);
            CHECK_CLOSE(other->objectives.dual, dense.results[p].objectives.dual, 1e-9);
            CHECK_CLOSE(other->intercept, dense.results[p].intercept, 1e-7);
        }
    }
}

TEST(a_small_problem_with_a_small_budget) {
    const Data data(3, 80, 124);
    const KernelSpec kernel{.type = KernelType::rbf, .gamma = 0.2};
    const Matrix gram = fixtures::plain_gram(kernel, data.x, data.order);
    auto request = request_for(data, data.x.dense(), kernel, audit::all_pairs(3, 80));
    request.settings.working_set = 24;
    request.settings.in_flight = 1;
    request.budget_bytes = 60 * 2 * padded<double>(80) * 8;
    const auto report = run(request);
    CHECK(!report.whole_matrix);
    check_report(request, gram, report, 1e-9);
}

TEST(larger_problems_go_by_rows_in_single_precision) {
    const Data data(3, 360, 125);
    const KernelSpec kernel{.type = KernelType::rbf, .gamma = 0.2};
    const Matrix gram = fixtures::plain_gram(kernel, data.x, data.order);
    auto request = request_for(data, data.x.dense(), kernel, audit::all_pairs(3, 360));
    request.settings.working_set = 64;
    const auto ample = run(request);
    CHECK(ample.single_precision && !ample.whole_matrix);
    check_report(request, gram, ample, 1e-4);
    // No room for the copy of the data nor for many rows: the same answers for more kernel values.
    request.settings.in_flight = 1;
    request.budget_bytes = 90 * 2 * padded<float>(360) * 4;
    const auto tight = run(request);
    check_report(request, gram, tight, 1e-4);
    CHECK(tight.evaluations > ample.evaluations);
    request.budget_bytes = 2000;
    CHECK_THROWS(std::invalid_argument, "cache_size is too small", run(request));
}

TEST(large_coefficients_call_for_double) {
    Data data(2, 520, 126);
    std::fill(data.cost_bounds.begin(), data.cost_bounds.end(), 1e5);
    data.cost_bounds[0] = 1.0;
    for (Index g = 0; g < 520; ++g) data.x.at(data.order[g], 0) += 12.0;  // easy, or C = 1e5 takes long
    const auto request =
        request_for(data, data.x.dense(), {.type = KernelType::rbf, .gamma = 0.2}, audit::all_pairs(2, 520));
    CHECK(!run(request).single_precision);
}

TEST(training_does_not_depend_on_the_threads) {
    const Data data(3, 350, 127);
    auto request = request_for(data, data.x.dense(), {.type = KernelType::rbf, .gamma = 0.2}, audit::all_rests(3, 350));
    const auto alone = run(request);
    for (const int threads : {2, 4}) {
        request.threads = threads;
        const auto together = run(request);
        CHECK(together.evaluations == alone.evaluations);
        for (std::size_t p = 0; p < 3; ++p) CHECK(audit::same(alone.results[p], together.results[p]));
    }
}

TEST(warm_starts_pass_through) {
    const Data data(2, 100, 128);
    auto request = request_for(data, data.x.dense(), {.type = KernelType::rbf, .gamma = 0.2}, audit::all_pairs(2, 100));
    const auto cold = run(request);
    request.starts = {{cold.results[0].support, cold.results[0].beta}};
    const auto warm = run(request);
    CHECK(warm.results[0].iterations <= 10);
    CHECK_CLOSE(warm.results[0].objectives.dual, cold.results[0].objectives.dual, 1e-9);
}

TEST(values_too_large_are_named) {
    Data data(2, 20, 129);
    data.x.at(17, 2) = 1e170;
    CHECK_THROWS(std::invalid_argument, "row 17, column 2",
                 run(request_for(data, data.x.dense(), {.type = KernelType::rbf}, audit::all_pairs(2, 20))));
}

TEST(a_cancelled_training_stops) {
    const Data data(3, 60, 130);
    const auto request = request_for(data, data.x.dense(), {.type = KernelType::rbf}, audit::all_pairs(3, 60));
    Control control;
    control.cancel();
    for (const auto& result : train_binary(request, plain::blas(), control).results)
        CHECK(result.status == Status::stopped);
}

namespace {

/// Solve the problems one call after the other.
std::vector<BinaryReport> one_by_one(KernelSession& session, const BinaryRequest& request) {
    std::vector<BinaryReport> reports;
    for (const BinaryProblem& problem : request.problems) {
        BinaryFamily family = request;
        family.problems = {problem};
        Control control(kTimeLimit);
        reports.push_back(train_binary(session, family, control));
    }
    return reports;
}

KernelSession session_for(const BinaryRequest& request) {
    return {request, Exactness::of(request.cost_bounds, request.settings.tolerance), plain::blas()};
}

Index evaluations_of(const std::vector<BinaryReport>& reports) {
    Index sum = 0;
    for (const BinaryReport& report : reports) sum += report.evaluations;
    return sum;
}

}  // namespace

TEST(problems_solved_call_by_call_are_those_solved_at_once) {
    for (const Index per_class : {60, 300}) {  // on the whole matrix, and on that of each class
        const Data data(4, per_class, 131);
        const auto request =
            request_for(data, data.x.dense(), {.type = KernelType::rbf, .gamma = 0.2}, audit::all_pairs(4, per_class));
        const auto at_once = run(request);
        KernelSession session = session_for(request);
        const auto reports = one_by_one(session, request);
        CHECK(at_once.whole_matrix == (per_class == 60));
        for (std::size_t p = 0; p < reports.size(); ++p) {
            CHECK(reports[p].whole_matrix == at_once.whole_matrix);
            CHECK(reports[p].single_precision == at_once.single_precision);
            CHECK(audit::same(reports[p].results[0], at_once.results[p]));
        }
        CHECK(evaluations_of(reports) == at_once.evaluations);  // none was computed twice
        if (at_once.whole_matrix) CHECK(evaluations_of(one_by_one(session, request)) == 0);
    }
}

TEST(rows_of_a_class_serve_later_calls) {
    const Data data(3, 360, 132);
    const KernelSpec kernel{.type = KernelType::rbf, .gamma = 0.2};
    const Matrix gram = fixtures::plain_gram(kernel, data.x, data.order);
    auto request = request_for(data, data.x.dense(), kernel, audit::all_pairs(3, 360));
    request.settings.working_set = 64;
    request.budget_bytes = 4'000'000;  // too small for the matrices of pairs, large enough to keep every row
    KernelSession session = session_for(request);
    const auto reports = one_by_one(session, request);
    Index alone = 0;
    for (std::size_t p = 0; p < reports.size(); ++p) {
        audit::check_solved(request.problems[p], request.cost_bounds, gram, reports[p].results[0],
                            request.settings.tolerance, 1e-4);
        auto single = request;
        single.problems = {request.problems[p]};
        alone += run(single).evaluations;
    }
    CHECK(evaluations_of(reports) < alone);
}

TEST(matrices_of_classes_make_room_for_a_problem_that_goes_by_rows) {
    const Data data(4, 300, 133);
    const KernelSpec kernel{.type = KernelType::rbf, .gamma = 0.2};
    const Matrix gram = fixtures::plain_gram(kernel, data.x, data.order);
    auto request = request_for(data, data.x.dense(), kernel, {});
    const Range small{0, 40}, other{40, 80}, large{80, 640}, last{640, 1200};
    request.problems = {audit::pair(small, other), audit::pair(large, last), audit::pair(small, last),
                        audit::against_rest(small, {0, 1200})};
    request.settings.working_set = 64;
    request.budget_bytes = 2'000'000;
    KernelSession session = session_for(request);
    const auto reports = one_by_one(session, request);
    for (std::size_t p = 0; p < reports.size(); ++p) {
        audit::check_solved(request.problems[p], request.cost_bounds, gram, reports[p].results[0],
                            request.settings.tolerance, 1e-4);
    }
}

TEST(a_call_may_bring_its_own_bounds_and_start) {
    const Data data(2, 100, 134);
    auto request = request_for(data, data.x.dense(), {.type = KernelType::rbf, .gamma = 0.2}, audit::all_pairs(2, 100));
    const auto expected = run(request);
    KernelSession session = session_for(request);
    auto smaller = request;
    for (double& bound : smaller.cost_bounds) bound /= 4;
    const auto first = one_by_one(session, smaller)[0];
    CHECK(audit::same(first.results[0], run(smaller).results[0]));
    request.starts = {{first.results[0].support, first.results[0].beta}};
    const auto second = one_by_one(session, request)[0];
    CHECK_CLOSE(second.results[0].objectives.dual, expected.results[0].objectives.dual, 1e-9);
    CHECK(second.evaluations == 0);
    smaller.cost_bounds.back() = 100.0;
    CHECK_THROWS(std::invalid_argument, "bounds up to", one_by_one(session, smaller));
    request.settings.tolerance /= 2;
    CHECK_THROWS(std::invalid_argument, "tolerances from", one_by_one(session, request));
    request.cost_bounds.pop_back();
    CHECK_THROWS(std::invalid_argument, "cost_bounds", one_by_one(session, request));
}

TEST(a_path_of_costs_is_one_solution_after_the_other) {
    const std::vector<double> costs{0.1, 1.0, 3.0, 3.0, 50.0};
    for (const Index per_class : {60, 300}) {
        const Data data(4, per_class, 136);
        auto request =
            request_for(data, data.x.dense(), {.type = KernelType::rbf, .gamma = 0.2}, audit::all_pairs(4, per_class));
        request.settings.tolerance = 1e-7;
        request.paths = {{costs, request.cost_bounds}};
        Control control;
        const Exactness exactness{.largest_cost_bound = 100.0 * *std::ranges::max_element(request.cost_bounds),
                                  .tolerance = 1e-7};
        KernelSession session(request, exactness, plain::blas());
        const auto path = train_binary(session, request, control);
        CHECK(path.results.size() == costs.size() * request.problems.size());
        auto single = request;
        single.paths.clear();
        for (std::size_t c = 0; c < costs.size(); ++c) {
            for (std::size_t i = 0; i < single.cost_bounds.size(); ++i)
                single.cost_bounds[i] = costs[c] * request.cost_bounds[i];
            const auto expected = train_binary(session, single, control);
            for (std::size_t p = 0; p < request.problems.size(); ++p) {
                const auto& found = path.results[c * request.problems.size() + p];
                CHECK(found.status == Status::converged && found.violation <= 1e-7);
                const double dual = expected.results[p].objectives.dual;
                CHECK_CLOSE(found.objectives.dual, dual, 1e-9 * dual);
                CHECK_CLOSE(found.objectives.primal, dual, 1e-5 * dual);
            }
        }
    }
}

TEST(each_path_has_bounds_of_its_own_and_a_bound_of_zero_leaves_an_example_out) {
    const std::vector<double> costs{0.5, 4.0};
    const Data data(3, 40, 137);
    for (const int threads : {1, 3}) {
        auto request =
            request_for(data, data.x.dense(), {.type = KernelType::rbf, .gamma = 0.2}, audit::all_pairs(3, 40));
        request.settings.tolerance = 1e-7;
        request.threads = threads;
        std::vector<std::vector<double>> fold_bounds(3, request.cost_bounds);
        for (std::size_t i = 0; i < request.cost_bounds.size(); ++i) fold_bounds[i % 3][i] = 0.0;
        for (const auto& cost_bounds : fold_bounds) request.paths.emplace_back(costs, cost_bounds);
        request.cost_bounds.clear();  // not used
        Control control;
        KernelSession session(request, {.largest_cost_bound = 100.0, .tolerance = 1e-7}, plain::blas());
        const auto report = train_binary(session, request, control);
        auto found = report.results.begin();
        for (std::size_t path = 0; path < fold_bounds.size(); ++path) {
            for (const double cost : costs) {
                auto single = request;
                single.paths.clear();
                single.cost_bounds = fold_bounds[path];
                for (double& c : single.cost_bounds) c *= cost;
                for (const auto& expected : train_binary(session, single, control).results) {
                    CHECK(found->status == Status::converged);
                    CHECK_CLOSE(found->objectives.dual, expected.objectives.dual, 1e-9 * expected.objectives.dual);
                    for (const Index g : found->support) CHECK(g % 3 != static_cast<Index>(path));
                    ++found;
                }
            }
        }
        CHECK(found == report.results.end());
        request.folds.assign(120, 0);
        CHECK_THROWS(std::invalid_argument, "either folds or",
                     static_cast<void>(train_binary(session, request, control)));
        request.folds.clear();
        request.paths.back().cost_bounds.pop_back();
        CHECK_THROWS(std::invalid_argument, "the same costs",
                     static_cast<void>(train_binary(session, request, control)));
    }
}

TEST(a_matrix_in_the_order_of_the_engine_is_read_where_it_is) {
    const Data data(3, 40, 138);
    const auto pairs = audit::all_pairs(3, 40);
    const KernelSpec kernel{.type = KernelType::rbf, .gamma = 0.3}, precomputed{.type = KernelType::precomputed};
    const Matrix sorted = fixtures::plain_gram(kernel, data.x, data.order);
    const Matrix unsorted = fixtures::plain_gram(kernel, data.x, fixtures::identity(120));
    auto adopted = request_for(data, sorted.precomputed(), precomputed, pairs);
    adopted.order = fixtures::identity(120);
    adopted.whole = true;
    auto copied = request_for(data, unsorted.precomputed(), precomputed, pairs);
    copied.whole = true;
    const auto without_copy = run(adopted), with_copy = run(copied);
    CHECK(without_copy.whole_matrix && with_copy.whole_matrix);
    for (std::size_t p = 0; p < pairs.size(); ++p) {
        CHECK(audit::same(without_copy.results[p], with_copy.results[p]));
    }
    // A budget too small for a copy does not matter to a matrix that is there.
    adopted.budget_bytes = copied.budget_bytes = 50'000;
    CHECK(run(adopted).whole_matrix && !run(copied).whole_matrix);
}

TEST(a_session_that_was_stopped_begins_anew) {
    for (const Index per_class : {60, 300}) {
        const Data data(4, per_class, 135);
        const auto request =
            request_for(data, data.x.dense(), {.type = KernelType::rbf, .gamma = 0.2}, audit::all_pairs(4, per_class));
        KernelSession session = session_for(request);
        Control cancelled;
        cancelled.cancel();
        for (const auto& result : train_binary(session, request, cancelled).results)
            CHECK(result.status == Status::stopped);
        const auto reports = one_by_one(session, request);
        const auto expected = run(request);
        for (std::size_t p = 0; p < reports.size(); ++p) {
            CHECK(audit::same(reports[p].results[0], expected.results[p]));
        }
    }
}

TEST(the_gap_of_binary_problems_is_reached_when_it_is_what_counts) {
    Data data(3, 90, 131);
    std::ranges::fill(data.cost_bounds, 1e4);
    const KernelSpec kernel{.type = KernelType::rbf, .gamma = 0.5};
    const Matrix gram = fixtures::plain_gram(kernel, data.x, data.order);
    for (const auto& problems : {audit::all_pairs(3, 90), audit::all_rests(3, 90)}) {
        auto request = request_for(data, data.x.dense(), kernel, problems);
        request.refine = false;  // that would close any gap
        request.settings.tolerance = 0.5;
        double before = 0.0;
        for (const auto& result : run(request).results) before = std::max(before, result.objectives.gap());
        CHECK(before > 1e-2);
        request.settings.gap = 1e-6;
        const auto report = run(request);
        for (std::size_t p = 0; p < problems.size(); ++p) {
            const auto a = audit::examine(problems[p], request.cost_bounds, gram, report.results[p]);
            CHECK(report.results[p].status == Status::converged);
            CHECK((a.primal - a.dual) / a.primal <= 1.01e-6);
        }
        request.settings.gap = 1e-300;  // no violation is small enough
        for (const auto& result : run(request).results) {
            CHECK(result.status == Status::precision || result.objectives.gap() <= 0.0);
        }
    }
}

TEST(an_open_gap_is_closed_where_that_is_cheap_and_the_violation_stays) {
    Data data(3, 360, 132);
    std::ranges::fill(data.cost_bounds, 1e4);
    const KernelSpec kernel{.type = KernelType::rbf, .gamma = 2.0};
    auto request = request_for(data, data.x.dense(), kernel, audit::all_rests(3, 360));
    request.settings.tolerance = 0.1;
    const auto closed = run(request);
    request.refine = false;
    const auto open = run(request);
    double before = 0.0, after = 0.0;
    for (std::size_t p = 0; p < 3; ++p) {
        before += open.results[p].objectives.gap();
        after += closed.results[p].objectives.gap();
        CHECK(closed.results[p].status == Status::converged && closed.results[p].violation <= 0.1);
        CHECK(closed.results[p].objectives.dual >= open.results[p].objectives.dual * (1 - 1e-9));
    }
    CHECK(after < 0.5 * before);
}
