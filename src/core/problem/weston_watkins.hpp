#pragma once

#include <algorithm>

#include "problem/multiclass.hpp"

namespace polymargin {

/// Weston and Watkins' loss, Hsu & Lin (4) and Weston & Watkins section 5: `sum_{m != y} max(0, M - (s_y - s_m))`.
///
/// Dual: `a_m = -B_m` in [0, C] for every wrong class and `B_y = sum a`. The violation of a row is that of its worst
/// variable: how far `h_m = g_y - g_m` is below 0 where a_m may grow, or above where it may fall.
class WestonWatkins {
  public:
    static constexpr bool kRowsSumToZero = true;
    static constexpr bool kConjugate = false;

    explicit WestonWatkins(double margin = 2.0) : margin_(margin) {}

    [[nodiscard]] OwnOffset offsets(Index label) const { return {.label = label, .own = -margin_, .others = 0.0}; }
    [[nodiscard]] double loss(std::span<const double> scores, Index label) const;
    /// The loss of an example whose class m is short of its margin by `hinge(m)`.
    template <class Hinge>
    [[nodiscard]] double loss_of(Index classes, Index label, Hinge&& hinge) const {
        double sum = 0.0;
        for (Index m = 0; m < classes; ++m) {
            if (m != label) sum += std::max(0.0, hinge(m));
        }
        return sum;
    }
    /// Whether the margin of a class, of the example or another, is one of those that count.
    [[nodiscard]] bool has_hinge(bool own) const { return !own; }
    [[nodiscard]] double margin(std::span<const double> scores, Index label) const {
        return smallest_margin(scores, label, margin_);
    }
    // The own class follows from the others, which limit it.
    [[nodiscard]] bool may_grow(double b, bool own, double) const { return own || b < 0.0; }
    [[nodiscard]] bool may_fall(double b, bool own, double cost_bound) const { return own || b > -cost_bound; }
    // Every move is one with the own class, which is among those that may grow and fall.
    [[nodiscard]] double violation(const RowExtremes& row) const {
        const double grow = row.highest - row.own, fall = row.own - row.lowest;
        return grow > fall ? grow : fall;
    }
    [[nodiscard]] bool step(std::span<const double> gradient, double curvature, const Example& example,
                            std::span<double> beta) const {
        return exact_step(gradient, curvature, example.label, row_limits(example.cost_bound), beta);
    }
    [[nodiscard]] RowLimits row_limits(double cost_bound) const { return {.largest = cost_bound}; }
    void make_feasible(const Example& example, std::span<double> beta) const;
    [[nodiscard]] bool at_vertex(std::span<const double> beta, const Example& example) const;
    [[nodiscard]] std::vector<Direction> directions(std::span<const double> beta, const Example& example) const;
    [[nodiscard]] double max_step(std::span<const double> beta, std::span<const double> change,
                                  const Example& example) const;

  private:
    double margin_;
};

}  // namespace polymargin
