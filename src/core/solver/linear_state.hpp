#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
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

/// Whether sums are formed in parts: for many examples, beside which the parts are small.
[[nodiscard]] inline bool sums_in_parts(const LinearData& problem) {
    return std::ssize(problem.order) >= kSumParts * problem.classes && DenseRows::suits(problem);
}

/// The same of dense rows, in parts that are always cut in the same way. `also(p, i, x)` is called for every example i
/// of part p with its row, once the row is there; without it those that have no coefficients are not read.
template <class Also = std::nullptr_t>
void add_dense_rows(const LinearData& problem, const Coefficients& coefficients, LinearState& state,
                    const Workers& workers, Also&& also = nullptr) {
    constexpr bool alone = std::is_same_v<std::decay_t<Also>, std::nullptr_t>;
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
                if (alone && row.empty()) continue;
                const Row<double> x = rows.at(problem.order, i);
                if constexpr (!alone) also(p, i, x);
                if (row.empty()) continue;
                std::ranges::fill(by, 0.0);
                for (const auto& [m, b] : row) by[m] = b, sums[p][m] += b;
                weights[p].add(x, by.data());
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

/// w_m = sum_i B_im (x_i - centre), and the sums of the coefficients; of B P where the scores sum to zero. What `also`
/// is called for `add_dense_rows` says; only if there are such parts.
template <RowLoss Loss, class... Also>
void sum_up(const Loss&, const LinearData& problem, const Coefficients& coefficients, LinearState& state,
            const Workers& workers, Also&&... also) {
    const Index k = problem.classes;
    state.weights.assign(features_of(problem.data) * k, 0.0);
    state.sums.assign(k, 0.0);
    if (sums_in_parts(problem)) {
        add_dense_rows(problem, coefficients, state, workers, std::forward<Also>(also)...);
    } else {
        add_rows(problem, coefficients, state, workers);
    }
    for (Index f = 0; f < std::ssize(problem.centre); ++f) {
        for (Index m = 0; m < k; ++m) state.weights[f * k + m] -= problem.centre[f] * state.sums[m];
    }
    if constexpr (kScoresSumToZero<Loss>) {
        for (Index f = 0; f < std::ssize(state.weights) / k; ++f) {
            take_mean_away(std::span(state.weights).subspan(f * k, k));
        }
        take_mean_away(state.sums);
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

/// The scores of examples for some weights and a bias.
class PointScores {
  public:
    PointScores(const LinearData& problem, const PrimalPoint& point) : problem_(problem), point_(point) {
        if (!DenseRows::suits(problem)) return;
        const Index features = features_of(problem.data);
        weights_.emplace(features, problem.classes);
        for (Index f = 0; f < features; ++f) {
            std::copy_n(point.weights.begin() + f * problem.classes, problem.classes, weights_->row(f));
        }
    }

    /// What a thread needs of its own.
    struct Room {
        std::optional<DenseRows> rows;
        std::vector<double> products;
        std::vector<double> values;  // of a sparse row,
        std::vector<std::uint32_t> columns;
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
        if (weights_) return (*this)(room.rows->at(problem_.order, i), room, scores);
        std::ranges::copy(point_.bias, scores.begin());
        room.values.clear();
        room.columns.clear();
        for_entries(problem_.data, problem_.order[i], [&](Index f, double v) {
            room.values.push_back(v);
            room.columns.push_back(static_cast<std::uint32_t>(f));
        });
        add_products({room.values.data(), room.columns.data(), std::ssize(room.values)}, point_.weights, scores);
    }
    /// Of a row that is there, if `DenseRows` suit.
    void operator()(const Row<double>& x, Room& room, std::span<double> scores) const {
        weights_->products(x, room.products.data());
        for (std::size_t m = 0; m < scores.size(); ++m) scores[m] = point_.bias[m] + room.products[m];
    }

  private:
    const LinearData& problem_;
    const PrimalPoint& point_;
    std::optional<Weights<double>> weights_;  // of `DenseRows`: padded, for the loops over vectors
};

/// Adds up what examples are worth, one after the other, by scores and coefficients. Threads have neighbours.
template <RowLoss Loss>
class alignas(kCacheLine) RowObjectives {
  public:
    RowObjectives(const Loss& loss, const LinearData& problem, const Coefficients& coefficients,
                  const PointScores& scores_of)
        : loss_(loss),
          problem_(problem),
          coefficients_(coefficients),
          scores_of_(scores_of),
          room_(scores_of.room()),
          scores_(problem.classes),
          gradient_(problem.classes),
          row_(problem.classes) {}

    void add(Index i) {
        scores_of_(i, room_, scores_);
        add_scored(i);
    }
    /// With its row at hand.
    void add(Index i, const Row<double>& x) {
        scores_of_(x, room_, scores_);
        add_scored(i);
    }
    /// With its scores but for the bias at hand.
    void add(Index i, std::span<const double> products, std::span<const double> bias) {
        std::ranges::transform(products, bias, scores_.begin(), std::plus<>());
        add_scored(i);
    }
    [[nodiscard]] const PartObjectives& sums() const { return part_; }

  private:
    void add_scored(Index i) {
        const Example example{problem_.labels[i], problem_.cost_bounds[i]};
        std::ranges::fill(row_, 0.0);
        for (const auto& [m, b] : coefficients_.row(i)) row_[m] = b;
        const auto offsets = loss_.offsets(example.label);
        for (Index m = 0; m < problem_.classes; ++m) {
            gradient_[m] = scores_[m] + offsets[m];
            part_.linear += row_[m] * offsets[m];
        }
        for_conjugate_gradient(loss_, row_, example, [&](Index m, double q) { gradient_[m] += q; });
        part_.conjugates += conjugate_of(loss_, row_, example);
        part_.losses += example.cost_bound * loss_.loss(scores_, example.label);
        if (!coefficients_.row(i).empty()) snap_to_limits(loss_, example, std::span<double>(row_));
        part_.violation = std::max(part_.violation, loss_.violation(extremes_of(loss_, gradient_, row_, example)));
    }

    const Loss& loss_;
    const LinearData& problem_;
    const Coefficients& coefficients_;
    const PointScores& scores_of_;
    typename PointScores::Room room_;
    std::vector<double> scores_, gradient_, row_;
    PartObjectives part_;
};

/// What all examples are worth at some point, in parts that are always cut in the same way.
template <RowLoss Loss>
std::vector<PartObjectives> objectives_at(const Loss& loss, const LinearData& problem, const Coefficients& coefficients,
                                          const PrimalPoint& point, const Workers& workers) {
    const Index n = std::ssize(problem.order);
    std::vector<PartObjectives> parts((n + Workers::kPart - 1) / Workers::kPart);
    const PointScores scores_of(problem, point);
    workers.for_parts(n, [&](Range range) {
        RowObjectives<Loss> rows(loss, problem, coefficients, scores_of);
        for (Index i = range.begin; i < range.end; ++i) rows.add(i);
        parts[range.begin / Workers::kPart] = rows.sums();
    });
    return parts;
}

/// The same while the rows of coefficients are summed up: all that takes long is to read the examples.
template <RowLoss Loss>
std::vector<PartObjectives> sum_up_at(const Loss& loss, const LinearData& problem, const Coefficients& coefficients,
                                      const PrimalPoint& point, LinearState& state, const Workers& workers) {
    const PointScores scores_of(problem, point);
    std::vector<std::optional<RowObjectives<Loss>>> rows(kSumParts);
    sum_up(loss, problem, coefficients, state, workers, [&](Index p, Index i, const Row<double>& x) {
        if (!rows[p]) rows[p].emplace(loss, problem, coefficients, scores_of);  // by the thread that uses it
        rows[p]->add(i, x);
    });
    std::vector<PartObjectives> parts;
    for (const auto& each : rows) parts.push_back(each ? each->sums() : PartObjectives{});
    return parts;
}

/// For examples as they are, what is a point for them without their centre.
[[nodiscard]] inline PrimalPoint uncentred(const LinearData& problem, PrimalPoint point) {
    for (Index f = 0; f < std::ssize(problem.centre); ++f) {
        for (Index m = 0; m < problem.classes; ++m) {
            point.bias[m] -= problem.centre[f] * point.weights[f * problem.classes + m];
        }
    }
    return point;
}

[[nodiscard]] inline double square_of(std::span<const double> values) {
    return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

/// The objectives, of parts and of the squared lengths of the weights of both points.
inline void set_objectives(LinearState& state, std::span<const PartObjectives> parts, double primal_square,
                           double dual_square) {
    double losses = 0.0, linear = 0.0, conjugates = 0.0;
    for (const PartObjectives& part : parts) {
        losses += part.losses;
        linear += part.linear;
        conjugates += part.conjugates;
        state.violation = std::max(state.violation, part.violation);
    }
    state.objectives = {.primal = 0.5 * primal_square + losses, .dual = -0.5 * dual_square - linear - conjugates};
    // Weak duality holds exactly; at an exact optimum rounding may say otherwise in the last bits.
    auto& [primal, dual] = state.objectives;
    if (primal < dual && dual - primal <= 1e-12 * std::abs(dual)) primal = dual;
}

/// `b_m = weight sum_i B_im + shift_m`. The dual objective counts the shift as the constraint that it stands for: with
/// a weight of zero it is a bound only if the sums are zero. With a `point` the primal is that point's, not that of the
/// coefficients.
template <RowLoss Loss>
LinearState evaluate(const Loss& loss, const LinearData& problem, const Coefficients& coefficients, double weight,
                     std::span<const double> shift, const Workers& workers, const PrimalPoint* point = nullptr) {
    LinearState state;
    std::vector<PartObjectives> parts;
    const bool at_once = point != nullptr && sums_in_parts(problem);
    if (at_once) {
        const PrimalPoint given = uncentred(problem, *point);
        parts = sum_up_at(loss, problem, coefficients, given, state, workers);
    } else {
        sum_up(loss, problem, coefficients, state, workers);
    }
    const double square = square_of(state.weights) + weight * square_of(state.sums);
    double primal_square = square;
    if (point != nullptr) {
        primal_square = square_of(point->weights) + (weight > 0.0 ? square_of(point->bias) / weight : 0.0);
        state.weights = point->weights;
        state.bias = point->bias;
    } else {
        for (const double sum : state.sums) state.bias.push_back(weight * sum);
        for (std::size_t m = 0; m < shift.size(); ++m) state.bias[m] += shift[m];
    }
    const PrimalPoint at = uncentred(problem, {state.weights, state.bias});
    state.bias = at.bias;
    if (!at_once) parts = objectives_at(loss, problem, coefficients, at, workers);
    set_objectives(state, parts, primal_square, square);
    return state;
}

}  // namespace polymargin
