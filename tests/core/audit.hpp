#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "check.hpp"
#include "fixtures.hpp"
#include "solver/binary.hpp"

/// Solutions audited by code that does not trust the solver.
namespace audit {

using polymargin::BinaryProblem;
using polymargin::BinaryResult;
using polymargin::Index;

/// What a solution is worth, from the kernel and plain loops alone.
struct Audit {
    double violation, primal, dual, bound_total;
};

/// Checks that the solution is feasible and returns its quality. `gram` is indexed by the engine's numbers.
inline Audit examine(const BinaryProblem& problem, std::span<const double> cost_bounds, const fixtures::Matrix& gram,
                     const BinaryResult& result) {
    std::vector<Index> members;
    std::vector<double> signs(gram.rows, 0.0);
    for (const auto& range : problem.ranges) {
        for (Index g = range.begin; g < range.end; ++g) {
            members.push_back(g);
            signs[g] = range.sign;
        }
    }
    std::vector<double> beta(gram.rows, 0.0);
    CHECK(result.support.size() == result.beta.size());
    CHECK(std::is_sorted(result.support.begin(), result.support.end()));
    for (std::size_t i = 0; i < result.support.size(); ++i) {
        CHECK(std::binary_search(members.begin(), members.end(), result.support[i]));
        CHECK(result.beta[i] != 0.0);
        beta[result.support[i]] = result.beta[i];
    }
    double total = 0.0, size = 0.0;
    Audit a{.violation = 0.0, .primal = 0.0, .dual = 0.0, .bound_total = 0.0};
    double lowest_up = std::numeric_limits<double>::infinity(), highest_low = -lowest_up, quadratic = 0.0;
    for (const Index g : members) {
        const double sign = signs[g];
        CHECK(sign * beta[g] >= 0.0 && sign * beta[g] <= cost_bounds[g]);
        total += beta[g];
        size += std::abs(beta[g]);
        double score = 0.0;
        for (const Index s : result.support) score += beta[s] * gram.at(g, s);
        const bool may_grow = sign > 0 ? beta[g] < cost_bounds[g] : beta[g] < 0.0;
        const bool may_fall = sign > 0 ? beta[g] > 0.0 : beta[g] > -cost_bounds[g];
        if (may_grow) lowest_up = std::min(lowest_up, score - sign);
        if (may_fall) highest_low = std::max(highest_low, score - sign);
        quadratic += beta[g] * score;
        a.dual += sign * beta[g];
        const double shortfall = 1.0 - sign * (score + result.intercept);
        if (shortfall > 0.0 && std::isfinite(cost_bounds[g])) a.primal += cost_bounds[g] * shortfall;
        a.bound_total += cost_bounds[g];
    }
    CHECK_CLOSE(total, 0.0, 1e-10 * std::max(1.0, size));
    a.violation = highest_low - lowest_up;
    a.primal += quadratic / 2;
    a.dual -= quadratic / 2;
    return a;
}

/// The solution is optimal to within `tolerance`, up to `rounding` in the decision values, and says so truly.
inline void check_solved(const BinaryProblem& problem, std::span<const double> cost_bounds,
                         const fixtures::Matrix& gram, const BinaryResult& result, double tolerance, double rounding) {
    CHECK(result.status == polymargin::Status::converged);
    const Audit a = examine(problem, cost_bounds, gram, result);
    CHECK(a.violation <= tolerance + rounding);
    CHECK(result.violation <= tolerance);
    CHECK_CLOSE(result.violation, a.violation, rounding);
    const double allowed = rounding * a.bound_total + 1e-12 * std::abs(a.dual);
    CHECK(a.primal >= a.dual - allowed);  // weak duality
    // Every example adds at most C_i times the violation to the gap.
    CHECK(a.primal - a.dual <= (tolerance + rounding) * a.bound_total + allowed);
    CHECK_CLOSE(result.objectives.primal, a.primal, allowed);
    CHECK_CLOSE(result.objectives.dual, a.dual, allowed);
}

inline bool same(const BinaryResult& a, const BinaryResult& b) {
    return a.support == b.support && a.beta == b.beta && a.intercept == b.intercept && a.violation == b.violation &&
           a.iterations == b.iterations && a.status == b.status && a.objectives.primal == b.objectives.primal &&
           a.objectives.dual == b.objectives.dual && a.held_out == b.held_out;
}

/// The examples of one range against those of another, which comes later.
inline BinaryProblem pair(polymargin::Range positive, polymargin::Range negative) {
    return {{{positive.begin, positive.end, 1.0}, {negative.begin, negative.end, -1.0}}};
}

/// Some examples against the others of a range.
inline BinaryProblem against_rest(polymargin::Range positive, polymargin::Range all) {
    BinaryProblem problem{
        {{all.begin, positive.begin, -1.0}, {positive.begin, positive.end, 1.0}, {positive.end, all.end, -1.0}}};
    std::erase_if(problem.ranges, [](const auto& range) { return range.begin == range.end; });
    return problem;
}

/// All pairs of `classes` classes of `per_class` examples each; the first class of a pair is positive.
inline std::vector<BinaryProblem> all_pairs(Index classes, Index per_class) {
    std::vector<BinaryProblem> problems;
    for (Index a = 0; a < classes; ++a) {
        for (Index b = a + 1; b < classes; ++b) {
            problems.push_back(pair({a * per_class, (a + 1) * per_class}, {b * per_class, (b + 1) * per_class}));
        }
    }
    return problems;
}

/// Each class against all others.
inline std::vector<BinaryProblem> all_rests(Index classes, Index per_class) {
    std::vector<BinaryProblem> problems;
    for (Index a = 0; a < classes; ++a) {
        problems.push_back(against_rest({a * per_class, (a + 1) * per_class}, {0, classes * per_class}));
    }
    return problems;
}

}  // namespace audit
