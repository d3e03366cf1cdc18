#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "problem/multiclass.hpp"
#include "solver/violations.hpp"
#include "support/vectors.hpp"

namespace polymargin::proximal_newton {

/// The classes of a face are the bits of a number.
constexpr Index kMostClasses = 64;
/// Rows are padded to whole vectors of so many bytes, as those of `Weights` are.
constexpr int kBytes = 32;

/// Some examples, their scores and the points of the dual that they start from. All rows have `width` places; the
/// padding of the scores and of the centres is zero, and so is that of the answers.
template <class Real>
struct AnswerTile {
    Index count, classes, width;
    const Real* scores;
    const Real* centre;
    const Real* shift;  ///< of each class: a free bias, which is part of the scores already
    const Example* examples;
    const Real* curvatures;  ///< c_i
    Real* answers;           ///< B_i
    std::uint64_t* faces;    ///< of each example, the classes that curve its scores
};

struct AnswerSums {
    double losses = 0.0;  ///< of the scores, with the costs
    double linear = 0.0;  ///< sum_i (o_i + shift)'B_i
};

template <class Real>
using RowVector = Vectors<Real, kBytes>;

/// Rows of pairs of the own class and another, each in [0, C] by itself: between two points of the dual their distance
/// is that of the pairs, `sum_m (a_m - A_m)^2`, so that each answers for itself. That of others is `|B - A|^2`.
template <RowLoss Loss>
[[nodiscard]] bool are_pairs(const Loss& loss) {
    if constexpr (LimitedLoss<Loss>) {
        return std::isinf(loss.row_limits(1.0).most);
    } else {
        return false;
    }
}

/// Own in [0, C], others in [-C, 0]: each class for itself.
template <class Loss>
concept BoxLoss = SeparableLoss<Loss> && requires { requires Loss::kBox; };

template <class Real>
POLYMARGIN_INLINE Real sum_of_lanes(const typename RowVector<Real>::Reals& v) {
    return of_all_lanes<Real, kBytes>(v, [](auto a, auto b) POLYMARGIN_INLINED { return a + b; })[0];
}

/// The bits of the lanes for which the choice is true.
template <class Real>
POLYMARGIN_INLINE std::uint64_t bits_of(const typename RowVector<Real>::Ints& choice) {
    using V = RowVector<Real>;
    const typename V::Ints one = typename V::Ints{} + 1;
    const auto bits = choice & (one << V::lanes);
    return static_cast<std::uint64_t>(
        of_all_lanes<Real, kBytes>(bits, [](auto a, auto b) POLYMARGIN_INLINED { return a | b; })[0]);
}

/// The lanes whose bits are set.
template <class Real>
POLYMARGIN_INLINE typename RowVector<Real>::Ints lanes_of(std::uint64_t bits) {
    using V = RowVector<Real>;
    const typename V::Ints one = typename V::Ints{} + 1;
    const typename V::Ints mask = one << V::lanes;
    const auto all = typename V::Ints{} + static_cast<typename V::Int>(bits & ((std::uint64_t{1} << V::count) - 1));
    return (all & mask) == mask;
}

/// Alone in its row a class has nobody to exchange with.
[[nodiscard]] inline std::uint64_t exchanging(std::uint64_t face) {
    return std::has_single_bit(face) ? 0 : face;
}

/// Any loss, as it is.
template <RowLoss Loss, class Real>
AnswerSums answer_plainly(const Loss& loss, const AnswerTile<Real>& tile, Index t) {
    double scores[kMostClasses], row[kMostClasses];
    const Example& example = tile.examples[t];
    const std::span<double> s(scores, tile.classes), b(row, tile.classes);
    const auto offsets = loss.offsets(example.label);
    for (Index m = 0; m < tile.classes; ++m) {
        s[m] = static_cast<double>(tile.scores[t * tile.width + m]);
        b[m] = static_cast<double>(tile.centre[t * tile.width + m]);
    }
    AnswerSums sums{.losses = example.cost_bound * loss.loss(s, example.label)};
    for (Index m = 0; m < tile.classes; ++m) s[m] += offsets[m];
    (void)loss.step(s, static_cast<double>(tile.curvatures[t]), example, b);
    std::uint64_t face = 0;
    for (Index m = 0; m < tile.classes; ++m) {
        const bool own = m == example.label;
        const bool between =
            loss.may_grow(b[m], own, example.cost_bound) && loss.may_fall(b[m], own, example.cost_bound);
        face |= static_cast<std::uint64_t>(between) << m;
        tile.answers[t * tile.width + m] = static_cast<Real>(b[m]);
        sums.linear += (offsets[m] + static_cast<double>(tile.shift[m])) * b[m];
    }
    for (Index m = tile.classes; m < tile.width; ++m) tile.answers[t * tile.width + m] = Real(0);
    tile.faces[t] = Loss::kRowsSumToZero ? exchanging(face) : face;
    return sums;
}

/// `N` vectors a row; 0: as many as the width has.
template <int N, BoxLoss Loss, class Real>
POLYMARGIN_INLINE AnswerSums answer_in_vectors(const Loss& loss, const AnswerTile<Real>& tile, Index t) {
    using V = RowVector<Real>;
    using Reals = typename V::Reals;
    const int n = N > 0 ? N : static_cast<int>(tile.width / V::count);
    const auto [label, cost_bound] = tile.examples[t];
    const OwnOffset offsets = loss.offsets(label);
    const Reals none{}, bound = none + static_cast<Real>(cost_bound);
    const Reals mine = none + static_cast<Real>(offsets.own), others = none + static_cast<Real>(offsets.others);
    const Real steepness = Real(1) / tile.curvatures[t];
    Reals losses{}, linear{};
    std::uint64_t face = 0;
    for (int v = 0; v < n; ++v) {
        const Index at = t * tile.width + v * V::count;
        const auto lanes = V::lanes + v * V::count;
        const auto own = lanes == static_cast<typename V::Int>(label);
        const auto inside = lanes < static_cast<typename V::Int>(tile.classes);
        const Reals low = inside & ~own ? -bound : none, high = own ? bound : none;
        const Reals offset = own ? mine : others;
        const Reals gradient = load<kBytes>(tile.scores + at) + offset;
        const Reals wish = load<kBytes>(tile.centre + at) - steepness * gradient;
        const Reals raised = wish < low ? low : wish;
        const Reals answer = raised > high ? high : raised;
        store<kBytes>(tile.answers + at, answer);
        const Reals worst_low = -gradient * low, worst_high = -gradient * high;
        losses += worst_low > worst_high ? worst_low : worst_high;
        linear += (offset + load<kBytes>(tile.shift + v * V::count)) * answer;
        face |= bits_of<Real>((answer > low) & (answer < high)) << (v * V::count);
    }
    tile.faces[t] = face;
    return {.losses = static_cast<double>(sum_of_lanes<Real>(losses)),
            .linear = static_cast<double>(sum_of_lanes<Real>(linear))};
}

/// The row of a `LimitedLoss` with a limit of the sum, in its formulas: z of the wrong classes, far below elsewhere.
template <int N, class Real>
struct LevelSearch {
    using V = RowVector<Real>;
    using Reals = typename V::Reals;
    static constexpr int kMost = N > 0 ? N : static_cast<int>(kMostClasses / V::count);
    /// Below all that counts, and far from what overflows.
    static constexpr Real kNowhere = std::numeric_limits<Real>::lowest() / 8;

    Reals z[kMost] = {};
    int n = 0;

    struct Sum {
        Real value, free;
    };
    /// sum_m max(z_m - t, 0), and how many are above.
    POLYMARGIN_INLINE Sum at(Real t) const {
        const Reals none{}, one = none + Real(1);
        Reals sum{}, free{};
        for (int v = 0; v < n; ++v) {
            const auto above = z[v] > t;
            sum += above ? z[v] - t : none;
            free += above ? one : none;
        }
        return {sum_of_lanes<Real>(sum), sum_of_lanes<Real>(free)};
    }
    POLYMARGIN_INLINE Real highest() const {
        Reals best = z[0];
        for (int v = 1; v < n; ++v) best = z[v] > best ? z[v] : best;
        return polymargin::largest<Real, kBytes>(best);
    }
    /// The t where the sum is `most`, or, not `full`, t itself: by Newton's steps, which after the first come from below
    /// and are exact once they end in the piece where they began.
    POLYMARGIN_INLINE Real find(bool full, Real most, Real t) const {
        constexpr Real rounding = 4 * std::numeric_limits<Real>::epsilon();
        for (int look = 0; look < 2 * static_cast<int>(kMostClasses); ++look) {
            const Sum sum = at(t);
            const Real slope = sum.free + (full ? Real(0) : Real(1));
            const Real step = (sum.value - (full ? most : t)) / slope;
            t += step;
            if (std::abs(step) <= rounding * most) break;
        }
        return t;
    }
};

/// Pairs, each for itself.
template <int N, LimitedLoss Loss, class Real>
POLYMARGIN_INLINE AnswerSums answer_pairs(const Loss& loss, const AnswerTile<Real>& tile, Index t) {
    using V = RowVector<Real>;
    using Reals = typename V::Reals;
    const int n = N > 0 ? N : static_cast<int>(tile.width / V::count);
    const auto [label, cost_bound] = tile.examples[t];
    const OwnOffset offsets = loss.offsets(label);
    const Reals none{}, bound = none + static_cast<Real>(loss.row_limits(cost_bound).largest);
    const Real steepness = Real(1) / tile.curvatures[t];
    const Real lead = tile.scores[t * tile.width + label] + static_cast<Real>(offsets.own - offsets.others);
    Reals losses{}, linear{}, total{};
    std::uint64_t face = 0;
    for (int v = 0; v < n; ++v) {
        const Index at = t * tile.width + v * V::count;
        const auto lanes = V::lanes + v * V::count;
        const Reals top = (lanes < static_cast<typename V::Int>(tile.classes)) &
                                  (lanes != static_cast<typename V::Int>(label))
                              ? bound
                              : none;
        const Reals open = load<kBytes>(tile.scores + at) - lead;
        const Reals wish = steepness * open - load<kBytes>(tile.centre + at);
        const Reals raised = wish > none ? wish : none;
        const Reals a = raised < top ? raised : top;
        store<kBytes>(tile.answers + at, -a);
        losses += (open > none ? open : none) * top;
        total += a;
        linear -= (static_cast<Real>(offsets.others) + load<kBytes>(tile.shift + v * V::count)) * a;
        face |= bits_of<Real>((a > none) & (a < top)) << (v * V::count);
    }
    const Real all = sum_of_lanes<Real>(total);
    tile.answers[t * tile.width + label] = all;
    tile.faces[t] = face == 0 ? 0 : face | std::uint64_t{1} << label;
    return {.losses = static_cast<double>(sum_of_lanes<Real>(losses)),
            .linear = static_cast<double>(sum_of_lanes<Real>(linear)) +
                      (offsets.own + static_cast<double>(tile.shift[label])) * static_cast<double>(all)};
}

/// A row whose classes share a limit of their sum.
template <int N, LimitedLoss Loss, class Real>
POLYMARGIN_INLINE AnswerSums answer_with_level(const Loss& loss, const AnswerTile<Real>& tile, Index t) {
    using V = RowVector<Real>;
    using Reals = typename V::Reals;
    const auto [label, cost_bound] = tile.examples[t];
    const OwnOffset offsets = loss.offsets(label);
    const auto most = static_cast<Real>(loss.row_limits(cost_bound).most);
    const Real* const scores = tile.scores + t * tile.width;
    const Real* const centre = tile.centre + t * tile.width;
    Real* const answers = tile.answers + t * tile.width;
    LevelSearch<N, Real> level;
    level.n = N > 0 ? N : static_cast<int>(tile.width / V::count);
    const Reals none{}, nowhere = none + LevelSearch<N, Real>::kNowhere;
    const Real steepness = Real(1) / tile.curvatures[t], before = centre[label];
    const Real lead = scores[label] + static_cast<Real>(offsets.own - offsets.others);
    const auto wrong = [&](int v) POLYMARGIN_INLINED {
        const auto lanes = V::lanes + v * V::count;
        return (lanes < static_cast<typename V::Int>(tile.classes)) & (lanes != static_cast<typename V::Int>(label));
    };
    // Only differences of z count where the sum is at its limit. They may be nothing beside z itself: from the highest
    // of -h_m, of which the loss is made, they are not.
    Reals worst = nowhere;
    for (int v = 0; v < level.n; ++v) {
        const Reals open = wrong(v) ? load<kBytes>(scores + v * V::count) - lead : nowhere;
        worst = open > worst ? open : worst;
    }
    const Real rival = polymargin::largest<Real, kBytes>(worst);
    for (int v = 0; v < level.n; ++v) {
        const Reals moved = load<kBytes>(scores + v * V::count) - (lead + rival);
        level.z[v] = wrong(v) ? steepness * moved - load<kBytes>(centre + v * V::count) : nowhere;
    }
    AnswerSums sums{.losses = cost_bound * static_cast<double>(std::max(rival, Real(0)))};
    // z of the formulas is this much more.
    const Real away = steepness * rival + before, highest = level.highest();
    if (!(highest + away > 0)) {
        for (int v = 0; v < level.n; ++v) store<kBytes>(answers + v * V::count, none);
        tile.faces[t] = 0;
        return sums;
    }
    const bool full = level.at(most - away).value >= most;
    Real found;
    if (full) {
        found = level.find(true, most, highest - most);
    } else {
        for (int v = 0; v < level.n; ++v) level.z[v] += away;
        found = level.find(false, most, std::min(before, highest + away));
    }
    Reals total{}, linear{};
    std::uint64_t face = 0;
    for (int v = 0; v < level.n; ++v) {
        const auto above = level.z[v] > found;
        const Reals a = above ? level.z[v] - found : none;
        store<kBytes>(answers + v * V::count, -a);
        total += a;
        linear -= (static_cast<Real>(offsets.others) + load<kBytes>(tile.shift + v * V::count)) * a;
        face |= bits_of<Real>(above) << (v * V::count);
    }
    const Real all = full ? most : sum_of_lanes<Real>(total);
    answers[label] = all;
    if (!full) face |= std::uint64_t{1} << label;
    tile.faces[t] = exchanging(face);
    sums.linear = static_cast<double>(sum_of_lanes<Real>(linear)) +
                  (offsets.own + static_cast<double>(tile.shift[label])) * static_cast<double>(all);
    return sums;
}

template <int N, LimitedLoss Loss, class Real>
POLYMARGIN_INLINE AnswerSums answer_in_vectors(const Loss& loss, const AnswerTile<Real>& tile, Index t) {
    return are_pairs(loss) ? answer_pairs<N>(loss, tile, t) : answer_with_level<N>(loss, tile, t);
}

/// Whether there are vectors for a loss, and a row of it.
template <class Loss>
concept VectorLoss = BoxLoss<Loss> || LimitedLoss<Loss>;

template <VectorLoss Loss>
POLYMARGIN_INLINE bool in_vectors(const Loss& loss, const Example& example) {
    if constexpr (LimitedLoss<Loss>) {
        const RowLimits limits = loss.row_limits(example.cost_bound);
        return std::isinf(limits.largest) != std::isinf(limits.most);
    } else {
        return true;
    }
}

template <int N, class Loss, class Real>
POLYMARGIN_INLINE AnswerSums answer_rows(const Loss& loss, const AnswerTile<Real>& tile) {
    AnswerSums sums;
    for (Index t = 0; t < tile.count; ++t) {
        AnswerSums row;
        if (tile.curvatures[t] > 0 && in_vectors(loss, tile.examples[t])) {
            row = answer_in_vectors<N>(loss, tile, t);
        } else {
            row = answer_plainly(loss, tile, t);
        }
        sums.losses += row.losses;
        sums.linear += row.linear;
    }
    return sums;
}

/// `B_i`, the row that is best for each example given its scores, and the sums of what it is worth.
template <RowLoss Loss, class Real>
AnswerSums answer(const Loss& loss, const AnswerTile<Real>& tile) {
    if constexpr (VectorLoss<Loss>) {
        return with_widest_vectors([&](auto) POLYMARGIN_INLINED {
            switch (tile.width / RowVector<Real>::count) {
                case 1:
                    return answer_rows<1>(loss, tile);
                case 2:
                    return answer_rows<2>(loss, tile);
                default:
                    return answer_rows<0>(loss, tile);
            }
        });
    } else {
        AnswerSums sums;
        for (Index t = 0; t < tile.count; ++t) {
            const AnswerSums row = answer_plainly(loss, tile, t);
            sums.losses += row.losses;
            sums.linear += row.linear;
        }
        return sums;
    }
}

/// What an example's curvature makes of the products of a row with its features, on the face it is in: `by` times the
/// projection on it, or, of pairs, the sum over those of the face.
template <class Real>
POLYMARGIN_INLINE void curve_row(Real* row, Index width, std::uint64_t face, Real by, bool exchange) {
    using V = RowVector<Real>;
    const typename V::Reals none{};
    typename V::Reals sum{};
    for (Index at = 0; at < width; at += V::count) {
        sum += lanes_of<Real>(face >> at) ? load<kBytes>(row + at) : none;
    }
    const Real mean = exchange ? sum_of_lanes<Real>(sum) / static_cast<Real>(std::popcount(face)) : Real(0);
    for (Index at = 0; at < width; at += V::count) {
        store<kBytes>(row + at, lanes_of<Real>(face >> at) ? by * (load<kBytes>(row + at) - mean) : none);
    }
}

template <class Real>
POLYMARGIN_INLINE void curve_pairs(Real* row, Index width, std::uint64_t face, Real by, Index label) {
    using V = RowVector<Real>;
    const typename V::Reals none{};
    const Real own = row[label];
    typename V::Reals sum{};
    for (Index at = 0; at < width; at += V::count) {
        const auto moved = lanes_of<Real>(face >> at) ? by * (load<kBytes>(row + at) - own) : none;
        store<kBytes>(row + at, moved);
        sum += moved;
    }
    row[label] = -sum_of_lanes<Real>(sum);
}

/// The middle of the feasible set, with the same way to all hinges: around it the answers are those of a hinge that was
/// rounded off evenly on both sides.
template <RowLoss Loss, class Real>
void set_middle(const Loss& loss, const Example& example, Index classes, Real* row) {
    std::fill_n(row, classes, Real(0));
    const auto bound = static_cast<Real>(example.cost_bound);
    if constexpr (BoxLoss<Loss>) {
        std::fill_n(row, classes, -bound / 2);
        if (example.label >= 0) row[example.label] = bound / 2;
    } else if constexpr (LimitedLoss<Loss>) {
        const auto others = static_cast<Real>(classes - 1);
        const Real each = are_pairs(loss) ? bound / 2 : bound / static_cast<Real>(classes);
        std::fill_n(row, classes, -each);
        row[example.label] = each * others;
    }
}

}  // namespace polymargin::proximal_newton
