#include "machine/train_joint.hpp"

#include <stdexcept>

#include "audit.hpp"
#include "check.hpp"
#include "fixtures.hpp"
#include "machine/train_binary.hpp"
#include "plain_losses.hpp"

using namespace polymargin;
using fixtures::Csr;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Index kAmple = Index{1} << 30;
constexpr double kTimeLimit = 30.0;
const KernelSpec kRbf{.type = KernelType::rbf, .gamma = 0.2};

/// Examples in the caller's order, which is not the engine's: `order` sorts them by class.
struct Data {
    Matrix x;
    std::vector<Index> order, labels;
    std::vector<double> cost_bounds;
    Index classes;

    Data(Index k, Index per_class, std::uint64_t seed) : x(k * per_class, 4), classes(k) {
        Random random(seed);
        const Matrix sorted = fixtures::blobs(k, per_class, 4, 0.8, random);
        order = random.permutation(sorted.rows);
        for (Index g = 0; g < sorted.rows; ++g) {
            std::copy_n(sorted.row(g).begin(), 4, x.values.begin() + order[g] * 4);
            labels.push_back(g / per_class);
            cost_bounds.push_back(random.uniform(0.5, 2.0));
        }
    }
};

JointRequest request_for(const Data& data, const AnyLoss& loss, BiasKind bias, double tolerance = 1e-3) {
    JointRequest request;
    request.data = data.x.dense();
    request.kernel = kRbf;
    request.order = data.order;
    request.cost_bounds = data.cost_bounds;
    request.budget_bytes = kAmple;
    request.loss = loss;
    request.bias = bias;
    request.labels = data.labels;
    request.classes = data.classes;
    request.settings.tolerance = tolerance;
    return request;
}

JointReport run(const JointRequest& request) {
    Control control(kTimeLimit);
    return train_joint(request, plain::blas(), control);
}

plain::Loss plain_of(const AnyLoss& loss) {
    if (std::holds_alternative<WestonWatkins>(loss)) return plain::weston_watkins();
    if (std::holds_alternative<CrammerSinger>(loss)) return plain::crammer_singer();
    throw std::invalid_argument("a loss without a plain one: give it one here");
}

/// The report as a machine whose scores are those that the caller computes: kernel times rows plus intercept.
plain::Machine machine_of(const JointRequest& request, const JointReport& report) {
    const Index k = request.classes;
    plain::Machine machine{.classes = k, .rows = {}, .weight = 0.0, .shift = {}};
    machine.rows.assign(request.labels.size() * k, 0.0);
    CHECK(report.rows.size() == report.support.size() * static_cast<std::size_t>(k));
    CHECK(std::ssize(report.intercept) == k);
    CHECK(std::ranges::is_sorted(report.support));
    for (std::size_t s = 0; s < report.support.size(); ++s) {
        const auto row = std::span(report.rows).subspan(s * k, k);
        CHECK(std::ranges::any_of(row, [](double b) { return b != 0.0; }));
        std::ranges::copy(row, machine.rows.begin() + report.support[s] * k);
    }
    // A bias that is part of the kernel is the sum of the coefficients; any other is a shift.
    if (request.bias == BiasKind::regularized) machine.weight = 1.0;
    if (request.bias == BiasKind::free) machine.shift = report.intercept;
    const auto sums = machine.column_sums();
    for (Index m = 0; m < k; ++m) {
        if (request.bias == BiasKind::none) CHECK(report.intercept[m] == 0.0);
        if (request.bias == BiasKind::regularized) CHECK_CLOSE(report.intercept[m], sums[m], 1e-10);
        if (request.bias == BiasKind::free) CHECK_CLOSE(sums[m], 0.0, 1e-10);
    }
    return machine;
}

void check_report(const JointRequest& request, const Matrix& gram, const JointReport& report, double rounding) {
    CHECK(report.status == Status::converged);
    CHECK(report.evaluations > 0);
    const double tolerance = request.settings.tolerance;
    const auto w =
        plain::evaluate(plain_of(request.loss), gram, request.labels, request.cost_bounds, machine_of(request, report));
    const double allowed = rounding * static_cast<double>(request.classes) * (w.bound_total + std::abs(w.dual));
    CHECK(w.violation <= tolerance + rounding && report.violation <= tolerance);
    CHECK_CLOSE(report.objectives.primal, w.primal, allowed);
    CHECK_CLOSE(report.objectives.dual, w.dual, allowed);
    CHECK(w.primal >= w.dual - allowed);
    CHECK(w.primal - w.dual <= tolerance * static_cast<double>(request.classes) * w.bound_total + allowed);
    CHECK((report.bias_steps > 0) == (request.bias == BiasKind::free));
}

template <class Visit>
void for_machines(Visit&& visit) {
    for (const AnyLoss& loss : {AnyLoss(WestonWatkins()), AnyLoss(CrammerSinger())}) {
        for (const BiasKind bias : {BiasKind::none, BiasKind::regularized, BiasKind::free}) visit(loss, bias);
    }
}

bool same(const JointReport& a, const JointReport& b) {
    return a.support == b.support && a.rows == b.rows && a.intercept == b.intercept && a.status == b.status &&
           a.objectives.primal == b.objectives.primal && a.objectives.dual == b.objectives.dual &&
           a.iterations == b.iterations && a.evaluations == b.evaluations;
}

}  // namespace

TEST(small_machines_are_trained_on_the_whole_matrix_in_double) {
    const Data data(4, 40, 281);
    const Matrix gram = fixtures::plain_gram(kRbf, data.x, data.order);
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        for (const double tolerance : {1e-2, 1e-4}) {
            const auto request = request_for(data, loss, bias, tolerance);
            const auto report = run(request);
            CHECK(report.whole_matrix && !report.single_precision);
            check_report(request, gram, report, 1e-8);
        }
    });
}

TEST(small_machines_are_exact_where_that_is_asked_for) {
    Data data(4, 40, 293);
    std::ranges::fill(data.cost_bounds, 1.5);
    for (const AnyLoss& loss : {AnyLoss(WestonWatkins()), AnyLoss(CrammerSinger())}) {
        const auto violation = [&](const JointRequest& request) { return run(request).violation; };
        CHECK(violation(request_for(data, loss, BiasKind::none)) > 1e-6);
        CHECK(violation(request_for(data, loss, BiasKind::none, 1e-5)) < 1e-10);
        auto classes = request_for(data, loss, BiasKind::none);  // weights of classes are no weights of examples
        std::fill_n(classes.cost_bounds.begin(), 40, 0.5);
        CHECK(violation(classes) > 1e-6);
        auto weighted = request_for(data, loss, BiasKind::none);
        weighted.cost_bounds[7] = 3.0;
        CHECK(violation(weighted) < 1e-10);
    }
}

TEST(two_classes_together_are_the_binary_machine) {
    // With w_1 = -w_2, Weston-Watkins with the margin 2 has twice the binary objective; Crammer-Singer has half the
    // margin.
    const Data data(2, 60, 282);
    BinaryRequest binary;
    static_cast<TrainingData&>(binary) = request_for(data, WestonWatkins(), BiasKind::free);
    binary.cost_bounds = data.cost_bounds;
    binary.problems = audit::all_pairs(2, 60);
    binary.settings.tolerance = 1e-8;
    Control control(kTimeLimit);
    const auto pair = train_binary(binary, plain::blas(), control).results[0];
    const auto ww = run(request_for(data, WestonWatkins(), BiasKind::free, 1e-7));
    CHECK_CLOSE(ww.objectives.dual, 2 * pair.objectives.dual, 1e-5 * pair.objectives.dual);
    CHECK_CLOSE((ww.intercept[0] - ww.intercept[1]) / 2, pair.intercept, 1e-4);
    const auto cs = run(request_for(data, CrammerSinger(), BiasKind::free, 1e-7));
    const auto halved = request_for(data, WestonWatkins(1.0), BiasKind::free, 1e-7);
    CHECK_CLOSE(cs.objectives.dual, run(halved).objectives.dual, 1e-5 * cs.objectives.dual);
}

TEST(rows_and_sparse_data_train_the_same_machine) {
    const Data data(3, 70, 283);
    const Matrix gram = fixtures::plain_gram(kRbf, data.x, data.order);
    const Csr<double, std::int32_t, std::int64_t> csr(data.x);
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        auto request = request_for(data, loss, bias, 1e-5);
        const auto whole = run(request);
        request.settings.working_set = 24;
        request.budget_bytes = 60 * padded<double>(210) * 8;
        const auto rows = run(request);
        CHECK(!rows.whole_matrix);
        check_report(request, gram, rows, 1e-8);
        CHECK_CLOSE(rows.objectives.dual, whole.objectives.dual, 1e-5 * whole.objectives.dual);
        request.budget_bytes = kAmple;
        request.data = csr.view();
        const auto sparse = run(request);
        check_report(request, gram, sparse, 1e-8);
        CHECK_CLOSE(sparse.objectives.dual, whole.objectives.dual, 1e-5 * whole.objectives.dual);
    });
}

TEST(a_budget_without_two_rows_is_refused) {
    const Data data(3, 70, 284);
    auto request = request_for(data, CrammerSinger(), BiasKind::none);
    request.budget_bytes = 2000;
    CHECK_THROWS(std::invalid_argument, "cache_size is too small", run(request));
}

TEST(larger_machines_are_trained_in_single_precision) {
    const Data data(3, 350, 285);
    const Matrix gram = fixtures::plain_gram(kRbf, data.x, data.order);
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        const auto request = request_for(data, loss, bias, 1e-2);
        const auto report = run(request);
        CHECK(report.single_precision);
        check_report(request, gram, report, 1e-3);
    });
}

TEST(machines_do_not_depend_on_the_threads) {
    const Data data(3, 110, 286);
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        auto request = request_for(data, loss, bias, 1e-2);
        const auto alone = run(request);
        for (const int threads : {2, 4}) {
            request.threads = threads;
            CHECK(same(alone, run(request)));
        }
    });
}

TEST(machines_take_warm_starts) {
    const Data data(3, 60, 287);
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        auto request = request_for(data, loss, bias, 1e-6);
        const auto cold = run(request);
        request.start_support = cold.support;
        request.start_rows = cold.rows;
        request.settings.tolerance = 1e-3;
        const auto warm = run(request);
        CHECK(warm.status == Status::converged);
        CHECK_CLOSE(warm.objectives.dual, cold.objectives.dual, 1e-3 * cold.objectives.dual);
        if (bias != BiasKind::free) CHECK(warm.iterations == 0);
    });
}

TEST(machines_say_why_they_stopped) {
    Data data(3, 40, 288);
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        auto request = request_for(data, loss, bias, 1e-6);
        request.settings.max_iterations = 5;
        const auto limited = run(request);
        CHECK(limited.status == Status::max_iterations && limited.iterations == 5);
        machine_of(request, limited);
        Control cancelled;
        cancelled.cancel();
        CHECK(train_joint(request, plain::blas(), cancelled).status == Status::stopped);
        Control late(0.0);
        CHECK(train_joint(request, plain::blas(), late).status == Status::time_limit);
    });
    // Equal points of two classes, and no limit.
    std::ranges::fill(data.cost_bounds, kInfinity);
    std::copy_n(data.x.row(data.order[3]).begin(), 4, data.x.values.begin() + data.order[70] * 4);
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        CHECK(run(request_for(data, loss, bias)).status == Status::unbounded);
    });
}

TEST(losses_of_separate_classes_are_not_for_kernel_machines) {
    const Data data(3, 60, 283);
    CHECK_THROWS(std::invalid_argument, "problems of their own", run(request_for(data, OneVsRest(), BiasKind::none)));
}

TEST(the_gap_of_a_machine_is_reached_when_it_is_what_counts) {
    Data data(3, 60, 289);
    std::ranges::fill(data.cost_bounds, 1e4);
    const Matrix gram = fixtures::plain_gram(kRbf, data.x, data.order);
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        auto request = request_for(data, loss, bias, 0.1);
        request.refine = false;  // that would close any gap
        request.settings.gap = 1e-5;
        request.settings.gap_counts = true;
        const auto report = run(request);
        const auto w =
            plain::evaluate(plain_of(loss), gram, request.labels, request.cost_bounds, machine_of(request, report));
        CHECK(report.status == Status::converged);
        CHECK((w.primal - w.dual) / w.primal <= 1.01e-5);
    });
}

TEST(an_open_gap_of_a_machine_is_closed_where_that_is_cheap_and_the_violation_stays) {
    Data data(3, 360, 290);
    std::ranges::fill(data.cost_bounds, 1e4);
    for (const AnyLoss& loss : {AnyLoss(WestonWatkins()), AnyLoss(CrammerSinger())}) {
        auto request = request_for(data, loss, BiasKind::regularized, 0.1);
        request.kernel.gamma = 2.0;
        const auto closed = run(request);
        request.refine = false;
        const auto open = run(request);
        CHECK(closed.status == Status::converged && closed.violation <= 0.1);
        CHECK(closed.objectives.gap() < open.objectives.gap() && open.objectives.gap() > 1e-2);
        CHECK(closed.objectives.dual >= open.objectives.dual * (1 - 1e-9));
    }
}

TEST(an_interior_point_method_takes_over) {
    const Data data(4, 60, 291);
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        for (const double C : {1.0, 1e3, kInfinity}) {
            auto request = request_for(data, loss, bias);
            for (double& c : request.cost_bounds) c *= C;
            request.kernel.gamma = std::isinf(C) ? 20.0 : 0.2;  // a hard margin needs one
            request.refine = false;
            const Matrix kernel = fixtures::plain_gram(request.kernel, data.x, data.order);
            request.takeover.most = 0;
            const auto decomposed = run(request);
            request.takeover = {.expected = 1.0, .beside = 0.0};
            const auto report = run(request);
            if (std::isfinite(C)) check_report(request, kernel, report, 1e-6);
            CHECK(report.status == Status::converged && decomposed.status == Status::converged);
            CHECK(!decomposed.interior_point && (std::isinf(C) || report.interior_point));
            const double scale = std::abs(decomposed.objectives.dual);
            const double open = std::max(report.objectives.gap(), decomposed.objectives.gap());
            CHECK_CLOSE(report.objectives.dual, decomposed.objectives.dual, (open + 1e-9) * scale);
            request.threads = 3;
            CHECK(same(report, run(request)));
        }
    });
}

TEST(a_takeover_makes_hard_problems_short) {
    const Data data(5, 60, 292);
    for (const AnyLoss& loss : {AnyLoss(WestonWatkins()), AnyLoss(CrammerSinger())}) {
        auto request = request_for(data, loss, BiasKind::none);
        for (double& c : request.cost_bounds) c *= 1e4;
        request.refine = false;
        request.takeover.most = 0;
        const auto decomposed = run(request);
        request.takeover = {.expected = 1.0, .beside = 0.0};
        const auto report = run(request);
        CHECK(report.status == Status::converged);
        CHECK(2 * report.iterations < decomposed.iterations);
    }
}

TEST(a_method_that_ended_too_soon_goes_on_soon) {
    const Data data(5, 60, 292);
    for (const AnyLoss& loss : {AnyLoss(WestonWatkins()), AnyLoss(CrammerSinger())}) {
        auto request = request_for(data, loss, BiasKind::none);
        for (double& c : request.cost_bounds) c *= 1e4;
        request.refine = false;
        // Asked for so little, it ends where a decomposition still crawls.
        request.takeover = {.expected = 20.0, .beside = 0.0, .gap = 0.3, .finer = 1e-5};
        const auto soon = run(request);
        request.takeover.again = 1e3;
        const auto late = run(request);
        CHECK(soon.status == Status::converged && late.status == Status::converged);
        CHECK(2 * soon.iterations < late.iterations);
    }
}
