#pragma once

#include <algorithm>

#include "problem/multiclass.hpp"

namespace polymargin {

/// Absolute margins: a score is held against a number of its own, not against another score, and the scores of an
/// example sum to zero (Dogan, Glasmachers & Igel, JMLR 17, 2016). With sigma_m = 1 for the own class and -1 for the
/// others, and targets t_m, the margin violation of a class is `max(0, t_m - sigma_m s_m)`.
///
/// `sum_m w_m = 0` makes P = I - 11'/k of the kernel: with multipliers `a_m` of the margins and `B_m = sigma_m a_m`,
///
///     w_m = sum_i (P B_i)_m phi(x_i),    S = K B P,    o_m = -sigma_m t_m,
///
/// for `B_m + mu` minimises the Lagrangian for any mu, and the constraint asks for the one without a mean. Rows of
/// coefficients are those of the multipliers, so that a feasible set is `0 <= a_m <= u_m C` or `sum a <= C`.

/// Of each coefficient `a_m`.
struct AbsoluteLimits {
    double own, others;
};

/// The exact step for a box of absolute margins: with `z_m = B_m - g_m / curvature`,
///
///     a_m = clip(sigma_m (z_m + tau), 0, u_m)   at the tau with   sum_m sigma_m a_m = sum_m B_m + k tau,
///
/// for tau is the mean of the change, which P takes away. The left side grows with slope `#free <= k`: one root, or an
/// interval of them where all are free and the step costs and gains nothing along it. False without a minimum.
[[nodiscard]] bool absolute_box_step(std::span<const double> gradient, double curvature, Index label,
                                     const AbsoluteLimits& limits, std::span<double> beta);

/// The same for `a >= 0, sum a <= most`; `a_y = 0` unless the own class `counts`. Where the sum is at its limit,
///
///     a_m = max(0, -z_m - lambda),   a_y = max(0, z_y + 2 tau - lambda),   k tau = 2 a_y - most - sum_m B_m,
///
/// lambda being tau plus what the limit costs; `a_y - z_y - 2 tau + lambda` grows with lambda: one root.
[[nodiscard]] bool absolute_sum_step(std::span<const double> gradient, double curvature, Index label, bool counts,
                                     double most, std::span<double> beta);

/// A sum of hinges with absolute margins, `u_y max(0, t - s_y) + u sum_{m != y} max(0, 1 + s_m)`: Lee, Lin and Wahba's
/// loss (u_y = 0, u = 1), the total sum (1, 1, t = 1), the own hinge alone (1, 0, t = 1), and the reinforced ones of
/// Liu and Yuan (1 - u, u, t = k - 1).
///
/// Dual: `0 <= B_y <= u_y C` and `-u C <= B_m <= 0`.
class AbsoluteSum {
  public:
    static constexpr bool kRowsSumToZero = false;
    static constexpr bool kScoresSumToZero = true;
    static constexpr bool kConjugate = false;

    explicit AbsoluteSum(double own = 0.0, double others = 1.0, double own_target = 1.0)
        : own_(own), others_(others), own_target_(own_target) {}

    [[nodiscard]] OwnOffset offsets(Index label) const { return {.label = label, .own = -own_target_, .others = 1.0}; }
    [[nodiscard]] double loss(std::span<const double> scores, Index label) const;
    /// The loss of an example whose class m is short of its margin by `hinge(m)`.
    template <class Hinge>
    [[nodiscard]] double loss_of(Index classes, Index label, Hinge&& hinge) const {
        double sum = own_ * std::max(0.0, hinge(label));
        for (Index m = 0; m < classes; ++m) {
            if (m != label) sum += others_ * std::max(0.0, hinge(m));
        }
        return sum;
    }
    /// Whether the margin of a class, of the example or another, is one of those that count.
    [[nodiscard]] bool has_hinge(bool own) const { return (own ? own_ : others_) > 0.0; }
    [[nodiscard]] double margin(std::span<const double> scores, Index label) const;
    [[nodiscard]] bool may_grow(double b, bool own, double cost_bound) const {
        return b < (own ? times(own_, cost_bound) : 0.0);
    }
    [[nodiscard]] bool may_fall(double b, bool own, double cost_bound) const {
        return b > (own ? 0.0 : -times(others_, cost_bound));
    }
    [[nodiscard]] double violation(const RowExtremes& row) const {
        return row.highest > -row.lowest ? row.highest : -row.lowest;
    }
    [[nodiscard]] bool step(std::span<const double> gradient, double curvature, const Example& example,
                            std::span<double> beta) const {
        return absolute_box_step(gradient, curvature, example.label, limits(example), beta);
    }
    [[nodiscard]] RowLimits row_limits(double cost_bound) const {
        return {.largest = times(others_, cost_bound), .own = times(own_, cost_bound)};
    }
    void make_feasible(const Example& example, std::span<double> beta) const;
    [[nodiscard]] bool at_vertex(std::span<const double> beta, const Example& example) const;
    [[nodiscard]] std::vector<Direction> directions(std::span<const double> beta, const Example& example) const;
    [[nodiscard]] double max_step(std::span<const double> beta, std::span<const double> change,
                                  const Example& example) const;

  private:
    /// No hinge has no coefficient, however large C is.
    [[nodiscard]] static double times(double share, double cost_bound) {
        return share > 0.0 ? share * cost_bound : 0.0;
    }
    [[nodiscard]] AbsoluteLimits limits(const Example& example) const {
        return {times(own_, example.cost_bound), times(others_, example.cost_bound)};
    }

    double own_, others_, own_target_;
};

/// The largest hinge with an absolute margin, `max_m max(0, 1 - sigma_m s_m)`, over the wrong classes or, with the own
/// one, all of them.
///
/// Dual: `a >= 0`, `sum a <= C`, and without the own class `a_y = 0`. A row whose sum is at its limit is optimal if
/// there is a multiplier nu of it, at least 0, with which the gradients `h_m = sigma_m g_m` of a are: `h_m + nu = 0`
/// or, where `a_m = 0`, at least 0.
class AbsoluteMaximum {
  public:
    static constexpr bool kRowsSumToZero = false;
    static constexpr bool kScoresSumToZero = true;
    static constexpr bool kConjugate = false;
    static constexpr bool kSharedLimit = true;

    explicit AbsoluteMaximum(bool own = false) : own_(own) {}

    [[nodiscard]] OwnOffset offsets(Index label) const { return {.label = label, .own = -1.0, .others = 1.0}; }
    [[nodiscard]] double loss(std::span<const double> scores, Index label) const;
    /// The loss of an example whose class m is short of its margin by `hinge(m)`.
    template <class Hinge>
    [[nodiscard]] double loss_of(Index classes, Index label, Hinge&& hinge) const {
        double largest = own_ ? std::max(0.0, hinge(label)) : 0.0;
        for (Index m = 0; m < classes; ++m) {
            if (m != label) largest = std::max(largest, hinge(m));
        }
        return largest;
    }
    /// Whether the margin of a class, of the example or another, is one of those that count.
    [[nodiscard]] bool has_hinge(bool own) const { return own_ || !own; }
    [[nodiscard]] double margin(std::span<const double> scores, Index label) const;
    [[nodiscard]] bool may_grow(double b, bool own, double) const { return own ? own_ : b < 0.0; }
    [[nodiscard]] bool may_fall(double b, bool own, double) const { return !own || b > 0.0; }
    [[nodiscard]] double violation(const RowExtremes& row) const {
        const double grow = is_full(row.total, row.cost_bound) ? row.highest - row.lowest : -row.lowest;
        return row.highest > grow ? row.highest : grow;
    }
    /// nu for these gradients: the one with which the row violates least.
    [[nodiscard]] double multiplier(std::span<const double> gradient, std::span<const double> beta,
                                    const Example& example) const;
    [[nodiscard]] bool step(std::span<const double> gradient, double curvature, const Example& example,
                            std::span<double> beta) const {
        return absolute_sum_step(gradient, curvature, example.label, own_, example.cost_bound, beta);
    }
    [[nodiscard]] RowLimits row_limits(double cost_bound) const {
        return {.most = cost_bound, .own = own_ ? std::numeric_limits<double>::infinity() : 0.0};
    }
    void make_feasible(const Example& example, std::span<double> beta) const;
    [[nodiscard]] bool at_vertex(std::span<const double> beta, const Example& example) const;
    [[nodiscard]] std::vector<Direction> directions(std::span<const double> beta, const Example& example) const;
    [[nodiscard]] double max_step(std::span<const double> beta, std::span<const double> change,
                                  const Example& example) const;

  private:
    static constexpr double kFull = 1.0 - 1e-12;  ///< sums that are less than that below their limit are at it
    [[nodiscard]] static bool is_full(double total, double cost_bound) { return total >= kFull * cost_bound; }

    bool own_;
};

}  // namespace polymargin
