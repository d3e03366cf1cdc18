#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "check.hpp"
#include "fixtures.hpp"

/// All-together machines by their definitions, in plain loops that share nothing with the core.
namespace plain {

using polymargin::Index;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A loss whose dual rows have `a_m = -B_m` in [0, largest C] for the wrong classes and `B_y = sum a <= most C`. The
/// primal loss is the largest `sum_m a_m (margin + s_m - s_y)` over those a with C = 1.
struct Loss {
    double margin, largest, most;

    /// A limit times C, where infinitely often nothing is no limit either.
    static double times(double factor, double C) { return std::isinf(factor) ? factor : factor * C; }

    [[nodiscard]] double loss(std::span<const double> scores, Index label) const {
        std::vector<double> shortfalls;
        for (Index m = 0; m < std::ssize(scores); ++m) {
            if (m != label) shortfalls.push_back(margin - (scores[label] - scores[m]));
        }
        std::ranges::sort(shortfalls, std::greater());
        double sum = 0.0, left = most;
        for (const double s : shortfalls) {
            const double share = std::min(largest, left);
            if (s <= 0.0 || share == 0.0) break;
            sum += share * s;
            left -= share;
        }
        return sum;
    }

    /// How far a row is from the feasible set; rows that sum to zero up to rounding count as such.
    [[nodiscard]] double infeasibility(std::span<const double> beta, Index label, double C) const {
        double worst = 0.0, sum = 0.0, size = 0.0;
        for (Index m = 0; m < std::ssize(beta); ++m) {
            sum += beta[m];
            size += std::abs(beta[m]);
            if (m != label) worst = std::max({worst, beta[m], -beta[m] - times(largest, C)});
        }
        worst = std::max({worst, -beta[label], beta[label] - times(most, C)});
        return std::abs(sum) <= 1e-14 * static_cast<double>(beta.size()) * size ? worst : kInfinity;
    }

    /// What moving a little from one class to another can gain. Without a limit of the sum, moves between wrong classes
    /// are two moves.
    [[nodiscard]] double violation(std::span<const double> gradient, std::span<const double> beta, Index label,
                                   double C) const {
        double worst = 0.0;
        for (Index from = 0; from < std::ssize(beta); ++from) {
            for (Index to = 0; to < std::ssize(beta); ++to) {
                if (std::isinf(most) && from != label && to != label) continue;
                const bool falls = from == label || beta[from] > -times(largest, C);
                const bool grows = to == label ? beta[label] < times(most, C) : beta[to] < 0.0;
                if (from != to && falls && grows) worst = std::max(worst, gradient[from] - gradient[to]);
            }
        }
        return worst;
    }

    [[nodiscard]] double smallest_margin(std::span<const double> scores, Index label) const {
        double smallest = kInfinity;
        for (Index m = 0; m < std::ssize(scores); ++m) {
            if (m != label) smallest = std::min(smallest, (scores[label] - scores[m]) / margin);
        }
        return smallest;
    }
};

inline Loss weston_watkins(double margin = 2.0) {
    return {margin, 1.0, kInfinity};
}
inline Loss crammer_singer() {
    return {1.0, kInfinity, 1.0};
}

/// One against all: each class has a binary machine of its own, and its coefficients have the sign of the example
/// there. The members are those of `Loss`.
struct OneVsRest {
    static double sign(Index m, Index label) { return m == label ? 1.0 : -1.0; }

    [[nodiscard]] double loss(std::span<const double> scores, Index label) const {
        double sum = 0.0;
        for (Index m = 0; m < std::ssize(scores); ++m) sum += std::max(0.0, 1.0 - sign(m, label) * scores[m]);
        return sum;
    }
    [[nodiscard]] double infeasibility(std::span<const double> beta, Index label, double C) const {
        double worst = 0.0;
        for (Index m = 0; m < std::ssize(beta); ++m) {
            const double a = sign(m, label) * beta[m];
            worst = std::max({worst, -a, a - C});
        }
        return worst;
    }
    [[nodiscard]] double violation(std::span<const double> gradient, std::span<const double> beta, Index label,
                                   double C) const {
        double worst = 0.0;
        for (Index m = 0; m < std::ssize(beta); ++m) {
            const double a = sign(m, label) * beta[m], g = sign(m, label) * gradient[m];
            if (a < C) worst = std::max(worst, -g);
            if (a > 0.0) worst = std::max(worst, g);
        }
        return worst;
    }
};

/// A machine as it came out of training: a row of coefficients for each example, and the scores
/// `s_im = sum_j (K_ij + weight) B_jm + shift_m`.
struct Machine {
    Index classes = 0;
    std::vector<double> rows;
    double weight = 0.0;
    std::vector<double> shift;  // empty: zero

    [[nodiscard]] std::span<const double> row(Index i) const { return std::span(rows).subspan(i * classes, classes); }
    [[nodiscard]] std::vector<double> column_sums() const {
        std::vector<double> sums(classes, 0.0);
        for (std::size_t at = 0; at < rows.size(); ++at) sums[at % classes] += rows[at];
        return sums;
    }
};

struct Evaluation {
    double violation, primal, dual, bound_total;
};

/// The scores of example i, without the shift.
inline std::vector<double> unshifted_scores(const fixtures::Matrix& gram, const Machine& machine, Index i) {
    std::vector<double> scores(machine.classes, 0.0);
    for (Index j = 0; j < gram.columns; ++j) {
        for (Index m = 0; m < machine.classes; ++m) {
            scores[m] += (gram.at(i, j) + machine.weight) * machine.row(j)[m];
        }
    }
    return scores;
}

/// What a machine is worth, from the kernel alone. Checks that its rows are feasible. With a free bias the dual
/// objective is a bound only if the column sums are zero.
inline Evaluation evaluate(const Loss& loss, const fixtures::Matrix& gram, std::span<const Index> labels,
                           std::span<const double> cost_bounds, const Machine& machine) {
    const Index k = machine.classes;
    CHECK(machine.rows.size() == labels.size() * static_cast<std::size_t>(k));
    Evaluation w{.violation = 0.0, .primal = 0.0, .dual = 0.0, .bound_total = 0.0};
    double square = 0.0, losses = 0.0, margin = kInfinity;
    std::vector<double> gradient(k);
    for (Index i = 0; i < std::ssize(labels); ++i) {
        CHECK(loss.infeasibility(machine.row(i), labels[i], cost_bounds[i]) == 0.0);
        std::vector<double> scores = unshifted_scores(gram, machine, i);
        for (Index m = 0; m < k; ++m) {
            square += machine.row(i)[m] * scores[m];
            if (!machine.shift.empty()) scores[m] += machine.shift[m];
            gradient[m] = scores[m] - (m == labels[i] ? loss.margin : 0.0);
        }
        w.violation = std::max(w.violation, loss.violation(gradient, machine.row(i), labels[i], cost_bounds[i]));
        w.dual += loss.margin * machine.row(i)[labels[i]];
        if (std::isinf(cost_bounds[i])) {
            margin = std::min(margin, loss.smallest_margin(scores, labels[i]));
        } else {
            losses += cost_bounds[i] * loss.loss(scores, labels[i]);
            w.bound_total += cost_bounds[i];
        }
    }
    w.dual -= square / 2;
    // A hard margin is met by scaling; there is nothing to scale in what is soft.
    if (std::isinf(margin)) {
        w.primal = square / 2 + losses;
    } else {
        w.primal = margin > 0.0 ? square / 2 / (margin * margin) + losses : kInfinity;
    }
    return w;
}

/// The same for one against all.
inline Evaluation evaluate(const OneVsRest& loss, const fixtures::Matrix& gram, std::span<const Index> labels,
                           std::span<const double> cost_bounds, const Machine& machine) {
    const Index k = machine.classes;
    CHECK(machine.rows.size() == labels.size() * static_cast<std::size_t>(k));
    Evaluation w{.violation = 0.0, .primal = 0.0, .dual = 0.0, .bound_total = 0.0};
    std::vector<double> gradient(k);
    for (Index i = 0; i < std::ssize(labels); ++i) {
        CHECK(loss.infeasibility(machine.row(i), labels[i], cost_bounds[i]) == 0.0);
        std::vector<double> scores = unshifted_scores(gram, machine, i);
        for (Index m = 0; m < k; ++m) {
            const double half_square = machine.row(i)[m] * scores[m] / 2;
            w.primal += half_square;
            w.dual += std::abs(machine.row(i)[m]) - half_square;
            if (!machine.shift.empty()) scores[m] += machine.shift[m];
            gradient[m] = scores[m] - OneVsRest::sign(m, labels[i]);
        }
        w.violation = std::max(w.violation, loss.violation(gradient, machine.row(i), labels[i], cost_bounds[i]));
        w.primal += cost_bounds[i] * loss.loss(scores, labels[i]);
        w.bound_total += cost_bounds[i];
    }
    return w;
}

}  // namespace plain
