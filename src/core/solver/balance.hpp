#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "solver/circulation.hpp"
#include "solver/coefficients.hpp"
#include "solver/linear_state.hpp"

namespace polymargin {

/// Coefficients of a machine whose classes do not meet, moved where they are free, so that the sums over the examples
/// come near zero. In one direction all of them together move the weights little, for they are on both sides of the
/// margin; and half of the way to a limit leaves a coefficient free, and an example where its margin is. Where there is
/// no limit they grow in proportion.
template <SeparableLoss Loss>
Coefficients with_free_moved(const Loss& loss, const LinearData& problem, const Coefficients& coefficients) {
    const Index k = problem.classes;
    std::vector<double> excess(k, 0.0), capacity(k, 0.0), row(k), lowest(k), highest(k);
    const auto room = [&](Index m, double b, bool fall) {
        if (!(b > lowest[m] && b < highest[m])) return 0.0;
        const double way = fall ? lowest[m] - b : highest[m] - b;
        return std::isinf(way) ? std::copysign(b, way) : 0.5 * way;
    };
    const auto find_limits = [&](Index i) {
        const Example example{problem.labels[i], problem.cost_bounds[i]};
        std::ranges::fill(lowest, -std::numeric_limits<double>::infinity());
        std::ranges::fill(highest, std::numeric_limits<double>::infinity());
        loss.make_feasible(example, lowest);
        loss.make_feasible(example, highest);
    };
    const auto for_rows = [&](auto&& visit) {
        for (Index i = 0; i < coefficients.rows(); ++i) {
            if (coefficients.row(i).empty()) continue;
            find_limits(i);
            visit(i);
        }
    };
    for (Index i = 0; i < coefficients.rows(); ++i) {
        for (const auto& [m, b] : coefficients.row(i)) excess[m] += b;
    }
    for_rows([&](Index i) {
        for (const auto& [m, b] : coefficients.row(i)) capacity[m] += room(m, b, excess[m] > 0.0);
    });
    std::vector<double> share(k, 0.0);
    for (Index m = 0; m < k; ++m) {
        if (capacity[m] != 0.0) share[m] = std::min(1.0, -excess[m] / capacity[m]);
    }
    Coefficients result(coefficients.rows());
    std::vector<Coefficients::Entry> moved;
    for_rows([&](Index i) {
        moved.clear();
        for (const auto& [m, b] : coefficients.row(i)) {
            moved.push_back({m, b + share[m] * room(m, b, excess[m] > 0.0)});
        }
        result.set(i, moved);
    });
    return result;
}

/// The sum nearest to zero that all classes can come to when no coefficient grows.
[[nodiscard]] inline double level_of(std::span<const double> positive, std::span<const double> negative) {
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (std::size_t m = 0; m < positive.size(); ++m) {
        least = std::min(least, positive[m] - negative[m]);
        most = std::max(most, positive[m] - negative[m]);
    }
    return least > 0.0 ? least : std::min(most, 0.0);
}

/// Coefficients near the given ones whose sums over the examples are zero for every class: what a free bias asks of a
/// point of the dual. None grows, so that all stay feasible.
///
/// Rows that sum to zero: coefficients are a flow from the class of the example to the others, which becomes a
/// circulation. Else a class has examples on two sides, and the heavier one gives in. Where scores sum to zero it is
/// enough that all sums are the same: the one nearest to zero.
template <RowLoss Loss>
Coefficients balanced(const LinearData& problem, const Coefficients& coefficients) {
    const Index k = problem.classes;
    const auto side = [&](Index i) { return Loss::kRowsSumToZero ? problem.labels[i] : Index{0}; };
    const Index sides = Loss::kRowsSumToZero ? k : 1;
    std::vector<double> positive(sides * k, 0.0), negative(sides * k, 0.0);
    for (Index i = 0; i < coefficients.rows(); ++i) {
        for (const auto& [m, b] : coefficients.row(i)) (b > 0.0 ? positive : negative)[side(i) * k + m] += std::abs(b);
    }
    std::vector<double> share(sides * k, 1.0), own_share(k, 1.0);  // of negative and of positive coefficients
    if (Loss::kRowsSumToZero) {
        const auto circulation = largest_circulation_below(negative, k);
        for (std::size_t e = 0; e < share.size(); ++e) {
            if (negative[e] > 0.0) share[e] = std::clamp(circulation[e] / negative[e], 0.0, 1.0);
        }
    } else {
        double level = 0.0;
        if constexpr (kScoresSumToZero<Loss>) level = level_of(positive, negative);
        for (Index m = 0; m < k; ++m) {
            if (negative[m] > 0.0) share[m] = std::clamp((positive[m] - level) / negative[m], 0.0, 1.0);
            if (positive[m] > 0.0) own_share[m] = std::clamp((negative[m] + level) / positive[m], 0.0, 1.0);
        }
    }
    Coefficients result(coefficients.rows());
    std::vector<Coefficients::Entry> row;
    for (Index i = 0; i < coefficients.rows(); ++i) {
        row.clear();
        double given = 0.0;
        for (const auto& [m, b] : coefficients.row(i)) {
            const double kept = b > 0.0 ? own_share[m] * b : share[side(i) * k + m] * b;
            given += kept < 0.0 ? -kept : 0.0;
            if (kept != 0.0) row.push_back({m, kept});
        }
        if (Loss::kRowsSumToZero) {
            for (auto& [m, b] : row) b = b > 0.0 ? std::min(b, given) : b;  // never more, not even by rounding
            std::erase_if(row, [](const auto& entry) { return entry.value == 0.0; });
        }
        result.set(i, row);
    }
    return result;
}

}  // namespace polymargin
