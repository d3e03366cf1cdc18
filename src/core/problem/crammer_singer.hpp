#pragma once

#include <algorithm>

#include "problem/multiclass.hpp"

namespace polymargin {

/// Crammer and Singer's loss, Hsu & Lin (16): `max_m (s_m + [m != y]) - s_y`.
///
/// Dual, Hsu & Lin (17): `B_m <= 0` for the wrong classes, `B_y <= C`. The violation of a row is Hsu & Lin (21): the
/// highest gradient minus the lowest among the variables that may grow.
class CrammerSinger {
  public:
    static constexpr bool kRowsSumToZero = true;
    static constexpr bool kConjugate = false;
    static constexpr bool kSimplex = true;

    [[nodiscard]] OwnOffset offsets(Index label) const { return {.label = label, .own = -1.0, .others = 0.0}; }
    [[nodiscard]] double loss(std::span<const double> scores, Index label) const;
    /// The loss of an example whose class m is short of its margin by `hinge(m)`.
    template <class Hinge>
    [[nodiscard]] double loss_of(Index classes, Index label, Hinge&& hinge) const {
        double largest = 0.0;
        for (Index m = 0; m < classes; ++m) {
            if (m != label) largest = std::max(largest, hinge(m));
        }
        return largest;
    }
    /// Whether the margin of a class, of the example or another, is one of those that count.
    [[nodiscard]] bool has_hinge(bool own) const { return !own; }
    [[nodiscard]] double margin(std::span<const double> scores, Index label) const {
        return smallest_margin(scores, label, 1.0);
    }
    [[nodiscard]] bool may_grow(double b, bool own, double cost_bound) const { return b < (own ? cost_bound : 0.0); }
    [[nodiscard]] bool may_fall(double, bool, double) const { return true; }
    [[nodiscard]] double violation(const RowExtremes& row) const { return row.highest - row.lowest; }
    [[nodiscard]] bool step(std::span<const double> gradient, double curvature, const Example& example,
                            std::span<double> beta) const {
        return exact_step(gradient, curvature, example.label, row_limits(example.cost_bound), beta);
    }
    [[nodiscard]] RowLimits row_limits(double cost_bound) const { return {.most = cost_bound}; }
    void make_feasible(const Example& example, std::span<double> beta) const;
    [[nodiscard]] bool at_vertex(std::span<const double> beta, const Example& example) const;
    [[nodiscard]] std::vector<Direction> directions(std::span<const double> beta, const Example& example) const;
    [[nodiscard]] double max_step(std::span<const double> beta, std::span<const double> change,
                                  const Example& example) const;
};

}  // namespace polymargin
