#pragma once

#include <concepts>
#include <limits>
#include <span>
#include <vector>

#include "support/types.hpp"

namespace polymargin {

/// The dual of an all-together machine, in the coefficients `B_im` of example i in the score of class m:
///
///     min_B  1/2 tr(B' K B) + sum_im o_im B_im    subject to   B_i in F_i,  sum_m B_im = 0,
///
/// so that the scores of the examples are `S = K B` and the gradient is `G = S + o`. A machine differs from another in
/// the feasible set `F_i` of a row, in the offset `o_im`, which depends only on whether m is the class of i, and in
/// the loss that the primal puts on the scores. That is all a solver ever asks a loss.
///
/// `bound` is `C_i`; infinite for a hard margin.
struct Example {
    Index label;
    double bound;
};

/// Values of many examples for each class, a class after the other: what is done to all examples is done to neighbours.
template <class T>
struct ClassMajor {
    T* values = nullptr;
    Index classes = 0;
    Index stride = 0;

    [[nodiscard]] T* row(Index m) const { return values + m * stride; }
    [[nodiscard]] T& at(Index m, Index i) const { return values[m * stride + i]; }
    [[nodiscard]] ClassMajor from(Index i) const { return {values + i, classes, stride}; }
    operator ClassMajor<const T>() const
        requires(!std::is_const_v<T>)
    {
        return {values, classes, stride};
    }
};

/// Examples whose violations are computed together.
struct ExampleStrip {
    ClassMajor<const double> gradient;
    ClassMajor<const double> beta;
    const Index* labels;
    const double* bounds;
    Index count;
};

/// A direction within the row of one example that stays in its face: class `gains` grows by what `loses` gives.
struct Exchange {
    Index gains;
    Index loses;
};

/// What a solver asks that goes from one example to the next.
template <class Loss>
concept RowLoss = requires(const Loss& loss, const Example& example, std::span<const double> row,
                           std::span<double> beta, double number, bool own) {
    /// Whether the coefficients of a row sum to zero; if not, its classes have nothing to do with each other.
    { Loss::kCoupled } -> std::convertible_to<bool>;
    /// o_im
    { loss.offset(own) } -> std::same_as<double>;
    /// The loss of one example with these scores, without its factor C_i.
    { loss.loss(row, example.label) } -> std::same_as<double>;
    /// Whether a coefficient, of its own class or another, can grow, or fall, if another class of the row makes up for
    /// it.
    { loss.may_grow(number, own, number) } -> std::same_as<bool>;
    { loss.may_fall(number, own, number) } -> std::same_as<bool>;
    /// Move a row to the minimum over its feasible set of g'd + curvature/2 |d|^2, exactly; false if there is none.
    { loss.step(row, number, example, beta) } -> std::same_as<bool>;
    /// The nearest feasible row, or one near; what is within rounding of a bound is put on it.
    { loss.make_feasible(example, beta) } -> std::same_as<void>;
    /// Whether the row is at a corner of its feasible set.
    { loss.at_rest(row, example) } -> std::same_as<bool>;
};

/// What the block decomposition asks beyond that; rows sum to zero.
template <class Loss>
concept MulticlassLoss = RowLoss<Loss> && Loss::kCoupled &&
                         requires(const Loss& loss, const ExampleStrip& strip, const Example& example,
                                  std::span<const double> row, std::span<double> beta) {
                             /// The smallest of an example's margins, in units of the one it should have; negative when
                             /// it is misclassified.
                             { loss.margin(row, example.label) } -> std::same_as<double>;
                             /// How far each example of a strip is from optimal, given the others.
                             { loss.violations(strip, beta.data()) } -> std::same_as<void>;
                             /// Directions that span the face of the feasible set in whose interior the row is.
                             { loss.exchanges(row, example) } -> std::same_as<std::vector<Exchange>>;
                             /// The largest share of the change `d` that the row can take.
                             { loss.room(row, row, example) } -> std::same_as<double>;
                         };

/// Primal and (maximised) dual objective of a state.
struct MulticlassObjectives {
    double primal = 0.0;
    double dual = 0.0;
};

/// Where a row stands in the formulas of both classic losses: with `a_m = -B_m` for the wrong classes, `S0 = sum a`,
/// and the gradient `h_m = g_y - g_m` of a, the exact step is
///
///     a_m = clip(z_m - t, 0, largest),   z_m = a_m - h_m / curvature + S0,
///
/// at the one t where the sum of the right sides is `min(t, most)`. Weston-Watkins has `largest = C` and no `most`;
/// Crammer-Singer the other way round.
struct RowLimits {
    double largest = std::numeric_limits<double>::infinity();  ///< of each a_m
    double most = std::numeric_limits<double>::infinity();     ///< of their sum
};

/// The exact step for such a feasible set, by Newton's method on t with a bracket: expected O(k), exact because the
/// function is piecewise linear. False if the minimum does not exist (curvature 0 and no limit).
[[nodiscard]] bool exact_step(std::span<const double> gradient, double curvature, Index label, const RowLimits& limits,
                              std::span<double> beta);

/// What counts as rounding in a row of coefficients: a small multiple of the last bit of the largest, or of C. C may be
/// far above all of them.
[[nodiscard]] double rounding_of(const Example& example, std::span<const double> beta);

/// min over m != y of (s_y - s_m) / required.
[[nodiscard]] double smallest_margin(std::span<const double> scores, Index label, double required);

}  // namespace polymargin
