#include "machine/low_rank_start.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernel/partial_cholesky.hpp"
#include "machine/train_linear.hpp"

namespace polymargin {
namespace {

/// How many features are few, and fit.
template <class Real>
Index most_features(const GramStore<Real>& store, Index classes, const LowRankSettings& settings) {
    constexpr Index number = sizeof(double);
    const Index n = store.size(), bytes = store.unused_bytes() / n - 4 * number * classes;
    if (!store.whole()) return std::min<Index>(settings.few_features, bytes / (2 * number + sizeof(Real)));
    const Index few = std::max(settings.cheap_features, n / settings.many_examples);
    return std::min({settings.most_features, n / settings.few_examples, few, bytes / (2 * number)});
}

LinearRequest on_features(const JointProblem& problem, const KernelFeatures& features, int threads) {
    const Index n = std::ssize(problem.labels);
    LinearRequest request;
    request.data = DenseView{std::span<const double>(features.values), n, features.rank};
    request.loss = problem.loss;
    request.bias = problem.bias;
    request.order.resize(n);
    std::iota(request.order.begin(), request.order.end(), Index{0});
    request.labels = problem.labels;
    request.cost_bounds = problem.cost_bounds;
    request.classes = problem.classes;
    request.start_support = problem.start_support;
    request.start_rows = problem.start_rows;
    request.start_bias = problem.start_bias;
    request.gap = problem.low_rank.gap;
    request.settings.max_visits = problem.low_rank.most_loops * n;
    request.settings.newton_from = problem.low_rank.least_examples;
    // Coefficients near their limits, which a start is made of, come from visits, not from samples.
    request.tuning.newton.least_sample = std::ssize(request.order);
    request.threads = threads;
    return request;
}

JointStart start_of(const LinearReport& report, Index classes) {
    JointStart start;
    for (Index i = 0; i + 1 < std::ssize(report.starts); ++i) {
        if (report.starts[i] == report.starts[i + 1]) continue;
        start.support.push_back(i);
        start.rows.resize(start.rows.size() + classes, 0.0);
        for (Index t = report.starts[i]; t < report.starts[i + 1]; ++t) {
            *(start.rows.end() - classes + report.columns[t]) = report.coefficients[t];
        }
    }
    start.bias = report.intercept;
    return start;
}

}  // namespace

template <class Real>
std::optional<JointStart> low_rank_start(const JointProblem& problem, GramStore<Real>& store, const Blas& blas,
                                         Control& control) {
    const Index n = store.size();
    const bool soft = std::ranges::all_of(problem.cost_bounds, [](double c) { return std::isfinite(c); });
    const bool rows_are_there = store.whole() && problem.bias != BiasKind::free;
    if (n < (rows_are_there ? problem.low_rank.least_of_whole : problem.low_rank.least_examples) || !soft)
        return std::nullopt;
    const Index most = most_features(store, problem.classes, problem.low_rank);
    if (most < 1) return std::nullopt;
    const KernelFeatures features = partial_cholesky(store, most, problem.low_rank.left_out);
    if (features.rank == 0) return std::nullopt;
    const LinearRequest request = on_features(problem, features, store.pool().threads());
    return start_of(train_linear(request, blas, control), problem.classes);
}

template std::optional<JointStart> low_rank_start(const JointProblem&, GramStore<float>&, const Blas&, Control&);
template std::optional<JointStart> low_rank_start(const JointProblem&, GramStore<double>&, const Blas&, Control&);

}  // namespace polymargin
