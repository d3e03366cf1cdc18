#include "machine/low_rank_start.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernel/partial_cholesky.hpp"
#include "machine/train_linear.hpp"

namespace polymargin {
namespace {

/// Fewer examples are solved quickly in any way.
constexpr Index kLeastExamples = 256;
/// Features are few if they cost nothing, or if there are many examples for each; never more than so many, nor of few
/// examples.
constexpr Index kCheapFeatures = 128, kMostFeatures = 512, kManyExamples = 10, kFewExamples = 4;
/// Where kernel rows have to be computed, steps ask for few of them unless the kernel is very wide; a start needs those
/// of all its support vectors.
constexpr Index kFewFeatures = 64;
/// The part of the kernel that the features may leave out, and the gap of the machine on them: what is better belongs
/// to the kernel itself.
constexpr double kLeftOut = 3e-4, kGap = 1e-5;
/// Loops over the examples, of Newton steps too, after which the start is taken as it is.
constexpr Index kMostLoops = 600;

/// How many features are few, and fit.
template <class Real>
Index most_features(const GramStore<Real>& store, Index classes) {
    constexpr Index number = sizeof(double);
    const Index n = store.size(), bytes = store.unused_bytes() / n - 4 * number * classes;
    if (!store.whole()) return std::min<Index>(kFewFeatures, bytes / (2 * number + sizeof(Real)));
    return std::min(
        {kMostFeatures, n / kFewExamples, std::max(kCheapFeatures, n / kManyExamples), bytes / (2 * number)});
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
    request.gap = kGap;
    request.settings.max_visits = kMostLoops * n;
    request.settings.newton_from = kLeastExamples;
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
    if (n < kLeastExamples || !soft) return std::nullopt;
    const Index most = most_features(store, problem.classes);
    if (most < 1) return std::nullopt;
    const KernelFeatures features = partial_cholesky(store, most, kLeftOut);
    if (features.rank == 0) return std::nullopt;
    const LinearRequest request = on_features(problem, features, store.pool().threads());
    return start_of(train_linear(request, blas, control), problem.classes);
}

template std::optional<JointStart> low_rank_start(const JointProblem&, GramStore<float>&, const Blas&, Control&);
template std::optional<JointStart> low_rank_start(const JointProblem&, GramStore<double>&, const Blas&, Control&);

}  // namespace polymargin
