#include "solver/shared_start.hpp"

#include <cmath>
#include <numeric>

#include "audit.hpp"
#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::KernelSetup;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr Index kAmple = Index{1} << 30;
constexpr Index kClasses = 4, kPerClass = 40, kExamples = kClasses * kPerClass;
constexpr double kGap = 1e-3;

/// Overlapping classes, each against all others, with a kernel that is as narrow as asked for.
struct Family {
    KernelSpec kernel;
    Matrix x, gram;
    std::vector<BinaryProblem> problems = audit::all_rests(kClasses, kPerClass);
    std::vector<double> cost_bounds;

    Family(double gamma, double C, std::uint64_t seed) : Family(gamma, C, Random(seed)) {}

  private:
    Family(double gamma, double C, Random random)
        : kernel{.type = KernelType::rbf, .gamma = gamma},
          x(fixtures::blobs(kClasses, kPerClass, 4, 0.7, random)),
          gram(fixtures::plain_gram(kernel, x, fixtures::identity(kExamples))),
          cost_bounds(kExamples) {
        for (double& bound : cost_bounds) bound = C * random.uniform(0.5, 1.5);
    }
};

template <class Real>
std::vector<SharedPoint> points_of(const Family& family, double tolerance, int threads = 1, bool stopped = false) {
    KernelSetup<Real> setup(family.kernel, family.x.dense(), fixtures::identity(kExamples), kAmple, threads);
    setup.store.compute_whole();
    if (stopped) setup.control.cancel();
    return shared_start<Real>(family.problems, family.cost_bounds, setup.store, {tolerance, kGap}, {}, setup.control);
}

void check_feasible(const Family& family, Index problem, const SharedPoint& point, double rounding) {
    const auto runs = runs_of(family.problems[problem]);
    const auto& [beta, f] = point.state;
    for (const Run& run : runs) {
        for (Index t = run.local; t < run.local + run.size; ++t) {
            CHECK(run.sign * beta[t] >= 0.0 && run.sign * beta[t] <= family.cost_bounds[t]);
            const double score = std::inner_product(beta.begin(), beta.end(), family.gram.row(t).begin(), 0.0);
            CHECK_CLOSE(f[t], score - run.sign, rounding);
        }
    }
    CHECK_CLOSE(std::accumulate(beta.begin(), beta.end(), 0.0), 0.0, 1e-10);
}

template <class Real>
void check_points(double rounding) {
    // All free, and with bounds that many meet.
    for (const double C : {1000.0, 1.0, 0.1}) {
        const Family family(5.0, C, 131);
        const auto points = points_of<Real>(family, 1e-4);
        CHECK(std::ssize(points) == kClasses);
        for (Index p = 0; p < kClasses; ++p) {
            CHECK(!points[p].state.beta.empty());
            check_feasible(family, p, points[p], rounding);
            const auto runs = runs_of(family.problems[p]);
            const auto& state = points[p].state;
            CHECK(violation(runs, state, family.cost_bounds).size() <= 1e-4);
            const double offset = intercept(runs, state, family.cost_bounds);
            CHECK(objectives(runs, state, family.cost_bounds, offset).gap() <= kGap);
        }
    }
}

}  // namespace

TEST(with_a_narrow_kernel_all_problems_are_solved_together) {
    check_points<double>(1e-10);
    check_points<float>(1e-4);
}

TEST(with_a_wide_kernel_there_is_nowhere_to_begin) {
    CHECK(points_of<double>(Family(0.05, 10.0, 132), 1e-3).empty());
}

TEST(shared_points_do_not_depend_on_the_threads) {
    const Family family(3.0, 5.0, 133);
    const auto one = points_of<float>(family, 1e-4), three = points_of<float>(family, 1e-4, 3);
    CHECK(!one.empty() && one.size() == three.size());
    for (std::size_t p = 0; p < one.size(); ++p) {
        CHECK(one[p].products == three[p].products);
        CHECK(one[p].state.beta == three[p].state.beta && one[p].state.f == three[p].state.f);
    }
}

TEST(a_stop_leaves_feasible_points_or_none) {
    const Family family(5.0, 1000.0, 134);
    const auto points = points_of<double>(family, 1e-4, 1, true);
    for (Index p = 0; p < std::ssize(points); ++p) {
        if (!points[p].state.beta.empty()) check_feasible(family, p, points[p], 1e-10);
    }
}

TEST(problems_that_begin_together_take_few_steps_to_the_same_end) {
    const Family family(5.0, 1000.0, 135);
    const auto solve = [&](bool shares_start) {
        KernelSetup<double> setup(family.kernel, family.x.dense(), fixtures::identity(kExamples), kAmple);
        setup.store.compute_whole();
        const BinarySettings settings{.rows_are_there = true, .shares_start = shares_start};
        return solve_binary<double>(family.problems, family.cost_bounds, setup.store, settings, setup.control);
    };
    const auto together = solve(true), apart = solve(false);
    for (Index p = 0; p < kClasses; ++p) {
        audit::check_solved(family.problems[p], family.cost_bounds, family.gram, together[p], 1e-3, 1e-10);
        CHECK(together[p].iterations > 0 && together[p].iterations < apart[p].iterations / 4);
        CHECK_CLOSE(together[p].objectives.dual, apart[p].objectives.dual, 1e-2 * apart[p].objectives.dual);
    }
}
