#include "problem/crammer_singer.hpp"

#include <algorithm>

namespace polymargin {
namespace {

static_assert(MulticlassLoss<CrammerSinger>);

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

double CrammerSinger::loss(std::span<const double> scores, Index label) const {
    return loss_of(std::ssize(scores), label, [&](Index m) { return 1.0 + scores[m] - scores[label]; });
}

void CrammerSinger::make_feasible(const Example& example, std::span<double> beta) const {
    const double rounding = rounding_of(example, beta);
    double sum = 0.0;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m != example.label) sum -= beta[m] = -beta[m] > rounding ? beta[m] : 0.0;
    }
    // A full row stays full whatever the rounding of its sum: off the limit it would violate by all of its loss.
    if (sum > example.cost_bound - rounding) {
        const double share = example.cost_bound / sum;
        for (double& b : beta) b = std::max(b * share, -example.cost_bound);  // a single one may round beyond it
        sum = example.cost_bound;
    }
    beta[example.label] = sum;
}

bool CrammerSinger::at_vertex(std::span<const double> beta, const Example& example) const {
    Index used = 0;
    for (Index m = 0; m < std::ssize(beta); ++m) used += m != example.label && beta[m] < 0.0;
    return used == 0 || (used == 1 && !(beta[example.label] < example.cost_bound));
}

std::vector<Direction> CrammerSinger::directions(std::span<const double> beta, const Example& example) const {
    std::vector<Direction> free;
    // At the limit of the sum the wrong classes exchange with the first of them, else with the right one.
    const bool full = !(beta[example.label] < example.cost_bound);
    Index partner = full ? -1 : example.label;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m == example.label || !(beta[m] < 0.0)) continue;
        if (partner < 0) {
            partner = m;
        } else {
            free.push_back({partner, m});
        }
    }
    return free;
}

double CrammerSinger::max_step(std::span<const double> beta, std::span<const double> change,
                               const Example& example) const {
    double share = kInfinity;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        const double limit = m == example.label ? example.cost_bound : 0.0;
        if (change[m] > 0.0) share = std::min(share, (limit - beta[m]) / change[m]);
    }
    return share;
}

}  // namespace polymargin
