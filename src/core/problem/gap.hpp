#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace polymargin {

/// The difference of the objectives relative to the larger of the two; infinite while there is no primal point.
[[nodiscard]] inline double relative_gap(double primal, double dual) {
    const double scale = std::max(std::abs(primal), std::abs(dual));
    if (!std::isfinite(scale)) return std::numeric_limits<double>::infinity();
    return scale > 0.0 ? (primal - dual) / scale : 0.0;
}

/// How a fit that stops on its violation, or on its gap, comes to a small gap. The violation counts once for each unit
/// of C: where C is large, a small one leaves a large gap.
struct GapSettings {
    double finer = 0.1;     ///< the violation that is allowed next, while the gap is larger than it should be
    double finest = 1e-10;  ///< below it is rounding
    /// A fit that stops on its violation goes on for a while if the gap is larger than this: for this share of the
    /// steps that it took, and a few more, which cost about what so many kernel rows do for each example.
    double open = 1e-2;
    double more_steps = 0.25;
    double few_steps = 1000.0;
    double few_for_example = 3.0;
};

/// The next violation to ask for when one that is met is not small enough.
[[nodiscard]] inline double finer_tolerance(double tolerance, double violation, const GapSettings& settings) {
    while (tolerance > settings.finest && !(violation > tolerance)) tolerance *= settings.finer;
    return std::max(tolerance, settings.finest);
}

}  // namespace polymargin
