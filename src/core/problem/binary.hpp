#pragma once

#include <limits>
#include <span>
#include <vector>

#include "problem/gap.hpp"
#include "support/types.hpp"

namespace polymargin {

/// Neighbouring examples of one side of a binary problem.
struct SignedRange {
    Index begin = 0;
    Index end = 0;
    double sign = 1.0;  ///< y_i, +1 or -1

    [[nodiscard]] constexpr Range range() const { return {begin, end}; }
    friend constexpr bool operator==(SignedRange, SignedRange) = default;
};

/// A binary support vector machine on some of the examples, each with a sign y_i:
///
///     max_b  y'b - 1/2 b'Kb   subject to   sum_i b_i = 0,   0 <= y_i b_i <= C_i,
///
/// the dual of Hsu & Lin (1) and (3) in signed variables `b_i = y_i alpha_i`, so that scores are `K b + intercept`. The
/// negative gradient is `y - K b`; this library keeps `f = K b - y`. With `I_up` the examples whose `b_i` may still
/// grow and `I_low` those whose `b_i` may fall, a solution has `max_{I_low} f <= min_{I_up} f`, and Hsu & Lin (22)
/// stops when that holds to within `tol`. A pair of classes is two ranges, a class against the rest up to three, a
/// column of an output code as many as it needs.
///
/// With squared hinges, `C_i max(0, 1 - y_i s_i)^2`, there are no upper bounds, and the kernel has a ridge,
///
///     max_b  y'b - 1/2 b'(K + D)b   subject to   sum_i b_i = 0,   0 <= y_i b_i,   D_ii = 1 / (2 C_i):
///
/// then `f = (K + D) b - y`, and the same conditions hold. Scores are those of K alone.
struct BinaryProblem {
    std::vector<SignedRange> ranges;  ///< of the engine's numbering, not empty, disjoint and ascending
    bool squared = false;             ///< are the hinges squared?

    [[nodiscard]] Index size() const {
        Index total = 0;
        for (const SignedRange& r : ranges) total += r.end - r.begin;
        return total;
    }
};

/// Read problems from rows (problem, begin, end, sign), sorted by problem. Throws std::invalid_argument, naming the
/// row, unless problems are numbered 0, 1, 2, ..., their ranges are not empty, ascend and do not meet, and every
/// problem has both signs.
[[nodiscard]] std::vector<BinaryProblem> problems_from(std::span<const Index> table, bool squared = false);

/// Throw std::invalid_argument, naming the problem, unless all of them are among so many examples.
void check_within(std::span<const BinaryProblem> problems, Index examples);

/// The segments of each problem on so many examples: stretches whose kernel values are kept together. Ranges that touch
/// make one stretch. The two of a pair stay apart, as its classes are also those of other pairs, unless there can be no
/// others: where all problems have the same examples, as one against the rest, every row is shared, and a pair of all
/// examples shares none. (A machine of two classes on 1,500 to 8,000 examples of 16 or 200 features is trained 1.2
/// times as fast so, in the geometric mean of 35 problems; between 0.4 and 11 times.)
[[nodiscard]] std::vector<std::vector<Range>> segments_of(std::span<const BinaryProblem> problems, Index examples);

/// A range of a problem, with its place in it.
struct Run {
    Index local;   ///< first example, numbered within the problem
    Index global;  ///< the same, in the engine's numbering
    Index size;
    double sign;
};

[[nodiscard]] std::vector<Run> runs_of(const BinaryProblem& problem);

/// A point of the dual, its gradient, and what follows from them. `cost_bounds` is indexed like the engine.
struct BinaryState {
    std::vector<double> beta;
    std::vector<double> f;
};

/// How far a state is from optimal: the two sides of Hsu & Lin (22) and their difference.
struct Violation {
    double lowest_up = std::numeric_limits<double>::infinity();     ///< min f over I_up
    double highest_low = -std::numeric_limits<double>::infinity();  ///< max f over I_low

    [[nodiscard]] double size() const { return highest_low - lowest_up; }
};

[[nodiscard]] Violation violation(std::span<const Run> runs, const BinaryState& state,
                                  std::span<const double> cost_bounds);

/// The intercept: minus the mean of `f` over the free examples, or the middle of the interval that the others leave.
[[nodiscard]] double intercept(std::span<const Run> runs, const BinaryState& state,
                               std::span<const double> cost_bounds);

struct Objectives {
    double primal = 0.0;
    double dual = 0.0;

    /// Relative to the larger of the two.
    [[nodiscard]] double gap() const { return relative_gap(primal, dual); }
};

/// Primal and (maximised) dual objective, both from the gradient. With C = inf the primal point is the current one,
/// scaled until every margin is 1; it is infinite while some example is on the wrong side.
[[nodiscard]] Objectives objectives(std::span<const Run> runs, const BinaryState& state,
                                    std::span<const double> cost_bounds, double intercept);

/// What a cost makes of a squared hinge in the dual: the limit of its coefficient, and the ridge.
[[nodiscard]] inline double squared_limit(double cost) {
    return cost > 0.0 ? std::numeric_limits<double>::infinity() : 0.0;
}
[[nodiscard]] inline double squared_ridge(double cost) {
    return cost > 0.0 ? 0.5 / cost : 0.0;
}

/// The same of squared hinges: `costs` are the C_i, and the gradient is that with the ridge.
[[nodiscard]] Objectives squared_objectives(std::span<const Run> runs, const BinaryState& state,
                                            std::span<const double> costs, double intercept);

}  // namespace polymargin
