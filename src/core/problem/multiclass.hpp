#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "problem/gap.hpp"
#include "support/types.hpp"

namespace polymargin {

/// The dual of a joint machine, in the coefficients `B_im` of example i in the score of class m:
///
///     min_B  1/2 tr(B' K B) + sum_im o_im B_im + sum_i q_i(B_i)    subject to   B_i in F_i,
///
/// so that the scores of the examples are `S = K B` and the gradient is `G = S + o + q'`. A machine differs from
/// another in the feasible set `F_i` of a row, in the offsets `o_im`, which may be any numbers for each class of the
/// example and each class of the score, in the conjugate term `q_i`, which is a quadratic form or nothing at all, and
/// in the loss that the primal puts on the scores. That is all a solver ever asks a loss; what it has to have is
/// `RowLoss`, and `MulticlassLoss` for the block decomposition.
///
/// `cost_bound` is `C_i`; infinite for a hard margin.
struct Example {
    Index label;
    double cost_bound;
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

/// The offsets of a row of which only the own class has another: no table is needed, and few numbers are looked at.
struct OwnOffset {
    Index label;
    double own, others;

    [[nodiscard]] double operator[](Index m) const { return m == label ? own : others; }
};

/// What the violation of a row is computed from: the highest gradient among the classes that may fall, the lowest among
/// those that may grow, and that of the own class (0 if it is no column). Of a loss with a shared limit the gradients
/// are those of `|B_m|`, and the sum of these belongs to them.
struct RowExtremes {
    double highest, lowest, own;
    double total = 0.0, cost_bound = 0.0;
};

inline constexpr Index kNoClass = -1;

/// A direction within the row of one example that stays in its face: class `gains` grows by what `loses` gives. One of
/// them may be `kNoClass`: a coefficient that moves alone. Where signs differ, two that exchange may grow together:
/// then the other one is `also`, which is for losses whose scores sum to zero.
struct Direction {
    Index gains = kNoClass;
    Index loses = kNoClass;
    Index also = kNoClass;

    /// d'v
    template <class Values>
    [[nodiscard]] double slope(Values&& values) const {
        const auto at = [&](Index m) { return m == kNoClass ? 0.0 : static_cast<double>(values(m)); };
        return at(gains) + at(also) - at(loses);
    }
    void add_to(std::span<double> row, double by) const {
        if (gains != kNoClass) row[gains] += by;
        if (also != kNoClass) row[also] += by;
        if (loses != kNoClass) row[loses] -= by;
    }
    /// d'e
    [[nodiscard]] int dot(const Direction& e) const {
        return static_cast<int>(slope([&](Index m) { return (m == e.gains) + (m == e.also) - (m == e.loses); }));
    }
    /// sum_m d_m
    [[nodiscard]] int sum() const {
        return static_cast<int>(slope([](Index) { return 1; }));
    }
};

/// A loss with a conjugate term: a quadratic form `q(B) = 1/2 B'QB` of the row, as a squared hinge has it.
template <class Loss>
concept HasConjugate =
    requires(const Loss& loss, const Example& example, std::span<const double> row, std::span<double> out) {
        /// q(B)
        { loss.conjugate(row, example) } -> std::same_as<double>;
        /// Q B, which is linear in B; classes that are left out of the row have zeros.
        { loss.conjugate_gradient(row, example, out) } -> std::same_as<void>;
    };

/// What a solver asks that goes from one example to the next.
///
/// Solvers with many classes may show a loss a row with only some of its classes, the own one and all that are not zero
/// among them; `Example::label` is then the place of the own class, -1 if it is no column.
template <class Loss>
concept RowLoss = requires(const Loss& loss, const Example& example, std::span<const double> row,
                           std::span<double> beta, double number, bool own, const RowExtremes& extremes) {
    /// Whether the coefficients of a row sum to zero, that of the own class being positive and all others negative. If
    /// not, its classes are moved one by one.
    { Loss::kRowsSumToZero } -> std::convertible_to<bool>;
    /// Whether there is a conjugate term, `HasConjugate`; without it nothing of it is compiled.
    { Loss::kConjugate } -> std::convertible_to<bool>;
    /// o_im of an example of a class: something to be indexed by m, an `OwnOffset` or a row of a table.
    { loss.offsets(example.label)[example.label] } -> std::convertible_to<double>;
    /// The loss of one example with these scores, without its factor C_i.
    { loss.loss(row, example.label) } -> std::same_as<double>;
    /// Whether a coefficient, of its own class or another, can grow, or fall, if another class of the row makes up for
    /// it. Inline and without branches: the solvers' passes over many examples are made of them.
    { loss.may_grow(number, own, number) } -> std::same_as<bool>;
    { loss.may_fall(number, own, number) } -> std::same_as<bool>;
    /// How far a row is from optimal: what its best feasible direction gains by a unit step; negative if there is none.
    /// Inline as well.
    { loss.violation(extremes) } -> std::same_as<double>;
    /// Move a row to the minimum over its feasible set of `g'd + curvature/2 |d|^2 + 1/2 d'Qd`, exactly; false if there
    /// is none. The gradient is the whole one, with that of the conjugate term.
    { loss.step(row, number, example, beta) } -> std::same_as<bool>;
    /// The nearest feasible row, or one near; what is within rounding of a bound is put on it.
    { loss.make_feasible(example, beta) } -> std::same_as<void>;
    /// Whether the row is at a vertex of its feasible set.
    { loss.at_vertex(row, example) } -> std::same_as<bool>;
} && (!Loss::kConjugate || HasConjugate<Loss>);

/// What the block decomposition asks beyond that.
template <class Loss>
concept MulticlassLoss =
    RowLoss<Loss> && requires(const Loss& loss, const Example& example, std::span<const double> row) {
        /// The smallest of an example's margins, in units of the one it should have; negative when it is misclassified.
        { loss.margin(row, example.label) } -> std::same_as<double>;
        /// Directions that span the face of the feasible set in whose interior the row is.
        { loss.directions(row, example) } -> std::same_as<std::vector<Direction>>;
        /// The largest share of the change `d` that the row can take.
        { loss.max_step(row, row, example) } -> std::same_as<double>;
    };

/// Losses whose feasible rows are `B = C (e_y - p)` with p on the simplex.
template <class Loss>
concept SimplexLoss = RowLoss<Loss> && !Loss::kConjugate && requires { requires Loss::kSimplex; };

/// Whether the scores of an example sum to zero over the classes, as part of the problem: then `S = K B P`, the mean of
/// a row being taken away by P = I - 11'/k wherever its change reaches scores, weights or the bias, and the primal and
/// the gradient are those of B P. Rows are feasible, and stepped on, as they are. A loss says so if it is so.
template <class Loss>
inline constexpr bool kScoresSumToZero = requires { requires Loss::kScoresSumToZero; };

/// P v
inline void take_mean_away(std::span<double> v) {
    double mean = 0.0;
    for (const double x : v) mean += x / static_cast<double>(v.size());
    for (double& x : v) x -= mean;
}

/// Whether the coefficients of a row, each with its own sign, have a limit of their sum, of which the loss knows the
/// `multiplier`: what is gained by a class that grows depends on whether another one has to give for it.
template <class Loss>
inline constexpr bool kSharedLimit = requires { requires Loss::kSharedLimit; };

/// Losses of which a group of classes can be taken out and solved alone.
template <class Loss>
concept SeparableLoss =
    RowLoss<Loss> && !Loss::kRowsSumToZero && !kScoresSumToZero<Loss> && requires(const Loss& loss) {
        { loss.offsets(Index{0}) } -> std::same_as<OwnOffset>;
    };

/// Separable losses that know the best bias of a class, given its scores without one.
template <class Loss>
concept ShiftableLoss =
    SeparableLoss<Loss> && requires(const Loss& loss, std::span<const double> numbers, std::span<const Index> labels) {
        { loss.best_shift(numbers, labels, numbers, Index{0}) } -> std::same_as<double>;
    };

/// Whether offsets are told by the own class alone.
template <class Loss>
inline constexpr bool kOwnOffset = std::is_same_v<decltype(std::declval<const Loss&>().offsets(Index{0})), OwnOffset>;

/// Losses of which a row that is best for some of its classes tells by its gradients which others have to join them:
/// wrong classes differ by their scores alone.
template <class Loss>
concept JoinableLoss =
    RowLoss<Loss> && kOwnOffset<Loss> && !Loss::kConjugate && (Loss::kRowsSumToZero || SeparableLoss<Loss>);

/// Primal and (maximised) dual objective of a state.
struct MulticlassObjectives {
    double primal = 0.0;
    double dual = 0.0;

    /// Relative to the larger of the two.
    [[nodiscard]] double gap() const { return relative_gap(primal, dual); }
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
    double own = 0.0;                                          ///< of a_y, which absolute margins alone have
};

/// Losses whose feasible rows are those of such limits: `a = -B` of the wrong classes within them, and `B_y = sum a`.
template <class Loss>
concept LimitedLoss =
    RowLoss<Loss> && Loss::kRowsSumToZero && !Loss::kConjugate && requires(const Loss& loss, double c) {
        { loss.row_limits(c) } -> std::same_as<RowLimits>;
    };

/// The same of absolute margins: `a = |B|`, and a_y within a limit of its own.
template <class Loss>
concept AbsoluteLimitedLoss =
    RowLoss<Loss> && kScoresSumToZero<Loss> && !Loss::kConjugate && requires(const Loss& loss, double c) {
        { loss.row_limits(c) } -> std::same_as<RowLimits>;
    };

/// The exact step for such a feasible set, by Newton's method on t with a bracket: expected O(k), exact because the
/// function is piecewise linear. False if the minimum does not exist (curvature 0 and no limit). A conjugate term may
/// make of the formulas `z_m = a_m - h_m / curvature + S0 / level`, and the sum is `level t` then.
[[nodiscard]] bool exact_step(std::span<const double> gradient, double curvature, Index label, const RowLimits& limits,
                              std::span<double> beta, double level = 1.0);

/// What counts as rounding in a row of coefficients: a small multiple of the last bit of the largest, or of C. C may be
/// far above all of them.
[[nodiscard]] double rounding_of(const Example& example, std::span<const double> beta);

/// min over m != y of (s_y - s_m) / required.
[[nodiscard]] double smallest_margin(std::span<const double> scores, Index label, double required);

}  // namespace polymargin
