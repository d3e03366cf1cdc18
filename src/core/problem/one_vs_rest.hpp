#pragma once

#include <algorithm>

#include "problem/multiclass.hpp"

namespace polymargin {

/// One-against-all as one problem: `sum_m max(0, 1 - (+-1) s_m)`, plus for the class of the example and minus for all
/// others. A row of coefficients has a binary machine in each column, and they do not meet.
///
/// Dual: `0 <= B_y <= C` and `-C <= B_m <= 0` for the others. A label that is no column is an example of no class here.
class OneVsRest {
  public:
    static constexpr bool kRowsSumToZero = false;
    static constexpr bool kConjugate = false;
    static constexpr bool kBox = true;  ///< each class for itself: own in [0, C], others in [-C, 0]

    [[nodiscard]] OwnOffset offsets(Index label) const { return {.label = label, .own = -1.0, .others = 1.0}; }
    [[nodiscard]] double loss(std::span<const double> scores, Index label) const {
        double sum = 0.0;
        for (Index m = 0; m < std::ssize(scores); ++m) {
            sum += std::max(0.0, 1.0 + (m == label ? -scores[m] : scores[m]));
        }
        return sum;
    }
    [[nodiscard]] bool may_grow(double b, bool own, double cost_bound) const { return b < (own ? cost_bound : 0.0); }
    [[nodiscard]] bool may_fall(double b, bool own, double cost_bound) const { return b > (own ? 0.0 : -cost_bound); }
    [[nodiscard]] double violation(const RowExtremes& row) const { return std::max(row.highest, -row.lowest); }
    [[nodiscard]] bool step(std::span<const double> gradient, double curvature, const Example& example,
                            std::span<double> beta) const;
    void make_feasible(const Example& example, std::span<double> beta) const;
    [[nodiscard]] bool at_vertex(std::span<const double> beta, const Example& example) const;
    /// The number b for which `sum_i C_i max(0, 1 - (+-1) (s_i + b))` is least, for the scores of one class: the middle
    /// one if there are many. It is where the slope, which falls to the left and grows to the right at the places
    /// `(+-1) - s_i`, changes its sign: O(n) on average.
    [[nodiscard]] double best_shift(std::span<const double> scores, std::span<const Index> labels,
                                    std::span<const double> cost_bounds, Index m) const;
};

}  // namespace polymargin
