#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <vector>

#include "support/types.hpp"

namespace polymargin {

/// The bounds of a problem that is solved for one cost after the other: multiples of `C_i`. They grow, so that the
/// solution for one is a feasible point for the next.
struct CostPath {
    std::vector<std::vector<double>> cost_bounds;  ///< for each cost: C_i

    CostPath(std::span<const double> factors, std::span<const double> base_bounds) {
        if (factors.empty() || !(factors.front() > 0.0) || !std::ranges::is_sorted(factors) ||
            !std::isfinite(factors.back())) {
            throw std::invalid_argument("the factors of a path of costs must be positive, finite and ascending");
        }
        for (const double factor : factors) {
            auto& scaled = cost_bounds.emplace_back(base_bounds.begin(), base_bounds.end());
            for (double& c : scaled) c *= factor;
        }
    }
};

}  // namespace polymargin
