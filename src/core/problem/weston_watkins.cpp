#include "problem/weston_watkins.hpp"

#include <algorithm>

namespace polymargin {
namespace {

static_assert(MulticlassLoss<WestonWatkins>);

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

double WestonWatkins::loss(std::span<const double> scores, Index label) const {
    return loss_of(std::ssize(scores), label, [&](Index m) { return margin_ - (scores[label] - scores[m]); });
}

void WestonWatkins::make_feasible(const Example& example, std::span<double> beta) const {
    const double rounding = rounding_of(example, beta);
    double sum = 0.0;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m == example.label) continue;
        beta[m] = std::clamp(beta[m], -example.cost_bound, 0.0);
        if (-beta[m] <= rounding) beta[m] = 0.0;
        if (beta[m] + example.cost_bound <= rounding) beta[m] = -example.cost_bound;
        sum -= beta[m];
    }
    beta[example.label] = sum;
}

bool WestonWatkins::at_vertex(std::span<const double> beta, const Example& example) const {
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m != example.label && beta[m] < 0.0 && beta[m] > -example.cost_bound) return false;
    }
    return true;
}

std::vector<Direction> WestonWatkins::directions(std::span<const double> beta, const Example& example) const {
    std::vector<Direction> free;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m != example.label && beta[m] < 0.0 && beta[m] > -example.cost_bound) free.push_back({example.label, m});
    }
    return free;
}

double WestonWatkins::max_step(std::span<const double> beta, std::span<const double> change,
                               const Example& example) const {
    double share = kInfinity;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m == example.label) continue;
        if (change[m] > 0.0) share = std::min(share, -beta[m] / change[m]);
        if (change[m] < 0.0) share = std::min(share, (beta[m] + example.cost_bound) / -change[m]);
    }
    return share;
}

}  // namespace polymargin
