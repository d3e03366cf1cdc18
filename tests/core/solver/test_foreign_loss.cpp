#include "check.hpp"
#include "fixtures.hpp"
#include "plain_blas.hpp"
#include "plain_losses.hpp"
#include "problem/crammer_singer.hpp"
#include "solver/decomposition.hpp"
#include "solver/free_bias.hpp"
#include "solver/polish_joint.hpp"
#include "solver/solve_linear.hpp"
#include "squared_costs.hpp"

using namespace polymargin;
using fixtures::KernelSetup;
using fixtures::Matrix;
using fixtures::Random;
using foreign::SquaredCosts;

namespace {

static_assert(MulticlassLoss<SquaredCosts> && HasConjugate<SquaredCosts>);
// What it does not have, no solver may assume.
static_assert(!SimplexLoss<SquaredCosts> && !SeparableLoss<SquaredCosts> && !NewtonLoss<SquaredCosts>);
static_assert(SimplexLoss<CrammerSinger> && !kOwnOffset<SquaredCosts> && kOwnOffset<CrammerSinger>);

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTimeLimit = 20.0;

/// Overlapping classes, their kernel and what the classes cost each other.
struct Data {
    KernelSpec kernel;
    Matrix x, gram;
    std::vector<Index> labels;
    std::vector<double> cost_bounds, costs;
    Index classes;

    Data(Index k, Index per_class, double C, std::uint64_t seed, KernelType type = KernelType::rbf)
        : kernel{.type = type, .gamma = 0.2}, x(0, 0), gram(0, 0), costs(foreign::random_costs(k, seed)), classes(k) {
        Random random(seed);
        x = fixtures::blobs(k, per_class, 4, 0.7, random);
        for (Index i = 0; i < k * per_class; ++i) {
            labels.push_back(i / per_class);
            cost_bounds.push_back(C * random.uniform(0.5, 1.5));
        }
        gram = fixtures::plain_gram(kernel, x, fixtures::identity(x.rows));
    }
    [[nodiscard]] SquaredCosts loss() const { return {classes, costs}; }
    [[nodiscard]] foreign::Evaluation evaluate(const plain::Machine& machine) const {
        return foreign::evaluate(costs, gram, labels, cost_bounds, machine);
    }
};

struct Options {
    DecompositionSettings settings{};
    BiasKind bias = BiasKind::none;
    Index budget = Index{1} << 30;
    int threads = 1;
    bool whole = true;
    bool polish = false;
    const plain::Machine* start = nullptr;
};

struct Outcome {
    Status status = Status::converged;
    plain::Machine machine;
    MulticlassObjectives objectives;
    double violation = 0.0;
    Index iterations = 0, shrinkings = 0;
};

template <class Real>
Outcome solve(const Data& data, const Options& options) {
    KernelSetup<Real> setup(data.kernel, data.x.dense(), fixtures::identity(data.x.rows), options.budget,
                            options.threads, kTimeLimit);
    if (options.whole) setup.store.compute_whole();
    const SquaredCosts loss = data.loss();
    Decomposition<SquaredCosts, Real> problem(loss, data.labels, data.cost_bounds, data.classes, setup.store,
                                              options.settings, setup.control);
    if (options.start != nullptr) problem.start_from(fixtures::identity(data.x.rows), options.start->rows);
    Outcome outcome;
    const double tolerance = options.settings.tolerance;
    if (options.bias == BiasKind::free) {
        FreeBias<SquaredCosts, Real> free(problem, *std::ranges::max_element(data.gram.values));
        outcome.status = free.run(tolerance);
        CHECK(free.balanced());
    } else {
        if (options.bias == BiasKind::regularized) problem.set_bias({1.0, {}});
        outcome.status = problem.run(tolerance);
    }
    if (options.polish) {
        const Blas blas = plain::blas();
        JointPolisher<SquaredCosts, Real>(problem, blas, options.bias == BiasKind::free).run();
    }
    outcome.machine = {
        .classes = data.classes, .rows = {}, .weight = problem.bias().weight, .shift = problem.bias().shift};
    for (Index i = 0; i < problem.size(); ++i) {
        for (Index m = 0; m < data.classes; ++m) outcome.machine.rows.push_back(problem.beta().at(m, i));
    }
    outcome.objectives = problem.objectives();
    outcome.violation = problem.violation();
    outcome.iterations = problem.iterations();
    outcome.shrinkings = problem.shrinkings();
    return outcome;
}

/// The outcome is what the solver says it is, and optimal to the tolerance.
template <class Real>
foreign::Evaluation check_solved(const Data& data, const Outcome& outcome, const Options& options) {
    const double rounding = std::is_same_v<Real, float> ? 5e-4 : 1e-8, tolerance = options.settings.tolerance;
    const auto w = data.evaluate(outcome.machine);
    CHECK(outcome.status == Status::converged && outcome.violation <= tolerance);
    CHECK_CLOSE(outcome.violation, w.violation, rounding);
    const double scale = rounding * std::max(1.0, w.size + std::abs(w.dual));
    CHECK_CLOSE(outcome.objectives.dual, w.dual, scale);
    CHECK_CLOSE(outcome.objectives.primal, w.primal, scale);
    CHECK(w.primal >= w.dual - scale);
    CHECK(w.primal - w.dual <= foreign::largest_gap(w, tolerance + rounding, data.classes) + scale);
    for (const double s : outcome.machine.column_sums()) {
        if (options.bias == BiasKind::free) CHECK_CLOSE(s, 0.0, 1e-9 * std::max(1.0, w.size));
    }
    return w;
}

template <class Real>
void check_kernel_machines() {
    for (const Index k : {2, 3, 6}) {
        for (const double C : {0.1, 1.0, 20.0}) {
            const Data data(k, 90 / k, C, 401);
            for (const BiasKind bias : {BiasKind::none, BiasKind::regularized, BiasKind::free}) {
                const Options options{.settings = {.tolerance = 1e-3}, .bias = bias};
                check_solved<Real>(data, solve<Real>(data, options), options);
            }
        }
    }
}

/// The same machine on the same data without a kernel matrix.
LinearSolution solve_linear(const Data& data, BiasKind bias, double gap) {
    const SquaredCosts loss = data.loss();
    const DataView view = data.x.dense();
    const auto order = fixtures::identity(data.x.rows);
    Control control(kTimeLimit);
    ThreadPool pool(1);
    const Workers workers{&pool, &control};
    std::vector<double> centre;
    if (bias == BiasKind::free) centre = polymargin::centre(view, order, workers);
    LinearRows<double> rows(view, order, workers, centre);
    const LinearSettings tuning;
    const LinearTask<SquaredCosts> task{.loss = loss,
                                        .problem = {view, order, data.labels, data.cost_bounds, data.classes, centre},
                                        .bias = bias,
                                        .gap = gap,
                                        .settings = {.newton_from = 0},
                                        .tuning = tuning,
                                        .start_support = {},
                                        .start_rows = {},
                                        .start_bias = {}};
    const Blas blas = plain::blas();
    const LinearTools tools{blas, control, {.pool = &pool, .control = &control, .thorough = true}};
    return LinearSolver<SquaredCosts, double>(task, rows, tools).run();
}

}  // namespace

TEST(a_foreign_loss_is_solved_in_single_precision) {
    check_kernel_machines<float>();
}

TEST(a_foreign_loss_is_solved_in_double_precision) {
    check_kernel_machines<double>();
}

TEST(a_foreign_loss_to_a_small_tolerance_with_jumps) {
    const Blas blas = plain::blas();
    for (const BiasKind bias : {BiasKind::none, BiasKind::regularized, BiasKind::free}) {
        const Data data(4, 40, 50.0, 402);
        Options options{.settings = {.tolerance = 1e-7, .blas = &blas}, .bias = bias};
        options.settings.block.steps_before_jump = 1;
        const Outcome outcome = solve<double>(data, options);
        const auto w = check_solved<double>(data, outcome, options);
        CHECK(w.primal - w.dual <= 1e-6 * w.primal);
    }
}

TEST(a_foreign_loss_in_rows_and_shrunk) {
    const Data data(3, 60, 0.05, 403);
    const Options plain{.settings = {.tolerance = 1e-6}};
    const double best = solve<double>(data, plain).objectives.dual;
    Options options{.settings = {.tolerance = 1e-6, .working_set = 8, .entrants = 4, .shrink_from = 1}};
    options.settings.active_share = 1.0;
    for (const bool whole : {true, false}) {
        options.whole = whole;
        for (const int threads : {1, 3}) {
            options.threads = threads;
            const Outcome outcome = solve<double>(data, options);
            check_solved<double>(data, outcome, options);
            CHECK_CLOSE(outcome.objectives.dual, best, 1e-6 * best);
            if (whole) CHECK(outcome.shrinkings > 0);
        }
    }
}

TEST(a_foreign_loss_is_polished_and_started_warm) {
    for (const BiasKind bias : {BiasKind::none, BiasKind::free}) {
        const Data data(3, 15, 1.0, 404);
        const Options coarse{.settings = {.tolerance = 1e-4}, .bias = bias};
        Options exact = coarse;
        exact.polish = true;
        const Outcome before = solve<double>(data, coarse), after = solve<double>(data, exact);
        CHECK(after.violation <= before.violation && after.violation <= 1e-9);
        CHECK_CLOSE(data.evaluate(after.machine).violation, after.violation, 1e-9);
        Options warm = coarse;
        warm.start = &after.machine;
        const Outcome again = solve<double>(data, warm);
        check_solved<double>(data, again, warm);
        if (bias == BiasKind::none) CHECK(again.iterations == 0);
    }
}

TEST(a_foreign_loss_with_examples_that_cost_nothing_or_all) {
    Data data(3, 20, 1.0, 405);
    for (Index i = 0; i < data.x.rows; i += 4) data.cost_bounds[i] = 0.0;
    const Options options{.settings = {.tolerance = 1e-6}};
    check_solved<double>(data, solve<double>(data, options), options);
    // A hard margin: absolute, each class on its side of zero, which a narrow kernel allows.
    data.kernel.gamma = 20.0;
    data.gram = fixtures::plain_gram(data.kernel, data.x, fixtures::identity(data.x.rows));
    std::ranges::fill(data.cost_bounds, kInfinity);
    const Outcome hard = solve<double>(data, {.settings = {.tolerance = 1e-8}});
    const auto w = data.evaluate(hard.machine);
    CHECK(hard.status == Status::converged);
    CHECK_CLOSE(hard.objectives.primal, w.primal, 1e-6 * w.primal);
    CHECK(w.primal - w.dual <= 1e-5 * w.primal);
}

TEST(a_foreign_loss_without_a_kernel_matrix) {
    for (const Index k : {2, 4}) {
        for (const BiasKind bias : {BiasKind::none, BiasKind::regularized, BiasKind::free}) {
            const Data data(k, 40, 0.5, 406, KernelType::linear);
            const auto solution = solve_linear(data, bias, 1e-6);
            CHECK(solution.status == Status::converged && solution.state.gap() <= 1e-6);
            plain::Machine machine{.classes = k, .rows = {}, .weight = 0.0, .shift = solution.state.bias};
            machine.rows.assign(data.x.rows * k, 0.0);
            for (Index i = 0; i < data.x.rows; ++i) {
                for (const auto& [m, b] : solution.coefficients.row(i)) machine.rows[i * k + m] = b;
            }
            if (bias != BiasKind::free) machine.shift.clear();
            if (bias == BiasKind::regularized) machine.weight = 1.0;
            const auto w = data.evaluate(machine);
            CHECK_CLOSE(solution.state.objectives.primal, w.primal, 1e-9 * w.primal);
            CHECK_CLOSE(solution.state.objectives.dual, w.dual, 1e-9 * w.primal);
            CHECK_CLOSE(solution.state.violation, w.violation, 1e-9);
            const Options options{.settings = {.tolerance = 1e-6}, .bias = bias};
            const Outcome kernel = solve<double>(data, options);
            CHECK_CLOSE(kernel.objectives.dual, w.dual, 3e-6 * w.primal);
        }
    }
}
