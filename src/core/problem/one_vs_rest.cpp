#include "problem/one_vs_rest.hpp"

#include <cmath>

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

}  // namespace polymargin
