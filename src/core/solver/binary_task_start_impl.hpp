#pragma once

// The member functions of `BinaryTask` that look for a point to begin a path of costs with; included by its source
// alone.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "solver/binary_task.hpp"

namespace polymargin {

/// Begin with every coefficient at the same share of its limit, as large as the balance of both sides allows. Where the
/// smallest cost lets most examples reach their limits, that is almost the solution, which takes a step for each
/// example from zero. A few examples show whether it is; if not, the problem begins at zero.
template <class Real>
void BinaryTask<Real>::start_evenly() {
    if (path_ == nullptr || hard_ || problem_.squared || !pending_.empty()) return;
    double sides[2] = {};
    for (const Run& run : runs_) {
        const auto bounds = cost_bounds_.subspan(run.global, run.size);
        sides[run.sign > 0] = std::accumulate(bounds.begin(), bounds.end(), sides[run.sign > 0]);
    }
    const double total = std::min(sides[0], sides[1]);
    if (!(total > 0.0)) return;
    std::vector<double> beta(problem_.size());
    std::vector<Index> moved;
    for (const Run& run : runs_) {
        const double share = total / sides[run.sign > 0];
        for (Index i = 0; i < run.size; ++i) {
            const Index t = run.local + i;
            beta[t] = run.sign * share * cost_bounds_[run.global + i];
            if (beta[t] != 0.0) moved.push_back(t);
        }
    }
    if (!is_good_start(beta, moved)) return;
    std::vector<double> change;
    for (const Index t : moved) change.push_back(state_.beta[t] = beta[t]);
    add_to_gradient(moved, change);
    fresh_ = false;
}

/// Whether the score of an example is mostly its own doing, as far as a few of them show, taken evenly from all that
/// take part: then all are much alike at the solution, and that is what the coefficients are.
template <class Real>
bool BinaryTask<Real>::is_good_start(std::span<const double> beta, std::span<const Index> taking_part) const {
    const Index count = std::min(settings_.examples_of_start, std::ssize(taking_part));
    const auto shown = [&](Index i) { return taking_part[i * std::ssize(taking_part) / count]; };
    const auto alone = [&](Index t) {
        const Real* row = tables_[segment_of(t)][segment_of(t)]->row(global_of(t));
        return row == nullptr ? 0.0 : beta[t] * row[t - offsets_[segment_of(t)]];
    };
    double own = 0.0, others = 0.0;
    for (Index i = 0; i < count; ++i) own += std::abs(alone(shown(i)));
    for (Index i = 0; i < count && others <= settings_.share_of_others * own; ++i) {
        const Index t = shown(i);
        double score = 0.0;
        for (std::size_t b = 0; b < offsets_.size(); ++b) {
            const Real* row = tables_[segment_of(t)][b]->row(global_of(t));
            if (row == nullptr) return false;  // not worth computing
            score += std::inner_product(row, row + segments_[b].size(), beta.begin() + offsets_[b], 0.0);
        }
        others += std::abs(score - alone(t));
    }
    return others <= settings_.share_of_others * own;
}

}  // namespace polymargin
