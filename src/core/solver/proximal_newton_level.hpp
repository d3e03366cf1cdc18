#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "solver/proximal_newton_vectors.hpp"

namespace polymargin::proximal_newton {

/// The row of a `LevelLoss` with a limit of the sum, in its formulas: z of the wrong classes, far below elsewhere.
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
    /// The t where the sum is `most`, or, not `full`, t itself: by Newton's steps, which after the first come from
    /// below and are exact once they end in the piece where they began.
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

/// Load z of a row, as far from the highest of `-h_m`, of which the loss is made, as differences count; that one. They
/// may be nothing beside z itself, which is this more: `steepness` times it, and the sum before.
template <int N, class Real>
POLYMARGIN_INLINE Real load_level(LevelSearch<N, Real>& level, const AnswerTile<Real>& tile, Index t, Real lead) {
    using V = RowVector<Real>;
    using Reals = typename V::Reals;
    const Real* const scores = tile.scores + t * tile.width;
    const Real* const centre = tile.centre + t * tile.width;
    const Real steepness = Real(1) / tile.curvatures[t];
    const Reals nowhere = Reals{} + LevelSearch<N, Real>::kNowhere;
    const auto wrong = [&](int v) POLYMARGIN_INLINED {
        const auto lanes = V::lanes + v * V::count;
        return (lanes < static_cast<typename V::Int>(tile.classes)) &
               (lanes != static_cast<typename V::Int>(tile.examples[t].label));
    };
    level.n = N > 0 ? N : static_cast<int>(tile.width / V::count);
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
    return rival;
}

/// A row whose classes share a limit of their sum.
template <int N, LevelLoss Loss, class Real>
POLYMARGIN_INLINE AnswerSums answer_with_level(const Loss& loss, const AnswerTile<Real>& tile, Index t) {
    using V = RowVector<Real>;
    using Reals = typename V::Reals;
    const auto [label, cost_bound] = tile.examples[t];
    const OwnOffset offsets = loss.offsets(label);
    const auto most = static_cast<Real>(loss.row_limits(cost_bound).most);
    Real* const answers = tile.answers + t * tile.width;
    const Real before = tile.centre[t * tile.width + label];
    const Reals none{};
    LevelSearch<N, Real> level;
    const Real lead = tile.scores[t * tile.width + label] + static_cast<Real>(offsets.own - offsets.others);
    const Real rival = load_level(level, tile, t, lead);
    AnswerSums sums{.losses = cost_bound * static_cast<double>(std::max(rival, Real(0)))};
    const Real away = rival / tile.curvatures[t] + before, highest = level.highest();
    if (!(highest + away > 0)) {
        for (int v = 0; v < level.n; ++v) store<kBytes>(answers + v * V::count, none);
        tile.faces[t] = 0;
        return sums;
    }
    const bool full = level.at(most - away).value >= most;
    for (int v = 0; !full && v < level.n; ++v) level.z[v] += away;
    const Real found = level.find(full, most, full ? highest - most : std::min(before, highest + away));
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

}  // namespace polymargin::proximal_newton
