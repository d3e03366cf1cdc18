#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "plain_losses.hpp"

/// Squared hinges by their definitions, in plain loops that share nothing with the core.
namespace plain {

/// `sum_h max(0, h)^2`, or the square of the largest, of hinges against the wrong classes or, one against all, of each
/// class for itself.
struct Squared {
    double margin = 1.0;
    bool largest = false, one_vs_rest = false;

    /// By how much each class falls short: -inf where there is no hinge.
    [[nodiscard]] std::vector<double> shortfalls(std::span<const double> scores, Index label) const {
        std::vector<double> short_by;
        for (Index m = 0; m < std::ssize(scores); ++m) {
            const double alone = 1.0 - OneVsRest::sign(m, label) * scores[m];
            const double against = m == label ? -kInfinity : margin - (scores[label] - scores[m]);
            short_by.push_back(one_vs_rest ? alone : against);
        }
        return short_by;
    }
    [[nodiscard]] double loss(std::span<const double> scores, Index label) const {
        double sum = 0.0, most = 0.0;
        for (const double h : shortfalls(scores, label)) {
            sum += h > 0.0 ? h * h : 0.0;
            most = std::max(most, h);
        }
        return largest ? most * most : sum;
    }
    /// The multiplier of each hinge.
    [[nodiscard]] std::vector<double> multipliers(std::span<const double> beta, Index label) const {
        std::vector<double> a;
        for (Index m = 0; m < std::ssize(beta); ++m) {
            a.push_back(one_vs_rest ? OneVsRest::sign(m, label) * beta[m] : m == label ? 0.0 : -beta[m]);
        }
        return a;
    }
    [[nodiscard]] double infeasibility(std::span<const double> beta, Index label, double) const {
        double worst = 0.0, sum = 0.0, size = 0.0;
        for (const double a : multipliers(beta, label)) worst = std::max(worst, -a);
        for (const double b : beta) {
            sum += b;
            size += std::abs(b);
        }
        const bool balanced = std::abs(sum) <= 1e-14 * static_cast<double>(beta.size()) * size;
        return one_vs_rest || balanced ? worst : kInfinity;
    }
};

/// What a machine is worth, from the kernel alone.
inline Evaluation evaluate(const Squared& loss, const fixtures::Matrix& gram, std::span<const Index> labels,
                           std::span<const double> cost_bounds, const Machine& machine) {
    Evaluation w{.violation = 0.0, .primal = 0.0, .dual = 0.0, .bound_total = 0.0};
    for (Index i = 0; i < std::ssize(labels); ++i) {
        const double C = cost_bounds[i];
        CHECK(loss.infeasibility(machine.row(i), labels[i], C) == 0.0);
        std::vector<double> scores = unshifted_scores(gram, machine, i);
        double square = 0.0, sum = 0.0, squares = 0.0;
        for (Index m = 0; m < machine.classes; ++m) {
            square += machine.row(i)[m] * scores[m];
            if (!machine.shift.empty()) scores[m] += machine.shift[m];
        }
        for (const double a : loss.multipliers(machine.row(i), labels[i])) {
            sum += a;
            squares += a * a;
        }
        w.primal += square / 2 + C * loss.loss(scores, labels[i]);
        w.dual += loss.margin * sum - (loss.largest ? sum * sum : squares) / (4.0 * C) - square / 2;
        w.bound_total += C;
    }
    return w;
}

}  // namespace plain
