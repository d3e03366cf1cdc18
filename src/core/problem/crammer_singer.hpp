#pragma once

#include "problem/multiclass.hpp"

namespace polymargin {

/// Crammer and Singer's loss, H&L (16): `max_m (s_m + [m != y]) - s_y`.
///
/// Dual, H&L (17): `B_m <= 0` for the wrong classes, `B_y <= C`. The violation of a row is H&L (21): the highest
/// gradient minus the lowest among the variables that may grow.
class CrammerSinger {
  public:
    static constexpr bool kCoupled = true;

    [[nodiscard]] double offset(bool own) const { return own ? -1.0 : 0.0; }
    [[nodiscard]] double loss(std::span<const double> scores, Index label) const;
    [[nodiscard]] double margin(std::span<const double> scores, Index label) const {
        return smallest_margin(scores, label, 1.0);
    }
    [[nodiscard]] bool may_grow(double b, bool own, double bound) const { return b < (own ? bound : 0.0); }
    [[nodiscard]] bool may_fall(double, bool, double) const { return true; }
    void violations(const ExampleStrip& strip, double* out) const;
    [[nodiscard]] bool step(std::span<const double> gradient, double curvature, const Example& example,
                            std::span<double> beta) const {
        return exact_step(gradient, curvature, example.label, {.most = example.bound}, beta);
    }
    void make_feasible(const Example& example, std::span<double> beta) const;
    [[nodiscard]] bool at_rest(std::span<const double> beta, const Example& example) const;
    [[nodiscard]] std::vector<Exchange> exchanges(std::span<const double> beta, const Example& example) const;
    [[nodiscard]] double room(std::span<const double> beta, std::span<const double> change,
                              const Example& example) const;
};

}  // namespace polymargin
