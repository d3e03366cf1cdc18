#include "linear/class_blocks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "check.hpp"
#include "fixtures.hpp"
#include "linear_problems.hpp"
#include "plain_blas.hpp"

using namespace polymargin;
using fixtures::LinearProblem;
using fixtures::Random;

namespace {

std::vector<CurvedRow> curved_rows(Index count, Index classes, std::uint64_t seed) {
    Random random(seed);
    std::vector<CurvedRow> curved;
    for (Index i = 0; i < count; i += 1 + random.below(3)) {
        std::uint64_t set = 0;
        while (std::popcount(set) < 2) set |= std::uint64_t{1} << static_cast<unsigned>(random.below(classes));
        curved.push_back({static_cast<std::uint32_t>(i), set, random.uniform(0.1, 3.0)});
    }
    return curved;
}

/// (1 + sum by P x x') v for one class, with the diagonal of P alone.
std::vector<double> multiplied(const LinearProblem& problem, std::span<const CurvedRow> curved, Index m, bool coupled,
                               double bias, std::span<const double> v) {
    std::vector<double> out(v.begin(), v.end());
    for (const auto& [i, set, by, own] : curved) {
        if ((set >> m & 1) == 0) continue;
        const auto value = [&](Index f) { return f < problem.x.columns ? problem.x.at(problem.order[i], f) : bias; };
        double product = 0.0;
        for (Index f = 0; f < std::ssize(v); ++f) product += value(f) * v[f];
        if (own >= 0) {
            product *= m == own ? by * (std::popcount(set) - 1) : by;
        } else {
            product *= by * (coupled ? 1.0 - 1.0 / std::popcount(set) : 1.0);
        }
        for (Index f = 0; f < std::ssize(v); ++f) out[f] += product * value(f);
    }
    return out;
}

template <class Real>
void check_inverse(const LinearProblem& problem, double bias, bool coupled, double tolerance, bool pairs = false) {
    const LinearRows<Real> rows(problem.csr.view(), problem.order, {});
    auto curved = curved_rows(problem.size(), problem.classes, 3);
    for (CurvedRow& row : curved) row.own = pairs ? std::countr_zero(row.classes) : -1;
    ThreadPool pool(2);
    const Blas blas = plain::blas();
    const Control control;
    ClassBlocks<Real> blocks(rows, problem.classes, bias, blas, pool, control);
    const Index features = problem.x.columns + (bias > 0.0 ? 1 : 0), width = problem.classes + 3;
    std::vector<double> diagonal(features * width);
    std::iota(diagonal.begin(), diagonal.end(), 1.0);
    blocks.factor(curved, coupled, diagonal, width);
    Random random(5);
    std::vector<double> vector(features * width);
    for (double& v : vector) v = random.normal();
    auto divided = vector;
    blocks.divide(divided, width);
    const auto original = rows.original_features();
    for (Index m = 0; m < problem.classes; ++m) {
        std::vector<double> column(features), expected(features);
        for (Index f = 0; f < features; ++f) {
            const Index place = f < problem.x.columns ? original[f] : f;
            column[place] = divided[f * width + m];
            expected[place] = vector[f * width + m] - (diagonal[f * width + m] - 1.0) * divided[f * width + m];
        }
        const auto back = multiplied(problem, curved, m, coupled, bias, column);
        for (Index f = 0; f < features; ++f) CHECK_CLOSE(back[f], expected[f], tolerance);
    }
    for (Index f = 0; f < features; ++f) {  // what is no class stays
        for (Index m = problem.classes; m < width; ++m) CHECK(divided[f * width + m] == vector[f * width + m]);
    }
}

}  // namespace

TEST(blocks_divide_by_what_the_rows_of_a_class_add_up_to) {
    const LinearProblem problem(4, 300, 11, 0.4, 1);
    for (const bool coupled : {true, false}) {
        for (const double bias : {0.0, 1.0}) {
            check_inverse<double>(problem, bias, coupled, 1e-9);
            check_inverse<float>(problem, bias, coupled, 1e-3);
            check_inverse<double>(problem, bias, coupled, 1e-9, true);
        }
    }
}

TEST(blocks_of_no_rows_are_their_diagonal) {
    const LinearProblem problem(3, 20, 5, 0.5, 2);
    const LinearRows<double> rows(problem.csr.view(), problem.order, {});
    ThreadPool pool(1);
    const Blas blas = plain::blas();
    const Control control;
    ClassBlocks<double> blocks(rows, 3, 0.0, blas, pool, control);
    std::vector<double> vector(15, 2.0);
    blocks.divide(vector, 3);  // nothing is factored yet
    for (const double v : vector) CHECK(v == 2.0);
    std::vector<double> diagonal(15, 1.0);
    diagonal[3] = 2.0, diagonal[6] = 4.0;
    blocks.factor({}, true, diagonal, 3);
    blocks.divide(vector, 3);
    for (Index f = 0; f < 5; ++f) CHECK_CLOSE(vector[3 * f], f == 1 ? 1.0 : f == 2 ? 0.5 : 2.0, 1e-12);
}

TEST(blocks_of_very_many_rows_lose_little_in_single_precision) {
    LinearProblem problem(2, 100, 4, 1.0, 4);
    for (double& v : problem.x.values) v += 2.0;  // no mean of zero: sums grow
    problem.csr = decltype(problem.csr)(problem.x);
    const auto few = curved_rows(problem.size(), problem.classes, 3);
    std::vector<CurvedRow> many;
    for (int times = 0; times < 10'000; ++times) many.insert(many.end(), few.begin(), few.end());
    const std::vector<double> diagonal(8, 1.0), vector{1.0, -2.0, 3.0, -1.0, 2.0, 1.0, -3.0, 2.0};
    const auto divided = [&]<class Real>(Real) {
        const LinearRows<Real> rows(problem.csr.view(), problem.order, {});
        ThreadPool pool(1);
        const Blas blas = plain::blas();
        const Control control;
        ClassBlocks<Real> blocks(rows, 2, 0.0, blas, pool, control);
        blocks.factor(many, false, diagonal, 2);
        auto result = vector;
        blocks.divide(result, 2);
        return result;
    };
    const auto single = divided(float{}), whole = divided(double{});
    const double scale = std::abs(*std::ranges::max_element(whole, {}, [](double v) { return std::abs(v); }));
    for (std::size_t t = 0; t < vector.size(); ++t) CHECK_CLOSE(single[t] / scale, whole[t] / scale, 2e-5);
}
