#include "problem/one_vs_rest.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

namespace polymargin {
namespace {

static_assert(SeparableLoss<OneVsRest>);

struct Interval {
    double low, high;
};

Interval limits(Index m, const Example& example) {
    return m == example.label ? Interval{0.0, example.cost_bound} : Interval{-example.cost_bound, 0.0};
}

}  // namespace

bool OneVsRest::step(std::span<const double> gradient, double curvature, const Example& example,
                     std::span<double> beta) const {
    for (Index m = 0; m < std::ssize(beta); ++m) {
        const auto [low, high] = limits(m, example);
        if (curvature > 0.0) {
            beta[m] = std::clamp(beta[m] - gradient[m] / curvature, low, high);
        } else if (gradient[m] != 0.0) {
            beta[m] = gradient[m] > 0.0 ? low : high;
        }
        if (std::isinf(beta[m])) return false;
    }
    return true;
}

void OneVsRest::make_feasible(const Example& example, std::span<double> beta) const {
    for (Index m = 0; m < std::ssize(beta); ++m) {
        const auto [low, high] = limits(m, example);
        beta[m] = std::clamp(beta[m], low, high);
    }
}

bool OneVsRest::at_vertex(std::span<const double> beta, const Example& example) const {
    for (Index m = 0; m < std::ssize(beta); ++m) {
        const auto [low, high] = limits(m, example);
        if (beta[m] > low && beta[m] < high) return false;
    }
    return true;
}

double OneVsRest::best_shift(std::span<const double> scores, std::span<const Index> labels,
                             std::span<const double> cost_bounds, Index m) const {
    std::vector<std::pair<double, double>> kinks;  // where the slope grows, and by how much
    kinks.reserve(scores.size());
    double slope = 0.0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const bool own = labels[i] == m;
        kinks.emplace_back((own ? 1.0 : -1.0) - scores[i], cost_bounds[i]);
        if (own) slope -= cost_bounds[i];
    }
    // The first kink from which the slope is not negative, by halves: only the one that it is in is looked at further.
    auto low = kinks.begin(), high = kinks.end();
    while (low != high) {
        const auto middle = low + (high - low) / 2;
        std::nth_element(low, middle, high);
        double beyond = slope;
        for (auto t = low; t <= middle; ++t) beyond += t->second;
        if (beyond < 0.0) {
            slope = beyond;
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == kinks.end()) return kinks.empty() ? 0.0 : std::prev(low)->first;
    const bool flat = slope + low->second == 0.0 && low + 1 != kinks.end();
    return flat ? 0.5 * (low->first + std::min_element(low + 1, kinks.end())->first) : low->first;
}

}  // namespace polymargin
