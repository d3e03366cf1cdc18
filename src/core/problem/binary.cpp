#include "problem/binary.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "support/multiversion.hpp"

namespace polymargin {
namespace {

struct Box {
    double lower, upper;
};

Box box(double sign, double bound) {
    return sign > 0 ? Box{0.0, bound} : Box{-bound, 0.0};
}

/// Call `visit(b, f, box, sign, C)` for every example of the problem.
template <class Visit>
void for_examples(std::span<const Run> runs, const BinaryState& state, std::span<const double> cost_bounds,
                  Visit&& visit) {
    for (const Run& run : runs) {
        for (Index i = 0; i < run.size; ++i) {
            const double bound = cost_bounds[run.global + i];
            visit(state.beta[run.local + i], state.f[run.local + i], box(run.sign, bound), run.sign, bound);
        }
    }
}

/// Say what must hold, and where it does not.
void require(bool holds, const char* what, std::size_t number, const char* rule) {
    if (!holds)
        throw std::invalid_argument(std::string("binary problems, ") + what + " " + std::to_string(number) + ": " +
                                    rule);
}

}  // namespace

std::vector<BinaryProblem> problems_from(std::span<const Index> table) {
    std::vector<BinaryProblem> problems;
    for (std::size_t row = 0; 4 * row < table.size(); ++row) {
        const Index problem = table[4 * row], begin = table[4 * row + 1], end = table[4 * row + 2],
                    sign = table[4 * row + 3];
        if (problem == std::ssize(problems)) problems.emplace_back();
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

/// The extremes of `f` over one run. Written for the vectoriser: several running values, selections instead of
/// branches.
POLYMARGIN_MULTIVERSION Violation extremes(const double* beta, const double* f, const double* cost_bounds, Index size,
                                           double sign) {
    constexpr Index lanes = 16;
    double lowest[lanes], highest[lanes];
    for (Index l = 0; l < lanes; ++l) {
        lowest[l] = std::numeric_limits<double>::infinity();
        highest[l] = -lowest[l];
    }
    const double positive = sign > 0 ? 1.0 : 0.0;
    const auto visit = [&](Index i, Index l) {
        const double most = positive != 0.0 ? cost_bounds[i] : 0.0;
        const double least = positive != 0.0 ? 0.0 : -cost_bounds[i];
        const double low = beta[i] < most ? f[i] : std::numeric_limits<double>::infinity();
        const double high = beta[i] > least ? f[i] : -std::numeric_limits<double>::infinity();
        lowest[l] = low < lowest[l] ? low : lowest[l];
        highest[l] = high > highest[l] ? high : highest[l];
    };
    Index i = 0;
    for (; i + lanes <= size; i += lanes) {
        for (Index l = 0; l < lanes; ++l) visit(i + l, l);
    }
    for (; i < size; ++i) visit(i, 0);
    Violation v;
    for (Index l = 0; l < lanes; ++l) {
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

double intercept(std::span<const Run> runs, const BinaryState& state, std::span<const double> cost_bounds) {
    double sum = 0.0;
    Index free = 0;
    for_examples(runs, state, cost_bounds, [&](double b, double f, Box box, double, double) {
        if (b > box.lower && b < box.upper) {
            sum += f;
            ++free;
        }
    });
    if (free > 0) return -sum / static_cast<double>(free);
    const Violation v = violation(runs, state, cost_bounds);
    if (!std::isfinite(v.lowest_up)) return -v.highest_low;
    if (!std::isfinite(v.highest_low)) return -v.lowest_up;
    return -(v.lowest_up + v.highest_low) / 2;
}

Objectives objectives(std::span<const Run> runs, const BinaryState& state, std::span<const double> cost_bounds,
                      double intercept) {
    double quadratic = 0.0, linear = 0.0, loss = 0.0;
    double smallest_margin = std::numeric_limits<double>::infinity();
    bool hard = false;
    for_examples(runs, state, cost_bounds, [&](double b, double f, Box, double sign, double bound) {
        quadratic += b * (f + sign);
        linear += b * sign;
        const double shortfall = -sign * (f + intercept);  // 1 - y (K b + intercept)
        if (std::isinf(bound)) {
            hard = true;
            smallest_margin = std::min(smallest_margin, 1.0 - shortfall);
        } else if (shortfall > 0.0) {
            loss += bound * shortfall;
        }
    });
    Objectives result{.primal = quadratic / 2 + loss, .dual = linear - quadratic / 2};
    if (hard) {
        const double scale =
            smallest_margin > 0.0 ? std::max(1.0, 1.0 / smallest_margin) : std::numeric_limits<double>::infinity();
        result.primal = std::isinf(scale) ? scale : quadratic / 2 * scale * scale + loss;
    }
    // Weak duality holds exactly; at an exact optimum rounding may say otherwise in the last bits.
    const double rounding = 1e-12 * std::abs(result.dual);
    if (result.primal < result.dual && result.dual - result.primal <= rounding) result.primal = result.dual;
    return result;
}

}  // namespace polymargin
