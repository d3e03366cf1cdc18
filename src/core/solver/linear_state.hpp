#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "linear/source.hpp"
#include "problem/conjugate.hpp"
#include "solver/coefficients.hpp"
#include "solver/violations.hpp"
#include "support/workers.hpp"

namespace polymargin {

/// The data of a linear problem, as the caller has them.
struct LinearData {
    const DataView& data;
    std::span<const Index> order;  ///< example i is row `order[i]`
    std::span<const Index> labels;
    std::span<const double> cost_bounds;
    Index classes;
    /// What the solver subtracted from all examples, for a free bias, which makes up for it; empty: nothing.
    std::span<const double> centre = {};
};

/// What coefficients are worth: everything recomputed from the data, in double.
struct LinearState {
    std::vector<double> weights;  ///< features x classes
    std::vector<double> sums;     ///< of the coefficients of each class
    std::vector<double> bias;
    MulticlassObjectives objectives;
    double violation = 0.0;  ///< of the worst example

    [[nodiscard]] double gap() const { return objectives.gap(); }
};

/// Weights that are not those of the coefficients: a point of the primal beside one of the dual.
struct PrimalPoint {
    std::vector<double> weights;  ///< features x classes
    std::vector<double> bias;
};

/// w_m = sum_i B_im (x_i - centre), and the sums of the coefficients.
inline void sum_up(const LinearData& problem, const Coefficients& coefficients, LinearState& state,
                   const Workers& workers) {
    const Index k = problem.classes;
    state.weights.assign(features_of(problem.data) * k, 0.0);
    state.sums.assign(k, 0.0);
    const auto add = [&](Index i) {
        const auto row = coefficients.row(i);
        if (row.empty()) return;
        for (const auto& [m, b] : row) state.sums[m] += b;
        for_entries(problem.data, problem.order[i], [&](Index f, double v) {
            double* w = state.weights.data() + f * k;
            for (const auto& [m, b] : row) w[m] += v * b;
        });
    };
    // One after the other: sums of parts would depend on how they are cut.
    const Workers alone{.pool = nullptr, .control = workers.control, .thorough = true};
    alone.for_parts(coefficients.rows(), [&](Range range) {
        for (Index i = range.begin; i < range.end; ++i) add(i);
    });
    for (Index f = 0; f < std::ssize(problem.centre); ++f) {
        for (Index m = 0; m < k; ++m) state.weights[f * k + m] -= problem.centre[f] * state.sums[m];
    }
}

/// What some examples add to the objectives, and the violation of the worst.
struct PartObjectives {
    double losses = 0.0, linear = 0.0, conjugates = 0.0, violation = 0.0;
};

/// Coefficients within a millionth of a limit are at it: to balance the sums takes a little of each away, and off its
/// limit an example would violate by all of its loss.
template <RowLoss Loss>
void snap_to_limits(const Loss& loss, const Example& example, std::span<double> row) {
    constexpr double grown = 1.0 + 1e-6;
    for (double& b : row) b *= grown;
    loss.make_feasible(example, row);
}

/// By the scores of the weights and the bias of the state.
template <RowLoss Loss>
PartObjectives objectives_of_part(const Loss& loss, const LinearData& problem, const Coefficients& coefficients,
                                  const LinearState& state, Range range) {
    const Index k = problem.classes;
    PartObjectives part;
    std::vector<double> scores(k), gradient(k), row(k);
    for (Index i = range.begin; i < range.end; ++i) {
        const Example example{problem.labels[i], problem.cost_bounds[i]};
        std::ranges::copy(state.bias, scores.begin());
        for_entries(problem.data, problem.order[i], [&](Index f, double v) {
            const double* w = state.weights.data() + f * k;
            for (Index m = 0; m < k; ++m) scores[m] += v * w[m];
        });
        std::ranges::fill(row, 0.0);
        for (const auto& [m, b] : coefficients.row(i)) row[m] = b;
        const auto offsets = loss.offsets(example.label);
        for (Index m = 0; m < k; ++m) {
            gradient[m] = scores[m] + offsets[m];
            part.linear += row[m] * offsets[m];
        }
        for_conjugate_gradient(loss, row, example, [&](Index m, double q) { gradient[m] += q; });
        part.conjugates += conjugate_of(loss, row, example);
        part.losses += example.cost_bound * loss.loss(scores, example.label);
        snap_to_limits(loss, example, row);
        part.violation = std::max(part.violation, loss.violation(extremes_of(loss, gradient, row, example)));
    }
    return part;
}

/// `b_m = weight sum_i B_im + shift_m`. The dual objective counts the shift as the constraint that it stands for: with
/// a weight of zero it is a bound only if the sums are zero. With a `point` the primal is that point's, not that of the
/// coefficients.
template <RowLoss Loss>
LinearState evaluate(const Loss& loss, const LinearData& problem, const Coefficients& coefficients, double weight,
                     std::span<const double> shift, const Workers& workers, const PrimalPoint* point = nullptr) {
    LinearState state;
    sum_up(problem, coefficients, state, workers);
    const Index k = problem.classes, n = std::ssize(problem.order);
    for (Index m = 0; m < k; ++m) state.bias.push_back(weight * state.sums[m] + (shift.empty() ? 0.0 : shift[m]));
    const auto squares = [&] {
        double square = 0.0;
        for (const double w : state.weights) square += w * w;
        return square;
    };
    double square = squares();
    for (const double s : state.sums) square += weight * s * s;
    double primal_square = square;
    if (point != nullptr) {
        state.weights = point->weights;
        state.bias = point->bias;
        primal_square = squares();
        for (const double b : state.bias) primal_square += weight > 0.0 ? b * b / weight : 0.0;
    }
    for (Index f = 0; f < std::ssize(problem.centre); ++f) {
        for (Index m = 0; m < k; ++m) state.bias[m] -= problem.centre[f] * state.weights[f * k + m];
    }
    std::vector<PartObjectives> parts((n + Workers::kPart - 1) / Workers::kPart);
    workers.for_parts(n, [&](Range range) {
        parts[range.begin / Workers::kPart] = objectives_of_part(loss, problem, coefficients, state, range);
    });
    double losses = 0.0, linear = 0.0, conjugates = 0.0;
    for (const PartObjectives& part : parts) {
        losses += part.losses;
        linear += part.linear;
        conjugates += part.conjugates;
        state.violation = std::max(state.violation, part.violation);
    }
    state.objectives = {.primal = 0.5 * primal_square + losses, .dual = -0.5 * square - linear - conjugates};
    // Weak duality holds exactly; at an exact optimum rounding may say otherwise in the last bits.
    auto& [primal, dual] = state.objectives;
    if (primal < dual && dual - primal <= 1e-12 * std::abs(dual)) primal = dual;
    return state;
}

}  // namespace polymargin
