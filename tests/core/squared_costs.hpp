#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "check.hpp"
#include "fixtures.hpp"
#include "plain_losses.hpp"
#include "problem/multiclass.hpp"

/// A loss that the core does not know, and that is unlike all it knows: absolute margins, squared, with costs between
/// classes.
///
///     1/2 sum_m max(0, c_ym - sigma_m s_m)^2,   sigma_m = 1 for the own class and -1 for all others
///
/// Dual rows do not sum to zero: `sigma_m B_m >= 0` without a bound, the conjugate term is `|B|^2 / 2C` and the offsets
/// are `-sigma_m c_ym`, a table.
namespace foreign {

using polymargin::Direction;
using polymargin::Example;
using polymargin::Index;
using polymargin::kNoClass;
using polymargin::RowExtremes;

class SquaredCosts {
  public:
    static constexpr bool kRowsSumToZero = false;
    static constexpr bool kConjugate = true;

    /// `costs` is classes x classes, the class of the example first.
    SquaredCosts(Index classes, const std::vector<double>& costs) : classes_(classes), table_(costs) {
        for (Index y = 0; y < classes; ++y) table_[y * classes + y] *= -1.0;
    }

    [[nodiscard]] std::span<const double> offsets(Index label) const {
        return std::span(table_).subspan(label * classes_, classes_);
    }
    [[nodiscard]] double loss(std::span<const double> scores, Index label) const {
        double sum = 0.0;
        for (Index m = 0; m < classes_; ++m) {
            const double short_by = std::max(0.0, sigma(m == label) * -(offsets(label)[m] + scores[m]));
            sum += short_by * short_by / 2;
        }
        return sum;
    }
    [[nodiscard]] double margin(std::span<const double> scores, Index label) const {
        double smallest = std::numeric_limits<double>::infinity();
        for (Index m = 0; m < classes_; ++m) smallest = std::min(smallest, -scores[m] / offsets(label)[m]);
        return smallest;
    }
    [[nodiscard]] bool may_grow(double b, bool own, double cost_bound) const {
        return cost_bound > 0.0 && (own || b < 0.0);
    }
    [[nodiscard]] bool may_fall(double b, bool own, double cost_bound) const {
        return cost_bound > 0.0 && (!own || b > 0.0);
    }
    [[nodiscard]] double violation(const RowExtremes& row) const { return std::max(row.highest, -row.lowest); }
    [[nodiscard]] bool step(std::span<const double> gradient, double curvature, const Example& example,
                            std::span<double> beta) const {
        if (!(example.cost_bound > 0.0)) {
            std::ranges::fill(beta, 0.0);
            return true;
        }
        const double whole = curvature + 1.0 / example.cost_bound;
        for (Index m = 0; m < std::ssize(beta); ++m) {
            const double s = sigma(m == example.label);
            if (!(whole > 0.0) && s * gradient[m] < 0.0) return false;
            beta[m] = s * std::max(0.0, s * (beta[m] - (gradient[m] == 0.0 ? 0.0 : gradient[m] / whole)));
        }
        return true;
    }
    void make_feasible(const Example& example, std::span<double> beta) const {
        for (Index m = 0; m < std::ssize(beta); ++m) {
            const double s = sigma(m == example.label);
            beta[m] = example.cost_bound > 0.0 ? s * std::max(0.0, s * beta[m]) : 0.0;
        }
    }
    [[nodiscard]] bool at_vertex(std::span<const double> beta, const Example&) const {
        return std::ranges::all_of(beta, [](double b) { return b == 0.0; });
    }
    [[nodiscard]] std::vector<Direction> directions(std::span<const double> beta, const Example& example) const {
        std::vector<Direction> free;
        for (Index m = 0; m < std::ssize(beta); ++m) {
            if (beta[m] == 0.0) continue;
            free.push_back(m == example.label ? Direction{m, kNoClass} : Direction{kNoClass, m});
        }
        return free;
    }
    [[nodiscard]] double max_step(std::span<const double> beta, std::span<const double> change,
                                  const Example& example) const {
        double share = std::numeric_limits<double>::infinity();
        for (Index m = 0; m < std::ssize(beta); ++m) {
            const double s = sigma(m == example.label);
            if (s * change[m] < 0.0) share = std::min(share, beta[m] / -change[m]);
        }
        return share;
    }
    [[nodiscard]] double conjugate(std::span<const double> beta, const Example& example) const {
        double square = 0.0;
        for (const double b : beta) square += b * b;
        return square == 0.0 ? 0.0 : square / (2.0 * example.cost_bound);
    }
    void conjugate_gradient(std::span<const double> beta, const Example& example, std::span<double> out) const {
        for (std::size_t m = 0; m < beta.size(); ++m) out[m] = beta[m] == 0.0 ? 0.0 : beta[m] / example.cost_bound;
    }

    static double sigma(bool own) { return own ? 1.0 : -1.0; }

  private:
    Index classes_;
    std::vector<double> table_;  // offsets
};

/// Costs from 0.5 to 2.
inline std::vector<double> random_costs(Index classes, std::uint64_t seed) {
    fixtures::Random random(seed);
    std::vector<double> costs(classes * classes);
    for (double& c : costs) c = random.uniform(0.5, 2.0);
    return costs;
}

/// What a machine is worth by the definition of the loss, in plain loops that share nothing with the class.
struct Evaluation {
    double violation = 0.0, primal = 0.0, dual = 0.0;
    double size = 0.0;         ///< sum |B|
    double bound_total = 0.0;  ///< sum C
};

inline Evaluation evaluate(std::span<const double> costs, const fixtures::Matrix& gram, std::span<const Index> labels,
                           std::span<const double> cost_bounds, const plain::Machine& machine) {
    const Index k = machine.classes;
    Evaluation w;
    double square = 0.0, losses = 0.0, smallest = plain::kInfinity;
    for (Index i = 0; i < std::ssize(labels); ++i) {
        std::vector<double> scores = plain::unshifted_scores(gram, machine, i);
        for (Index m = 0; m < k; ++m) {
            const double sign = m == labels[i] ? 1.0 : -1.0, cost = costs[labels[i] * k + m];
            const double a = sign * machine.row(i)[m];
            CHECK(a >= 0.0 && (a == 0.0 || cost_bounds[i] > 0.0));
            square += machine.row(i)[m] * scores[m];
            const double bend = a == 0.0 ? 0.0 : a / cost_bounds[i];
            w.dual += a * cost - a * bend / 2;
            w.size += a;
            if (!machine.shift.empty()) scores[m] += machine.shift[m];
            // The gradient of the dual in a; a may grow, and fall if it is not zero.
            const double gradient = sign * scores[m] - cost + bend;
            if (cost_bounds[i] > 0.0) w.violation = std::max({w.violation, -gradient, a > 0.0 ? gradient : 0.0});
            const double short_by = std::max(0.0, cost - sign * scores[m]);
            if (std::isinf(cost_bounds[i])) {
                smallest = std::min(smallest, sign * scores[m] / cost);
            } else {
                losses += cost_bounds[i] * short_by * short_by / 2;
            }
        }
        if (std::isfinite(cost_bounds[i])) w.bound_total += cost_bounds[i];
    }
    w.dual -= square / 2;
    w.primal = square / 2 + losses;
    if (std::isfinite(smallest)) w.primal = smallest > 0.0 ? square / 2 / (smallest * smallest) : plain::kInfinity;
    return w;
}

/// The largest gap that a violation allows: every coefficient adds at most `v |B| + C v^2 / 2`.
inline double largest_gap(const Evaluation& w, double violation, Index classes) {
    return violation * w.size + static_cast<double>(classes) * w.bound_total * violation * violation / 2;
}

}  // namespace foreign
