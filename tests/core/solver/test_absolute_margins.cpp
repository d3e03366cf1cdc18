#include "check.hpp"
#include "fixtures.hpp"
#include "machine/train_joint.hpp"
#include "machine/train_linear.hpp"
#include "plain_absolute.hpp"
#include "plain_blas.hpp"
#include "solver/solve_linear.hpp"

using namespace polymargin;
using fixtures::Matrix;
using fixtures::Random;

namespace {

// Nothing that takes the classes apart, or lets them exchange within a row, is for these losses.
static_assert(!SeparableLoss<AbsoluteSum> && !NewtonLoss<AbsoluteSum> && !LimitedLoss<AbsoluteSum>);
static_assert(!SeparableLoss<AbsoluteMaximum> && !NewtonLoss<AbsoluteMaximum> && !SimplexLoss<AbsoluteMaximum>);
static_assert(kSharedLimit<AbsoluteMaximum> && !kSharedLimit<AbsoluteSum> && !kSharedLimit<CrammerSinger>);
static_assert(kScoresSumToZero<AbsoluteSum> && kScoresSumToZero<AbsoluteMaximum> && !kScoresSumToZero<OneVsRest>);

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTimeLimit = 30.0;
constexpr BiasKind kBiases[] = {BiasKind::none, BiasKind::regularized, BiasKind::free};

/// Overlapping classes, in the engine's order.
struct Data {
    KernelSpec kernel;
    Matrix x, gram;
    std::vector<Index> order, labels;
    std::vector<double> cost_bounds;
    Index classes;

    Data(Index k, Index per_class, double C, std::uint64_t seed,
         KernelSpec spec = {.type = KernelType::rbf, .gamma = 0.2})
        : kernel(spec), x(0, 0), gram(0, 0), classes(k) {
        Random random(seed);
        x = fixtures::blobs(k, per_class, 4, 0.7, random);
        order = fixtures::identity(x.rows);
        for (Index i = 0; i < k * per_class; ++i) {
            labels.push_back(i / per_class);
            cost_bounds.push_back(C * random.uniform(0.5, 1.5));
        }
        gram = fixtures::plain_gram(kernel, x, order);
    }
    [[nodiscard]] JointRequest request(const plain::Absolute& loss, BiasKind bias, double tolerance) const {
        JointRequest request;
        request.data = x.dense();
        request.kernel = kernel;
        request.order = order;
        request.cost_bounds = cost_bounds;
        request.budget_bytes = Index{1} << 30;
        request.loss = loss.core;
        request.bias = bias;
        request.labels = labels;
        request.classes = classes;
        request.settings.tolerance = tolerance;
        return request;
    }
};

JointReport run(const JointRequest& request) {
    Control control(kTimeLimit);
    return train_joint(request, plain::blas(), control);
}

/// 1 + sum |B|
double size_of(std::span<const double> rows) {
    double size = 1.0;
    for (const double b : rows) size += std::abs(b);
    return size;
}

/// Scores are kernel times rows plus intercept; a bias that is part of the kernel is its sums.
template <class Rows>
plain::Machine machine_of(const Data& data, BiasKind bias, const Rows& rows, const std::vector<double>& intercept) {
    plain::Machine machine{.classes = data.classes, .rows = rows, .weight = 0.0, .shift = {}};
    if (bias == BiasKind::regularized) machine.weight = 1.0;
    if (bias == BiasKind::free) machine.shift = intercept;
    const auto sums = plain::without_means(machine).column_sums();
    const double size = size_of(rows);
    for (Index m = 0; m < data.classes; ++m) {
        const double expected = bias == BiasKind::regularized ? sums[m] : bias == BiasKind::none ? 0.0 : intercept[m];
        CHECK_CLOSE(intercept[m], expected, 1e-10 * size);
        if (bias == BiasKind::free) CHECK_CLOSE(sums[m], 0.0, 1e-10 * size);
    }
    return machine;
}
plain::Machine machine_of(const Data& data, BiasKind bias, const JointReport& report) {
    std::vector<double> rows(data.labels.size() * data.classes, 0.0);
    for (std::size_t s = 0; s < report.support.size(); ++s) {
        std::copy_n(report.rows.begin() + s * data.classes, data.classes,
                    rows.begin() + report.support[s] * data.classes);
    }
    return machine_of(data, bias, rows, report.intercept);
}

void check_report(const Data& data, const plain::Absolute& loss, BiasKind bias, const JointReport& report,
                  double tolerance, double rounding) {
    const auto machine = machine_of(data, bias, report);
    const auto w = plain::evaluate(loss, data.gram, data.labels, data.cost_bounds, machine);
    const double size = size_of(machine.rows), scale = rounding * (size + std::abs(w.dual));
    CHECK(report.status == Status::converged && report.violation <= tolerance);
    CHECK(w.violation <= tolerance + rounding * size);
    CHECK_CLOSE(report.objectives.dual, w.dual, scale);
    CHECK_CLOSE(report.objectives.primal, w.primal, scale);
    CHECK(w.primal >= w.dual - scale);
    // Every coefficient adds at most its violation times its way to where it should be.
    const double most = tolerance * (size + static_cast<double>(data.classes) * w.bound_total);
    CHECK(w.primal - w.dual <= most + scale);
}

bool same(const JointReport& a, const JointReport& b) {
    return a.support == b.support && a.rows == b.rows && a.intercept == b.intercept && a.status == b.status &&
           a.objectives.primal == b.objectives.primal && a.objectives.dual == b.objectives.dual &&
           a.iterations == b.iterations;
}

template <class Visit>
void for_machines(Index k, Visit&& visit) {
    for (const auto& loss : plain::absolute_losses(k)) {
        for (const BiasKind bias : kBiases) visit(loss, bias);
    }
}

}  // namespace

TEST(absolute_margins_are_trained_to_their_optimum) {
    for (const Index k : {2, 3, 5}) {
        for (const double C : {0.2, 1.0, 30.0}) {
            const Data data(k, 90 / k, C, 501);
            for_machines(k, [&](const auto& loss, BiasKind bias) {
                for (const double tolerance : {1e-2, 1e-4}) {
                    const auto report = run(data.request(loss, bias, tolerance));
                    // On its way through an interval of optimal ones a free bias has a large weight, which makes much
                    // of what rounding leaves of sums.
                    check_report(data, loss, bias, report, tolerance, bias == BiasKind::free ? 1e-7 : 1e-8);
                }
            });
        }
    }
}

TEST(absolute_margins_are_trained_in_single_precision) {
    const Data data(4, 300, 0.5, 502);
    for_machines(4, [&](const auto& loss, BiasKind bias) {
        const auto report = run(data.request(loss, bias, 1e-2));
        CHECK(report.single_precision);
        check_report(data, loss, bias, report, 1e-2, 1e-3);
    });
}

TEST(small_machines_of_absolute_margins_are_exact_to_rounding) {
    const Data data(4, 15, 2.0, 503);
    for_machines(4, [&](const auto& loss, BiasKind bias) {
        const auto report = run(data.request(loss, bias, 1e-5));
        const auto w = plain::evaluate(loss, data.gram, data.labels, data.cost_bounds, machine_of(data, bias, report));
        CHECK(report.status == Status::converged);
        CHECK(w.primal - w.dual <= 1e-10 * w.primal);
    });
}

TEST(two_classes_with_absolute_margins_are_the_binary_machine) {
    // With s_1 = -s_0 every hinge is that of the binary machine: one of C / 2 for |w|^2 / 2, and two for the total sum.
    const Data data(2, 40, 1.5, 504);
    const auto dual = [&](const plain::Absolute& loss, BiasKind bias, double C) {
        auto request = data.request(loss, bias, 1e-8);
        for (double& c : request.cost_bounds) c *= C;
        return run(request).objectives.dual;
    };
    for (const BiasKind bias : kBiases) {
        JointRequest together = data.request(plain::absolute_losses(2)[0], bias, 1e-8);
        together.loss = WestonWatkins(2.0);  // max(0, 2 - (s_y - s_m)) = 2 max(0, 1 - s_y)
        const double binary = run(together).objectives.dual;
        for (const auto& loss : plain::absolute_losses(2)) {
            const bool twice = loss.own == 1.0 && loss.others == 1.0;
            CHECK_CLOSE(dual(loss, bias, twice ? 1.0 : 2.0), binary, 1e-6 * binary);
        }
    }
}

TEST(absolute_margins_in_rows_and_shrunk_are_the_same_machine_for_any_threads) {
    const Data data(3, 110, 0.05, 505);
    for_machines(3, [&](const auto& loss, BiasKind bias) {
        auto request = data.request(loss, bias, 1e-5);
        const double best = run(request).objectives.dual;
        request.settings.working_set = 24;
        request.settings.entrants = 8;
        request.settings.shrink_from = 1;
        request.settings.active_share = 1.0;
        request.refine = false;
        for (const Index budget : {Index{1} << 30, Index{100} * padded<double>(330) * 8}) {
            request.budget_bytes = budget;
            request.threads = 1;
            const auto report = run(request);
            check_report(data, loss, bias, report, 1e-5, 1e-8);
            CHECK_CLOSE(report.objectives.dual, best, 2e-5 * best);
            request.threads = 3;
            CHECK(same(report, run(request)));
        }
    });
}

TEST(absolute_margins_start_warm_and_say_why_they_stop) {
    const Data data(3, 40, 1.0, 506);
    for_machines(3, [&](const auto& loss, BiasKind bias) {
        auto request = data.request(loss, bias, 1e-6);
        const auto cold = run(request);
        request.start_support = cold.support;
        request.start_rows = cold.rows;
        request.start_bias = cold.intercept;
        request.settings.tolerance = 1e-3;
        const auto warm = run(request);
        CHECK(warm.status == Status::converged);
        CHECK_CLOSE(warm.objectives.dual, cold.objectives.dual, 1e-3 * cold.objectives.dual);
        if (bias != BiasKind::free) CHECK(warm.iterations == 0);
        request = data.request(loss, bias, 1e-6);
        request.settings.max_iterations = 5;
        const auto limited = run(request);
        CHECK(limited.status == Status::max_iterations && limited.iterations == 5);
        machine_of(data, bias, limited);
        Control cancelled;
        cancelled.cancel();
        CHECK(train_joint(request, plain::blas(), cancelled).status == Status::stopped);
    });
}

TEST(absolute_margins_may_be_hard) {
    Data data(3, 20, 1.0, 507, {.type = KernelType::rbf, .gamma = 20.0});
    std::ranges::fill(data.cost_bounds, kInfinity);
    for_machines(3, [&](const auto& loss, BiasKind bias) {
        const auto report = run(data.request(loss, bias, 1e-7));
        const auto w = plain::evaluate(loss, data.gram, data.labels, data.cost_bounds, machine_of(data, bias, report));
        CHECK(report.status == Status::converged);
        CHECK(w.primal - w.dual <= 1e-5 * w.primal);
    });
    std::copy_n(data.x.row(3).begin(), 4, data.x.values.begin() + 50 * 4);  // equal points of two classes
    for_machines(3, [&](const auto& loss, BiasKind bias) {
        if (loss.others == 0.0) return;  // the third class may take what two share
        CHECK(run(data.request(loss, bias, 1e-3)).status == Status::unbounded);
    });
}

TEST(absolute_margins_without_a_kernel_matrix) {
    for (const Index k : {2, 4}) {
        const Data data(k, 120 / k, 0.5, 508, {.type = KernelType::linear});
        for_machines(k, [&](const auto& loss, BiasKind bias) {
            LinearRequest request;
            request.data = data.x.dense();
            request.loss = loss.core;
            request.bias = bias;
            request.order = data.order;
            request.labels = data.labels;
            request.cost_bounds = data.cost_bounds;
            request.classes = k;
            request.gap = 1e-6;
            Control control(kTimeLimit);
            const auto report = train_linear(request, plain::blas(), control);
            CHECK(report.status == Status::converged);
            std::vector<double> rows(data.labels.size() * k, 0.0);
            for (std::size_t i = 0; i < data.labels.size(); ++i) {
                for (Index t = report.starts[i]; t < report.starts[i + 1]; ++t) {
                    rows[i * k + report.columns[t]] = report.coefficients[t];
                }
            }
            const auto machine = machine_of(data, bias, rows, report.intercept);
            const auto w = plain::evaluate(loss, data.gram, data.labels, data.cost_bounds, machine);
            CHECK(w.primal - w.dual <= 1.01e-6 * w.primal);
            CHECK_CLOSE(report.objectives.primal, w.primal, 1e-9 * w.primal);
            CHECK_CLOSE(report.objectives.dual, w.dual, 1e-9 * w.primal);
            const double kernel = run(data.request(loss, bias, 1e-6)).objectives.dual;
            CHECK_CLOSE(kernel, w.dual, 3e-6 * w.primal);
        });
    }
}
