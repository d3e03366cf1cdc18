#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/types.hpp"

namespace polymargin {

/// A partition of the examples for cross-validation, with the bounds of the problems that leave one part out. Leaving
/// an example out is to give it the bound zero: its coefficient is zero then, and the gradient still has its score,
/// which is its decision value by a machine that has not seen it.
struct Folds {
    std::vector<Index> of;                         ///< the fold of each example in the engine's numbering, -1 for none
    std::vector<std::vector<double>> cost_bounds;  ///< for each fold: C_i, but zero for its own examples

    Folds(std::vector<Index> fold_of, std::span<const double> base_bounds) : of(std::move(fold_of)) {
        if (of.size() != base_bounds.size()) throw std::invalid_argument("every example needs a fold");
        const Index count = of.empty() ? 0 : *std::max_element(of.begin(), of.end()) + 1;
        cost_bounds.assign(count, {base_bounds.begin(), base_bounds.end()});
        for (std::size_t i = 0; i < of.size(); ++i) {
            if (of[i] >= 0) cost_bounds[of[i]][i] = 0.0;
        }
    }
};

}  // namespace polymargin
