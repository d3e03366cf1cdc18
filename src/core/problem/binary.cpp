#include "problem/binary.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>

#include "support/multiversion.hpp"

namespace polymargin {
namespace {

/// Passes over a run keep so many running values, for the vectoriser: selections instead of branches.
constexpr Index kLanes = 16;

/// Call `visit(i, lane)` for every example.
template <class Visit>
POLYMARGIN_INLINE void in_lanes(Index size, Visit&& visit) {
    Index i = 0;
    for (; i + kLanes <= size; i += kLanes) {
        for (Index l = 0; l < kLanes; ++l) visit(i + l, l);
    }
    for (Index l = 0; i + l < size; ++l) visit(i + l, l);
}

double sum_of(const double (&values)[kLanes]) {
    return std::accumulate(std::begin(values), std::end(values), 0.0);
}

/// Say what must hold, and where it does not.
void require(bool holds, const char* what, std::size_t number, const char* rule) {
    if (!holds)
        throw std::invalid_argument(std::string("binary problems, ") + what + " " + std::to_string(number) + ": " +
                                    rule);
}

}  // namespace

std::vector<BinaryProblem> problems_from(std::span<const Index> table, bool squared) {
    std::vector<BinaryProblem> problems;
    for (std::size_t row = 0; 4 * row < table.size(); ++row) {
        const Index problem = table[4 * row], begin = table[4 * row + 1], end = table[4 * row + 2],
                    sign = table[4 * row + 3];
        if (problem == std::ssize(problems)) problems.emplace_back().squared = squared;
        require(problem + 1 == std::ssize(problems), "row", row,
                "problems must be numbered 0, 1, 2, ..., in this order");
        require(sign == 1 || sign == -1, "row", row, "the sign must be +1 or -1");
        auto& ranges = problems.back().ranges;
        require((ranges.empty() ? 0 : ranges.back().end) <= begin && begin < end, "row", row,
                "the ranges of a problem must ascend, not meet, and have examples");
        ranges.push_back({begin, end, static_cast<double>(sign)});
    }
    for (std::size_t p = 0; p < problems.size(); ++p) {
        const auto& ranges = problems[p].ranges;
        require(std::ranges::any_of(ranges, [&](const auto& r) { return r.sign != ranges.front().sign; }), "problem", p,
                "there must be examples of both signs");
    }
    return problems;
}

void check_within(std::span<const BinaryProblem> problems, Index examples) {
    for (std::size_t p = 0; p < problems.size(); ++p) {
        const auto& ranges = problems[p].ranges;
        require(ranges.empty() || (ranges.front().begin >= 0 && ranges.back().end <= examples), "problem", p,
                "its ranges go beyond the examples");
    }
}

std::vector<std::vector<Range>> segments_of(std::span<const BinaryProblem> problems, Index examples) {
    std::vector<std::vector<Range>> segments;
    segments.reserve(problems.size());
    for (const BinaryProblem& problem : problems) {
        auto& stretches = segments.emplace_back();
        for (const SignedRange& r : problem.ranges) {
            if (!stretches.empty() && stretches.back().end == r.begin) {
                stretches.back().end = r.end;
            } else {
                stretches.push_back(r.range());
            }
        }
    }
    const bool shared = segments.size() > 1 && std::ranges::all_of(segments, [&](const auto& stretches) {
                            return stretches == segments.front();
                        });
    for (std::size_t p = 0; p < segments.size() && !shared; ++p) {
        const auto& ranges = problems[p].ranges;
        const bool all = segments[p].size() == 1 && segments[p][0].size() == examples;
        if (ranges.size() == 2 && !all) segments[p] = {ranges[0].range(), ranges[1].range()};
    }
    return segments;
}

std::vector<Run> runs_of(const BinaryProblem& problem) {
    std::vector<Run> runs;
    Index local = 0;
    for (const SignedRange& r : problem.ranges) {
        runs.push_back({local, r.begin, r.end - r.begin, r.sign});
        local += r.end - r.begin;
    }
    return runs;
}

/// The extremes of `f` over one run.
POLYMARGIN_MULTIVERSION Violation extremes(const double* beta, const double* f, const double* cost_bounds, Index size,
                                           double sign) {
    double lowest[kLanes], highest[kLanes];
    for (Index l = 0; l < kLanes; ++l) {
        lowest[l] = std::numeric_limits<double>::infinity();
        highest[l] = -lowest[l];
    }
    const double positive = sign > 0 ? 1.0 : 0.0;
    in_lanes(size, [&](Index i, Index l) POLYMARGIN_INLINED {
        const double most = positive != 0.0 ? cost_bounds[i] : 0.0;
        const double least = positive != 0.0 ? 0.0 : -cost_bounds[i];
        const double low = beta[i] < most ? f[i] : std::numeric_limits<double>::infinity();
        const double high = beta[i] > least ? f[i] : -std::numeric_limits<double>::infinity();
        lowest[l] = low < lowest[l] ? low : lowest[l];
        highest[l] = high > highest[l] ? high : highest[l];
    });
    Violation v;
    for (Index l = 0; l < kLanes; ++l) {
        v.lowest_up = std::min(v.lowest_up, lowest[l]);
        v.highest_low = std::max(v.highest_low, highest[l]);
    }
    return v;
}

Violation violation(std::span<const Run> runs, const BinaryState& state, std::span<const double> cost_bounds) {
    Violation all;
    for (const Run& run : runs) {
        const Violation v = extremes(state.beta.data() + run.local, state.f.data() + run.local,
                                     cost_bounds.data() + run.global, run.size, run.sign);
        all.lowest_up = std::min(all.lowest_up, v.lowest_up);
        all.highest_low = std::max(all.highest_low, v.highest_low);
    }
    return all;
}

/// How many examples of a run are free, and the sum of their `f`.
struct FreeExamples {
    double count, sum;
};

POLYMARGIN_MULTIVERSION FreeExamples free_examples(const double* beta, const double* f, const double* cost_bounds,
                                                   Index size) {
    double count[kLanes] = {}, sum[kLanes] = {};
    in_lanes(size, [&](Index i, Index l) POLYMARGIN_INLINED {
        const double own = std::abs(beta[i]), inside = own < cost_bounds[i] ? 1.0 : 0.0,
                     free = own > 0.0 ? inside : 0.0;
        count[l] += free;
        sum[l] += free != 0.0 ? f[i] : 0.0;
    });
    return {sum_of(count), sum_of(sum)};
}

double intercept(std::span<const Run> runs, const BinaryState& state, std::span<const double> cost_bounds) {
    double sum = 0.0, free = 0.0;
    for (const Run& run : runs) {
        const FreeExamples own = free_examples(state.beta.data() + run.local, state.f.data() + run.local,
                                               cost_bounds.data() + run.global, run.size);
        free += own.count;
        sum += own.sum;
    }
    if (free > 0.0) return -sum / free;
    const Violation v = violation(runs, state, cost_bounds);
    if (!std::isfinite(v.lowest_up)) return -v.highest_low;
    if (!std::isfinite(v.highest_low)) return -v.lowest_up;
    return -(v.lowest_up + v.highest_low) / 2;
}

/// What a run adds to both objectives.
struct Terms {
    double quadratic, linear, loss;
    double smallest_margin;  ///< of examples whose cost has no bound; infinite if there are none
};

POLYMARGIN_MULTIVERSION Terms terms_of(const double* beta, const double* f, const double* cost_bounds, Index size,
                                       double sign, double intercept) {
    constexpr double none = std::numeric_limits<double>::infinity();
    double quadratic[kLanes] = {}, linear[kLanes] = {}, loss[kLanes] = {}, margin[kLanes];
    std::fill_n(margin, kLanes, none);
    in_lanes(size, [&](Index i, Index l) POLYMARGIN_INLINED {
        quadratic[l] += beta[i] * (f[i] + sign);
        linear[l] += beta[i] * sign;
        const double shortfall = -sign * (f[i] + intercept);  // 1 - y (K b + intercept)
        const double missing = shortfall > 0.0 ? shortfall : 0.0, bound = cost_bounds[i] < none ? cost_bounds[i] : 0.0;
        loss[l] += bound * missing;
        const double hard = cost_bounds[i] < none ? none : 1.0 - shortfall;
        margin[l] = hard < margin[l] ? hard : margin[l];
    });
    return {sum_of(quadratic), sum_of(linear), sum_of(loss), *std::min_element(margin, margin + kLanes)};
}

/// The same of squared hinges; the ridge is part of f, not of scores.
POLYMARGIN_MULTIVERSION Terms squared_terms_of(const double* beta, const double* f, const double* costs, Index size,
                                               double sign, double intercept) {
    constexpr double none = std::numeric_limits<double>::infinity();
    double quadratic[kLanes] = {}, linear[kLanes] = {}, loss[kLanes] = {}, margin[kLanes];
    std::fill_n(margin, kLanes, none);
    in_lanes(size, [&](Index i, Index l) POLYMARGIN_INLINED {
        const double ridge = costs[i] > 0.0 ? 0.5 / costs[i] : 0.0, plain = f[i] - ridge * beta[i];
        quadratic[l] += beta[i] * (plain + sign);
        linear[l] += beta[i] * (sign - 0.5 * ridge * beta[i]);
        const double shortfall = -sign * (plain + intercept);
        const double missing = shortfall > 0.0 ? shortfall : 0.0, cost = costs[i] < none ? costs[i] : 0.0;
        loss[l] += cost * missing * missing;
        const double hard = costs[i] < none ? none : 1.0 - shortfall;
        margin[l] = hard < margin[l] ? hard : margin[l];
    });
    return {sum_of(quadratic), sum_of(linear), sum_of(loss), *std::min_element(margin, margin + kLanes)};
}

/// The sum of the terms of all runs as objectives.
template <class TermsOf>
Objectives objectives_of(std::span<const Run> runs, TermsOf&& terms_of_run) {
    double quadratic = 0.0, linear = 0.0, loss = 0.0;
    double smallest_margin = std::numeric_limits<double>::infinity();
    for (const Run& run : runs) {
        const Terms own = terms_of_run(run);
        quadratic += own.quadratic;
        linear += own.linear;
        loss += own.loss;
        smallest_margin = std::min(smallest_margin, own.smallest_margin);
    }
    Objectives result{.primal = quadratic / 2 + loss, .dual = linear - quadratic / 2};
    if (std::isfinite(smallest_margin)) {  // there are hard margins
        const double scale =
            smallest_margin > 0.0 ? std::max(1.0, 1.0 / smallest_margin) : std::numeric_limits<double>::infinity();
        result.primal = std::isinf(scale) ? scale : quadratic / 2 * scale * scale + loss;
    }
    // Weak duality holds exactly; at an exact optimum rounding may say otherwise in the last bits.
    const double rounding = 1e-12 * std::abs(result.dual);
    if (result.primal < result.dual && result.dual - result.primal <= rounding) result.primal = result.dual;
    return result;
}

Objectives objectives(std::span<const Run> runs, const BinaryState& state, std::span<const double> cost_bounds,
                      double intercept) {
    return objectives_of(runs, [&](const Run& run) {
        return terms_of(state.beta.data() + run.local, state.f.data() + run.local, cost_bounds.data() + run.global,
                        run.size, run.sign, intercept);
    });
}

Objectives squared_objectives(std::span<const Run> runs, const BinaryState& state, std::span<const double> costs,
                              double intercept) {
    return objectives_of(runs, [&](const Run& run) {
        return squared_terms_of(state.beta.data() + run.local, state.f.data() + run.local, costs.data() + run.global,
                                run.size, run.sign, intercept);
    });
}

}  // namespace polymargin
