#include "problem/binary.hpp"

#include <algorithm>
#include <cmath>

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
void for_examples(std::span<const Run> runs, const BinaryState& state, std::span<const double> upper, Visit&& visit) {
    for (const Run& run : runs) {
        for (Index i = 0; i < run.size; ++i) {
            const double bound = upper[run.global + i];
            visit(state.beta[run.local + i], state.f[run.local + i], box(run.sign, bound), run.sign, bound);
        }
    }
}

}  // namespace

std::vector<Run> runs_of(const BinaryProblem& problem) {
    std::vector<Run> runs;
    Index local = 0;
    for (const Range& s : problem.segments) {
        const Index from = std::clamp(problem.positive.begin, s.begin, s.end);
        const Index to = std::clamp(problem.positive.end, from, s.end);
        for (const auto& [part, sign] : {std::pair{Range{s.begin, from}, -1.0}, std::pair{Range{from, to}, 1.0},
                                         std::pair{Range{to, s.end}, -1.0}}) {
            if (part.size() > 0) runs.push_back({local + part.begin - s.begin, part.begin, part.size(), sign});
        }
        local += s.size();
    }
    return runs;
}

/// The extremes of `f` over one run. Written for the vectoriser: several running values, selections instead of
/// branches.
POLYMARGIN_MULTIVERSION Violation extremes(const double* beta, const double* f, const double* upper, Index size,
                                           double sign) {
    constexpr Index lanes = 16;
    double lowest[lanes], highest[lanes];
    for (Index l = 0; l < lanes; ++l) {
        lowest[l] = std::numeric_limits<double>::infinity();
        highest[l] = -lowest[l];
    }
    const double positive = sign > 0 ? 1.0 : 0.0;
    const auto visit = [&](Index i, Index l) {
        const double most = positive != 0.0 ? upper[i] : 0.0;
        const double least = positive != 0.0 ? 0.0 : -upper[i];
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

Violation violation(std::span<const Run> runs, const BinaryState& state, std::span<const double> upper) {
    Violation all;
    for (const Run& run : runs) {
        const Violation v = extremes(state.beta.data() + run.local, state.f.data() + run.local,
                                     upper.data() + run.global, run.size, run.sign);
        all.lowest_up = std::min(all.lowest_up, v.lowest_up);
        all.highest_low = std::max(all.highest_low, v.highest_low);
    }
    return all;
}

double intercept(std::span<const Run> runs, const BinaryState& state, std::span<const double> upper) {
    double sum = 0.0;
    Index free = 0;
    for_examples(runs, state, upper, [&](double b, double f, Box box, double, double) {
        if (b > box.lower && b < box.upper) {
            sum += f;
            ++free;
        }
    });
    if (free > 0) return -sum / static_cast<double>(free);
    const Violation v = violation(runs, state, upper);
    if (!std::isfinite(v.lowest_up)) return -v.highest_low;
    if (!std::isfinite(v.highest_low)) return -v.lowest_up;
    return -(v.lowest_up + v.highest_low) / 2;
}

Objectives objectives(std::span<const Run> runs, const BinaryState& state, std::span<const double> upper,
                      double intercept) {
    double quadratic = 0.0, linear = 0.0, loss = 0.0;
    double smallest_margin = std::numeric_limits<double>::infinity();
    bool hard = false;
    for_examples(runs, state, upper, [&](double b, double f, Box, double sign, double bound) {
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
