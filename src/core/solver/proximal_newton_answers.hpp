#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "solver/proximal_newton_level.hpp"
#include "solver/proximal_newton_vectors.hpp"

namespace polymargin::proximal_newton {

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

/// Pairs, each for itself.
template <int N, LevelLoss Loss, class Real>
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
        const Reals top =
            (lanes < static_cast<typename V::Int>(tile.classes)) & (lanes != static_cast<typename V::Int>(label))
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

template <int N, LevelLoss Loss, class Real>
POLYMARGIN_INLINE AnswerSums answer_in_vectors(const Loss& loss, const AnswerTile<Real>& tile, Index t) {
    return are_pairs(loss) ? answer_pairs<N>(loss, tile, t) : answer_with_level<N>(loss, tile, t);
}

/// Whether there are vectors for a loss, and a row of it.
template <class Loss>
concept VectorLoss = BoxLoss<Loss> || LevelLoss<Loss>;

template <VectorLoss Loss>
POLYMARGIN_INLINE bool in_vectors(const Loss& loss, const Example& example) {
    if constexpr (LevelLoss<Loss>) {
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
    } else if constexpr (LevelLoss<Loss>) {
        const auto others = static_cast<Real>(classes - 1);
        const Real each = are_pairs(loss) ? bound / 2 : bound / static_cast<Real>(classes);
        std::fill_n(row, classes, -each);
        row[example.label] = each * others;
    }
}

}  // namespace polymargin::proximal_newton
