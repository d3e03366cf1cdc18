#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "check.hpp"
#include "fixtures.hpp"
#include "plain_losses.hpp"
#include "problem/losses.hpp"

/// Machines with absolute margins and scores that sum to zero by their definitions, in plain loops that share nothing
/// with the core.
namespace plain {

/// Dual rows have `0 <= sigma_m B_m <= u_m C` and `sum |B_m| <= most C`; the primal loss is the largest
/// `sum_m a_m max(0, t_m - sigma_m s_m)` over those with C = 1.
struct Absolute {
    double own, others, most, own_target;
    polymargin::AnyLoss core = {};

    static double sigma(Index m, Index label) { return m == label ? 1.0 : -1.0; }
    static double times(double factor, double C) { return factor == 0.0 ? 0.0 : factor * C; }
    [[nodiscard]] double limit(Index m, Index label, double C) const { return times(m == label ? own : others, C); }
    [[nodiscard]] double target(Index m, Index label) const { return m == label ? own_target : 1.0; }

    [[nodiscard]] double loss(std::span<const double> scores, Index label) const {
        double sum = 0.0, largest = 0.0;
        for (Index m = 0; m < std::ssize(scores); ++m) {
            const double share = m == label ? own : others;
            if (share == 0.0) continue;
            const double hinge = std::max(0.0, target(m, label) - sigma(m, label) * scores[m]);
            if (hinge > 0.0 && std::isinf(most)) sum += share * hinge;
            largest = std::max(largest, hinge);
        }
        return std::isinf(most) ? sum : most * largest;
    }
    [[nodiscard]] double smallest_margin(std::span<const double> scores, Index label) const {
        double smallest = kInfinity;
        for (Index m = 0; m < std::ssize(scores); ++m) {
            if ((m == label ? own : others) == 0.0) continue;
            smallest = std::min(smallest, sigma(m, label) * scores[m] / target(m, label));
        }
        return smallest;
    }
    [[nodiscard]] double infeasibility(std::span<const double> beta, Index label, double C) const {
        double worst = 0.0, sum = 0.0;
        for (Index m = 0; m < std::ssize(beta); ++m) {
            const double a = sigma(m, label) * beta[m];
            worst = std::max({worst, -a, a - limit(m, label, C)});
            sum += a;
        }
        return std::max(worst, sum - times(most, C) * (1 + 1e-13));
    }
    [[nodiscard]] bool full(std::span<const double> beta, double C) const {
        double sum = 0.0;
        for (const double b : beta) sum += std::abs(b);
        return sum >= times(most, C) * (1 - 1e-12);
    }
    /// What one coefficient can gain alone, or by what another gives.
    [[nodiscard]] double violation(std::span<const double> gradient, std::span<const double> beta, Index label,
                                   double C) const {
        double worst = 0.0;
        const bool at_most = full(beta, C);
        for (Index m = 0; m < std::ssize(beta); ++m) {
            const double h = sigma(m, label) * gradient[m];
            if (beta[m] != 0.0) worst = std::max(worst, h);
            if (!(std::abs(beta[m]) < limit(m, label, C))) continue;
            if (!at_most) worst = std::max(worst, -h);
            for (Index l = 0; l < std::ssize(beta) && at_most; ++l) {
                if (l != m && beta[l] != 0.0) worst = std::max(worst, sigma(l, label) * gradient[l] - h);
            }
        }
        return worst;
    }
};

/// All six of the literature, the reinforced one for k classes.
inline std::vector<Absolute> absolute_losses(Index k) {
    using polymargin::AbsoluteMaximum, polymargin::AbsoluteSum;
    const auto target = static_cast<double>(k - 1);
    return {
        {0.0, 1.0, kInfinity, 1.0, AbsoluteSum()},         {1.0, 1.0, kInfinity, 1.0, AbsoluteSum(1.0, 1.0)},
        {1.0, 0.0, kInfinity, 1.0, AbsoluteSum(1.0, 0.0)}, {0.6, 0.4, kInfinity, target, AbsoluteSum(0.6, 0.4, target)},
        {0.0, kInfinity, 1.0, 1.0, AbsoluteMaximum()},     {kInfinity, kInfinity, 1.0, 1.0, AbsoluteMaximum(true)},
    };
}

/// B P: what reaches scores.
inline Machine without_means(Machine machine) {
    for (std::size_t at = 0; at < machine.rows.size(); at += machine.classes) {
        double mean = 0.0;
        for (Index m = 0; m < machine.classes; ++m) mean += machine.rows[at + m];
        for (Index m = 0; m < machine.classes; ++m) machine.rows[at + m] -= mean / static_cast<double>(machine.classes);
    }
    return machine;
}

/// What a machine is worth, from the kernel alone. Checks that its rows are feasible.
inline Evaluation evaluate(const Absolute& loss, const fixtures::Matrix& gram, std::span<const Index> labels,
                           std::span<const double> cost_bounds, const Machine& machine) {
    const Index k = machine.classes;
    const Machine centred = without_means(machine);
    Evaluation w{.violation = 0.0, .primal = 0.0, .dual = 0.0, .bound_total = 0.0};
    double square = 0.0, losses = 0.0, margin = kInfinity, size = 1.0;
    std::vector<double> gradient(k);
    for (Index i = 0; i < std::ssize(labels); ++i) {
        const double C = cost_bounds[i];
        CHECK(loss.infeasibility(machine.row(i), labels[i], C) <= 1e-12 * (std::isinf(C) ? 1.0 : C));
        std::vector<double> scores = unshifted_scores(gram, centred, i);
        double sum = 0.0;
        for (Index m = 0; m < k; ++m) {
            const double b = machine.row(i)[m], offset = -Absolute::sigma(m, labels[i]) * loss.target(m, labels[i]);
            square += b * scores[m];
            w.dual -= b * offset;
            size += std::abs(b);
            if (!machine.shift.empty()) scores[m] += machine.shift[m];
            gradient[m] = scores[m] + offset;
            sum += scores[m];
        }
        CHECK_CLOSE(sum, 0.0, 1e-9 * size);
        w.violation = std::max(w.violation, loss.violation(gradient, machine.row(i), labels[i], C));
        if (std::isinf(C)) {
            margin = std::min(margin, loss.smallest_margin(scores, labels[i]));
        } else {
            losses += C * loss.loss(scores, labels[i]);
            w.bound_total += C;
        }
    }
    w.dual -= square / 2;
    w.primal = square / 2 + losses;
    if (std::isfinite(margin)) w.primal = margin > 0.0 ? square / 2 / (margin * margin) : kInfinity;
    return w;
}

}  // namespace plain
