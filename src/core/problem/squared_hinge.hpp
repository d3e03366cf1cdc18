#pragma once

#include <algorithm>
#include <limits>

#include "problem/binary.hpp"
#include "problem/crammer_singer.hpp"
#include "problem/one_vs_rest.hpp"
#include "problem/weston_watkins.hpp"

namespace polymargin {

/// What a loss made of squared hinges shares with that of plain ones: offsets, margins and the shape of the feasible
/// set. A cost of C_i is no limit any more, but a conjugate term of curvature `1 / 2C_i`; one of zero still forbids all
/// coefficients. There is no 1/2 in front of a square: the primal has `C_i xi_i^2`.
template <class Hinge>
class SquaredHinge {
  public:
    static constexpr bool kRowsSumToZero = Hinge::kRowsSumToZero;
    static constexpr bool kConjugate = true;

    explicit SquaredHinge(const Hinge& hinge) : hinge_(hinge) {}

    [[nodiscard]] OwnOffset offsets(Index label) const { return hinge_.offsets(label); }
    [[nodiscard]] bool may_grow(double b, bool own, double cost) const {
        return hinge_.may_grow(b, own, squared_limit(cost));
    }
    [[nodiscard]] bool may_fall(double b, bool own, double cost) const {
        return hinge_.may_fall(b, own, squared_limit(cost));
    }
    [[nodiscard]] double violation(const RowExtremes& row) const { return hinge_.violation(row); }
    void make_feasible(const Example& example, std::span<double> beta) const {
        hinge_.make_feasible(limited(example), beta);
    }
    [[nodiscard]] bool at_vertex(std::span<const double> beta, const Example& example) const {
        return hinge_.at_vertex(beta, limited(example));
    }

  protected:
    [[nodiscard]] static Example limited(const Example& example) {
        return {example.label, squared_limit(example.cost_bound)};
    }
    Hinge hinge_;
};

/// The same of the classic joint losses, of which kernel machines ask more.
template <class Hinge>
class SquaredJointHinge : public SquaredHinge<Hinge> {
  public:
    using SquaredHinge<Hinge>::SquaredHinge;

    [[nodiscard]] double margin(std::span<const double> scores, Index label) const {
        return this->hinge_.margin(scores, label);
    }
    [[nodiscard]] std::vector<Direction> directions(std::span<const double> beta, const Example& example) const {
        return this->hinge_.directions(beta, this->limited(example));
    }
    [[nodiscard]] double max_step(std::span<const double> beta, std::span<const double> change,
                                  const Example& example) const {
        return this->hinge_.max_step(beta, change, this->limited(example));
    }
};

/// `sum_{m != y} max(0, M - (s_y - s_m))^2`. Dual: `a_m = -B_m >= 0` for the wrong classes, `B_y = sum a`, and the
/// conjugate term `sum_m a_m^2 / 4C`.
class SquaredWestonWatkins : public SquaredJointHinge<WestonWatkins> {
  public:
    explicit SquaredWestonWatkins(double margin = 2.0) : SquaredJointHinge(WestonWatkins(margin)), margin_(margin) {}

    [[nodiscard]] double loss(std::span<const double> scores, Index label) const;
    [[nodiscard]] bool step(std::span<const double> gradient, double curvature, const Example& example,
                            std::span<double> beta) const;
    [[nodiscard]] double conjugate(std::span<const double> beta, const Example& example) const;
    void conjugate_gradient(std::span<const double> beta, const Example& example, std::span<double> out) const;

  private:
    double margin_;
};

/// `max(0, 1 + max_{m != y} s_m - s_y)^2`. Dual: `a_m = -B_m >= 0` for the wrong classes, `B_y = sum a`, and the
/// conjugate term `B_y^2 / 4C`.
class SquaredCrammerSinger : public SquaredJointHinge<CrammerSinger> {
  public:
    SquaredCrammerSinger() : SquaredJointHinge(CrammerSinger()) {}

    [[nodiscard]] double loss(std::span<const double> scores, Index label) const {
        const double hinge = hinge_.loss(scores, label);
        return hinge * hinge;
    }
    [[nodiscard]] bool step(std::span<const double> gradient, double curvature, const Example& example,
                            std::span<double> beta) const;
    [[nodiscard]] double conjugate(std::span<const double> beta, const Example& example) const;
    void conjugate_gradient(std::span<const double> beta, const Example& example, std::span<double> out) const;
};

/// `sum_m max(0, 1 - (+-1) s_m)^2`, plus for the class of the example and minus for all others: binary machines side by
/// side. Dual: `B_y >= 0` and `B_m <= 0` for the others, and the conjugate term `sum_m B_m^2 / 4C`.
class SquaredOneVsRest : public SquaredHinge<OneVsRest> {
  public:
    SquaredOneVsRest() : SquaredHinge(OneVsRest()) {}

    [[nodiscard]] double loss(std::span<const double> scores, Index label) const;
    [[nodiscard]] bool step(std::span<const double> gradient, double curvature, const Example& example,
                            std::span<double> beta) const;
    [[nodiscard]] double conjugate(std::span<const double> beta, const Example& example) const;
    void conjugate_gradient(std::span<const double> beta, const Example& example, std::span<double> out) const;
    /// The number b for which `sum_i C_i max(0, 1 - (+-1) (s_i + b))^2` is least, for the scores of one class: the
    /// middle one if there are many. The slope is linear between the places `(+-1) - s_i`: O(n log n).
    [[nodiscard]] double best_shift(std::span<const double> scores, std::span<const Index> labels,
                                    std::span<const double> costs, Index m) const;
};

}  // namespace polymargin
