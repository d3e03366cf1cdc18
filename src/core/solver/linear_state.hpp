#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "linear/rows.hpp"
#include "linear/source.hpp"
#include "linear/weights.hpp"
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

/// The caller's rows in double, zeros included, one at a time.
class DenseRows {
  public:
    /// Whether rows are best read in this way: few classes, whose vectors of weights cost no more for a zero than to
    /// skip it. What the values are decides, not what holds them: sums are rounded in the same way for both.
    [[nodiscard]] static bool suits(const LinearData& problem) {
        constexpr Index look = 1 << 10;
        constexpr double least_share = 1.0 / 8.0;
        return problem.classes <= Weights<double>::kFew &&
               share_of_entries(problem.data, problem.order, features_of(problem.data), look) > least_share;
    }

    explicit DenseRows(const DataView& data) : data_(data), values_(features_of(data)) {}

    /// Row `order[i]`; those that follow are announced.
    [[nodiscard]] Row<double> at(std::span<const Index> order, Index i) {
        const Index features = std::ssize(values_);
        if (const auto* dense = std::get_if<DenseView>(&data_)) {
            if (i + kRowsAhead < std::ssize(order)) fetch_row(*dense, order[i + kRowsAhead]);
            std::visit(
                [&](const auto& from) {
                    const auto* x = from.data() + order[i] * features;
                    for (Index f = 0; f < features; ++f) values_[f] = static_cast<double>(x[f]);
                },
                dense->values);
        } else {
            std::ranges::fill(values_, 0.0);
            for_entries(data_, order[i], [&](Index f, double v) { values_[f] = v; });
        }
        return {values_.data(), nullptr, features};
    }

  private:
    const DataView& data_;
    std::vector<double> values_;
};

/// Add up `sum_i B_im x_i` and the sums of the coefficients, one example after the other.
inline void add_rows(const LinearData& problem, const Coefficients& coefficients, LinearState& state,
                     const Workers& workers) {
    const Index k = problem.classes;
    // One after the other: sums of parts would depend on how they are cut.
    const Workers alone{.pool = nullptr, .control = workers.control, .thorough = true};
    alone.for_parts(coefficients.rows(), [&](Range range) {
        for (Index i = range.begin; i < range.end; ++i) {
            const auto row = coefficients.row(i);
            if (row.empty()) continue;
            for (const auto& [m, b] : row) state.sums[m] += b;
            for_entries(problem.data, problem.order[i], [&](Index f, double v) {
                double* w = state.weights.data() + f * k;
                for (const auto& [m, b] : row) w[m] += v * b;
            });
        }
    });
}

/// Parts that sums over dense rows are formed in, whatever the number of threads.
inline constexpr Index kSumParts = 16;

/// The same of dense rows, in parts that are always cut in the same way.
inline void add_dense_rows(const LinearData& problem, const Coefficients& coefficients, LinearState& state,
                           const Workers& workers) {
    const Index k = problem.classes, n = coefficients.rows(), features = features_of(problem.data);
    std::vector<Weights<double>> weights;
    for (Index p = 0; p < kSumParts; ++p) weights.emplace_back(features, k);
    std::vector<std::vector<double>> sums(kSumParts, std::vector<double>(weights[0].width(), 0.0));
    workers.for_parts(
        kSumParts,
        [&](Range part) {
            const Index p = part.begin;
            DenseRows rows(problem.data);
            std::vector<double> by(sums[p].size());
            for (Index i = n * p / kSumParts; i < n * (p + 1) / kSumParts; ++i) {
                if (i % Workers::kPart == 0 && workers.control != nullptr) workers.control->throw_if_abandoned();
                const auto row = coefficients.row(i);
                if (row.empty()) continue;
                std::ranges::fill(by, 0.0);
                for (const auto& [m, b] : row) by[m] = b, sums[p][m] += b;
                weights[p].add(rows.at(problem.order, i), by.data());
            }
        },
        1);
    for (Index p = 0; p < kSumParts; ++p) {
        for (Index m = 0; m < k; ++m) state.sums[m] += sums[p][m];
        for (Index f = 0; f < features; ++f) {
            for (Index m = 0; m < k; ++m) state.weights[f * k + m] += weights[p].row(f)[m];
        }
    }
}

/// w_m = sum_i B_im (x_i - centre), and the sums of the coefficients.
inline void sum_up(const LinearData& problem, const Coefficients& coefficients, LinearState& state,
                   const Workers& workers) {
    const Index k = problem.classes;
    state.weights.assign(features_of(problem.data) * k, 0.0);
    state.sums.assign(k, 0.0);
    // Parts for many examples, beside which their sums are small.
    if (coefficients.rows() >= kSumParts * k && DenseRows::suits(problem)) {
        add_dense_rows(problem, coefficients, state, workers);
    } else {
        add_rows(problem, coefficients, state, workers);
    }
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

/// The scores of examples for the weights and the bias of a state.
class StateScores {
  public:
    StateScores(const LinearData& problem, const LinearState& state) : problem_(problem), state_(state) {
        if (!DenseRows::suits(problem)) return;
        const Index features = features_of(problem.data);
        weights_.emplace(features, problem.classes);
        for (Index f = 0; f < features; ++f) {
            std::copy_n(state.weights.begin() + f * problem.classes, problem.classes, weights_->row(f));
        }
    }

    /// What a thread needs of its own.
    struct Room {
        std::optional<DenseRows> rows;
        std::vector<double> products;
    };
    [[nodiscard]] Room room() const {
        Room room;
        if (weights_) {
            room.rows.emplace(problem_.data);
            room.products.resize(weights_->width());
        }
        return room;
    }
    void operator()(Index i, Room& room, std::span<double> scores) const {
        std::ranges::copy(state_.bias, scores.begin());
        if (weights_) {
            weights_->products(room.rows->at(problem_.order, i), room.products.data());
            for (std::size_t m = 0; m < scores.size(); ++m) scores[m] += room.products[m];
            return;
        }
        for_entries(problem_.data, problem_.order[i], [&](Index f, double v) {
            const double* w = state_.weights.data() + f * problem_.classes;
            for (std::size_t m = 0; m < scores.size(); ++m) scores[m] += v * w[m];
        });
    }

  private:
    const LinearData& problem_;
    const LinearState& state_;
    std::optional<Weights<double>> weights_;  // of `DenseRows`: padded, for the loops over vectors
};

template <RowLoss Loss>
PartObjectives objectives_of_part(const Loss& loss, const LinearData& problem, const Coefficients& coefficients,
                                  const StateScores& scores_of, Range range) {
    const Index k = problem.classes;
    PartObjectives part;
    std::vector<double> scores(k), gradient(k), row(k);
    StateScores::Room room = scores_of.room();
    for (Index i = range.begin; i < range.end; ++i) {
        const Example example{problem.labels[i], problem.cost_bounds[i]};
        scores_of(i, room, scores);
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
        if (!coefficients.row(i).empty()) snap_to_limits(loss, example, row);
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
    const StateScores scores_of(problem, state);
    workers.for_parts(n, [&](Range range) {
        parts[range.begin / Workers::kPart] = objectives_of_part(loss, problem, coefficients, scores_of, range);
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
