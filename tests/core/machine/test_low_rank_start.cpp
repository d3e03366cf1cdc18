#include "machine/low_rank_start.hpp"

#include <limits>
#include <numeric>

#include "check.hpp"
#include "fixtures.hpp"
#include "plain_blas.hpp"

using namespace polymargin;
using fixtures::KernelSetup;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr Index kAmple = Index{1} << 30;

/// Overlapping classes, many examples of few features.
struct Data {
    Matrix x;
    std::vector<Index> order, labels;

    explicit Data(Index per_class) : x(0, 0) {
        Random random(71);
        x = fixtures::blobs(3, per_class, 3, 0.6, random);
        order.resize(x.rows);
        std::iota(order.begin(), order.end(), Index{0});
        for (Index i = 0; i < x.rows; ++i) labels.push_back(i / per_class);
    }
};

JointProblem problem_of(const Data& data, const AnyLoss& loss, BiasKind bias, double C) {
    JointProblem problem;
    problem.loss = loss;
    problem.bias = bias;
    problem.cost_bounds.assign(data.labels.size(), C);
    problem.labels = data.labels;
    problem.classes = 3;
    problem.low_rank.least_of_whole = problem.low_rank.least_examples;
    return problem;
}

bool has_start(const Data& data, const JointProblem& problem, double gamma, Index budget = kAmple) {
    KernelSetup<float> setup({.type = KernelType::rbf, .gamma = gamma}, data.x.dense(), data.order, budget, 2);
    setup.store.compute_whole();
    Control control;
    const auto start = low_rank_start(problem, setup.store, plain::blas(), control);
    if (start) {
        CHECK(start->rows.size() == start->support.size() * 3 && start->bias.size() == 3);
        CHECK(std::ranges::is_sorted(start->support));
    }
    return start.has_value();
}

JointReport trained(const Data& data, const JointProblem& problem, Index max_iterations, int threads = 2,
                    Index budget = kAmple) {
    JointRequest request;
    static_cast<JointProblem&>(request) = problem;
    request.data = data.x.dense();
    request.kernel = {.type = KernelType::rbf, .gamma = 0.01};
    request.order = data.order;
    request.budget_bytes = budget;
    request.settings.max_iterations = max_iterations;
    request.threads = threads;
    Control control(60.0);
    return train_joint(request, plain::blas(), control);
}

}  // namespace

TEST(wide_kernels_start_near_the_optimum) {
    const Data data(750);
    for (const AnyLoss& loss : {AnyLoss(WestonWatkins()), AnyLoss(CrammerSinger())}) {
        for (const BiasKind bias : {BiasKind::none, BiasKind::regularized, BiasKind::free}) {
            const auto problem = problem_of(data, loss, bias, 1.0);
            const auto near = trained(data, problem, -1);
            const auto far = trained(data, problem, std::numeric_limits<Index>::max());  // in steps alone
            CHECK(near.status == Status::converged && far.status == Status::converged);
            // Exchanges bring a free bias there in fewer steps from anywhere.
            CHECK(near.iterations < far.iterations / (bias == BiasKind::free ? 2 : 4));
            CHECK_CLOSE(near.objectives.dual / far.objectives.dual, 1.0, 1e-3);
            CHECK(near.objectives.primal >= far.objectives.dual * (1.0 - 1e-6));
        }
    }
}

TEST(wide_kernels_whose_matrix_does_not_fit_start_near_the_optimum) {
    const Data data(750);
    const Index budget = GramStore<float>::square_bytes(2250) / 2;
    for (const AnyLoss& loss : {AnyLoss(WestonWatkins()), AnyLoss(CrammerSinger())}) {
        const auto problem = problem_of(data, loss, BiasKind::regularized, 10.0);
        const auto near = trained(data, problem, -1, 2, budget), other = trained(data, problem, -1, 3, budget);
        const auto far = trained(data, problem, std::numeric_limits<Index>::max(), 2, budget);
        CHECK(!near.whole_matrix && near.status == Status::converged && far.status == Status::converged);
        CHECK(near.iterations < far.iterations / 4);
        CHECK_CLOSE(near.objectives.dual / far.objectives.dual, 1.0, 1e-3);
        CHECK(near.rows == other.rows);
    }
}

TEST(starts_do_not_depend_on_the_threads) {
    const Data data(750);
    const auto problem = problem_of(data, CrammerSinger(), BiasKind::regularized, 100.0);
    const auto one = trained(data, problem, -1, 1), three = trained(data, problem, -1, 3);
    CHECK(one.rows == three.rows && one.iterations == three.iterations);
}

TEST(a_start_goes_on_from_the_last) {
    const Data data(750);
    auto problem = problem_of(data, WestonWatkins(), BiasKind::regularized, 100.0);
    const auto first = trained(data, problem, -1);
    problem.start_support = first.support;
    problem.start_rows = first.rows;
    const auto again = trained(data, problem, -1);
    CHECK(again.status == Status::converged);
    CHECK_CLOSE(again.objectives.dual / first.objectives.dual, 1.0, 1e-4);
}

TEST(other_machines_start_where_they_are_told) {
    const Data data(750), small(80);
    const auto problem = problem_of(data, CrammerSinger(), BiasKind::regularized, 1.0);
    CHECK(has_start(data, problem, 0.01));
    CHECK(!has_start(data, problem, 30.0));
    const Index matrix = GramStore<float>::square_bytes(2250);
    CHECK(!has_start(data, problem, 0.01, matrix + 1000));
    auto hard = problem;
    hard.cost_bounds[3] = std::numeric_limits<double>::infinity();
    CHECK(!has_start(data, hard, 0.01));
    CHECK(!has_start(small, problem_of(small, CrammerSinger(), BiasKind::none, 1.0), 0.01));
}

TEST(a_stop_request_ends_the_search_for_a_start) {
    const Data data(750);
    const auto problem = problem_of(data, CrammerSinger(), BiasKind::regularized, 1.0);
    KernelSetup<float> setup({.type = KernelType::rbf, .gamma = 0.01}, data.x.dense(), data.order, kAmple, 1);
    setup.store.compute_whole();
    setup.control.cancel();
    CHECK(!low_rank_start(problem, setup.store, plain::blas(), setup.control));
}
