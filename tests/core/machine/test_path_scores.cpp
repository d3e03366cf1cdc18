#include "machine/path_scores.hpp"

#include <stdexcept>

#include "audit.hpp"
#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr Index kClasses = 3, kPerClass = 20, kCosts = 4;

/// Coefficients of every cost and problem, each on a random part of the problem's examples.
struct Path {
    std::vector<BinaryProblem> problems;
    std::vector<Index> starts{0}, support;
    std::vector<double> beta, intercept;

    Path(std::vector<BinaryProblem> of, Random& random) : problems(std::move(of)) {
        for (Index c = 0; c < kCosts; ++c) {
            for (const BinaryProblem& problem : problems) {
                for (const SignedRange& s : problem.ranges) {
                    for (Index g = s.begin; g < s.end; ++g) {
                        if (random.uniform() < 0.6) continue;
                        support.push_back(g);
                        beta.push_back(random.normal());
                    }
                }
                starts.push_back(std::ssize(support));
                intercept.push_back(random.normal());
            }
        }
    }
    [[nodiscard]] PathSolution solution() const { return {problems, starts, support, beta, intercept}; }
    [[nodiscard]] double score(const Matrix& k, std::span<const Index> order, Index row, Index problem,
                               Index cost) const {
        const Index at = cost * std::ssize(problems) + problem;
        double sum = intercept[at];
        for (Index i = starts[at]; i < starts[at + 1]; ++i) sum += beta[i] * k.at(row, order[support[i]]);
        return sum;
    }
};

std::vector<double> scored(const Matrix& k, std::span<const Index> order, std::span<const Index> rows, const Path& path,
                           const Workers& workers = {}) {
    std::vector<double> out(rows.size() * path.intercept.size());
    path_scores(k.precomputed(), order, rows, path.solution(), out, plain::blas(), workers);
    return out;
}

}  // namespace

TEST(scores_of_a_path_are_sums_over_support_vectors) {
    Random random(171);
    constexpr Index n = kClasses * kPerClass;
    const Matrix k = fixtures::random_matrix(n, n, random);
    const auto order = random.permutation(n);
    const std::vector<Index> rows{5, 0, 59, 5, 17};
    for (const auto& problems : {audit::all_pairs(kClasses, kPerClass), audit::all_rests(kClasses, kPerClass)}) {
        const Path path(problems, random);
        const auto out = scored(k, order, rows, path);
        for (Index p = 0; p < std::ssize(problems); ++p) {
            for (Index i = 0; i < std::ssize(rows); ++i) {
                for (Index c = 0; c < kCosts; ++c) {
                    CHECK_CLOSE(out[(p * std::ssize(rows) + i) * kCosts + c], path.score(k, order, rows[i], p, c),
                                1e-12);
                }
            }
        }
    }
}

TEST(scores_of_a_path_do_not_depend_on_threads) {
    Random random(172);
    constexpr Index n = kClasses * kPerClass;
    const Matrix k = fixtures::random_matrix(n, n, random);
    const Path path(audit::all_pairs(kClasses, kPerClass), random);
    std::vector<Index> rows(1000);  // several tiles
    for (Index i = 0; i < 1000; ++i) rows[i] = i * 7 % n;
    ThreadPool pool(3);
    const Control control;
    CHECK(scored(k, fixtures::identity(n), rows, path) ==
          scored(k, fixtures::identity(n), rows, path, {&pool, &control}));
}

TEST(a_path_that_does_not_fit_the_matrix_is_refused) {
    Random random(173);
    constexpr Index n = kClasses * kPerClass;
    const Matrix k = fixtures::random_matrix(n, n, random);
    const auto order = fixtures::identity(n);
    const Path good(audit::all_pairs(kClasses, kPerClass), random);
    const std::vector<Index> beyond{n};
    CHECK_THROWS(std::invalid_argument, "lacks a row", scored(k, order, beyond, good));
    Path path = good;
    path.support.back() = n;
    CHECK_THROWS(std::invalid_argument, "no such support vector", scored(k, order, order, path));
    path = good;
    std::swap(path.support[0], path.support[1]);
    CHECK_THROWS(std::invalid_argument, "ascend", scored(k, order, order, path));
    path = good;
    path.starts.back() += 1;
    CHECK_THROWS(std::invalid_argument, "fit together", scored(k, order, order, path));
    path = good;
    path.problems.back().ranges.back().end = n + 1;
    CHECK_THROWS(std::invalid_argument, "go beyond the examples", scored(k, order, order, path));
    std::vector<double> out(1);
    CHECK_THROWS(std::invalid_argument, "a place for each score",
                 path_scores(k.precomputed(), order, order, good.solution(), out, plain::blas(), {}));
}
