#pragma once

#include <limits>
#include <span>
#include <vector>

#include "support/types.hpp"

namespace polymargin {

/// A binary support vector machine on some of the examples, those of `positive` against the others:
///
///     max_b  y'b - 1/2 b'Kb   subject to   sum_i b_i = 0,   0 <= y_i b_i <= C_i,
///
/// the dual of H&L (1) and (3) in signed variables `b_i = y_i alpha_i`, so that scores are `K b + intercept`. The
/// negative gradient is `y - K b`; this library keeps `f = K b - y`. With `I_up` the examples whose `b_i` may still
/// grow and `I_low` those whose `b_i` may fall, a solution has `max_{I_low} f <= min_{I_up} f`, and H&L (22) stops when
/// that holds to within `tol`.
struct BinaryProblem {
    std::vector<Range> segments;  ///< the examples, as ranges of the engine's numbering, disjoint and ascending
    Range positive;               ///< those with y = +1

    [[nodiscard]] Index size() const {
        Index total = 0;
        for (const Range& s : segments) total += s.size();
        return total;
    }
};

/// A stretch of examples of one sign, contiguous in the problem and in the engine's numbering.
struct Run {
    Index local;   ///< first example, numbered within the problem
    Index global;  ///< the same, in the engine's numbering
    Index size;
    double sign;
};

[[nodiscard]] std::vector<Run> runs_of(const BinaryProblem& problem);

/// A point of the dual, its gradient, and what follows from them. `upper` is indexed like the engine.
struct BinaryState {
    std::vector<double> beta;
    std::vector<double> f;
};

/// How far a state is from optimal: the two sides of H&L (22) and their difference.
struct Violation {
    double lowest_up = std::numeric_limits<double>::infinity();     ///< min f over I_up
    double highest_low = -std::numeric_limits<double>::infinity();  ///< max f over I_low

    [[nodiscard]] double size() const { return highest_low - lowest_up; }
};

[[nodiscard]] Violation violation(std::span<const Run> runs, const BinaryState& state, std::span<const double> upper);

/// The intercept: minus the mean of `f` over the free examples, or the middle of the interval that the others leave.
[[nodiscard]] double intercept(std::span<const Run> runs, const BinaryState& state, std::span<const double> upper);

struct Objectives {
    double primal = 0.0;
    double dual = 0.0;
};

/// Primal and (maximised) dual objective, both from the gradient. With C = inf the primal point is the current one,
/// scaled until every margin is 1; it is infinite while some example is on the wrong side.
[[nodiscard]] Objectives objectives(std::span<const Run> runs, const BinaryState& state, std::span<const double> upper,
                                    double intercept);

}  // namespace polymargin
