#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "support/types.hpp"

namespace polymargin {

/// The bounds of a problem that is solved for one cost after the other: multiples of `C_i`. They grow, so that the
/// solution for one is a feasible point for the next.
struct CostPath {
    std::vector<std::vector<double>> cost_bounds;  ///< for each cost: C_i
    std::vector<double> growth;                    ///< by which every bound has grown since the cost before, 1 at first

    CostPath(std::span<const double> factors, std::span<const double> base_bounds) {
        if (factors.empty() || !(factors.front() > 0.0) || !std::ranges::is_sorted(factors) ||
            !std::isfinite(factors.back())) {
            throw std::invalid_argument("the factors of a path of costs must be positive, finite and ascending");
        }
        for (const double factor : factors) {
            auto& scaled = cost_bounds.emplace_back(base_bounds.begin(), base_bounds.end());
            for (double& c : scaled) c *= factor;
            growth.push_back(growth.empty() ? 1.0 : least_growth(cost_bounds.end()[-2], scaled));
        }
    }

  private:
    static double least_growth(std::span<const double> before, std::span<const double> after) {
        double least = std::numeric_limits<double>::max();
        for (std::size_t i = 0; i < before.size(); ++i) {
            if (before[i] > 0.0) least = std::min(least, after[i] / before[i]);
        }
        return least;
    }
};

}  // namespace polymargin
