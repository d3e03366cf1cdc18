#include "problem/weston_watkins.hpp"

#include <algorithm>

#include "support/multiversion.hpp"

namespace polymargin {
namespace {

static_assert(MulticlassLoss<WestonWatkins>);

constexpr double kInfinity = std::numeric_limits<double>::infinity();

POLYMARGIN_MULTIVERSION void strip_violations(const ExampleStrip& strip, double* out) {
    constexpr Index lanes = 64;
    double highest[lanes], lowest[lanes], own[lanes];
    for (Index start = 0; start < strip.count; start += lanes) {
        const Index count = std::min(lanes, strip.count - start);
        const Index* label = strip.labels + start;
        const double* bound = strip.bounds + start;
        std::fill_n(highest, count, -kInfinity);
        std::fill_n(lowest, count, kInfinity);
        for (Index m = 0; m < strip.gradient.classes; ++m) {
            const double* g = strip.gradient.row(m) + start;
            const double* b = strip.beta.row(m) + start;
            for (Index i = 0; i < count; ++i) {
                const bool mine = label[i] == m;
                // b = -a falls when a grows
                const double top = !mine && b[i] > -bound[i] ? g[i] : -kInfinity;
                const double bottom = !mine && b[i] < 0.0 ? g[i] : kInfinity;
                highest[i] = top > highest[i] ? top : highest[i];
                lowest[i] = bottom < lowest[i] ? bottom : lowest[i];
                own[i] = mine ? g[i] : own[i];
            }
        }
        for (Index i = 0; i < count; ++i) {
            const double grow = highest[i] - own[i], fall = own[i] - lowest[i];
            const double worst = grow > fall ? grow : fall;
            out[start + i] = worst > 0.0 ? worst : 0.0;
        }
    }
}

}  // namespace

double WestonWatkins::loss(std::span<const double> scores, Index label) const {
    double sum = 0.0;
    for (Index m = 0; m < std::ssize(scores); ++m) {
        if (m != label) sum += std::max(0.0, margin_ - (scores[label] - scores[m]));
    }
    return sum;
}

void WestonWatkins::violations(const ExampleStrip& strip, double* out) const {
    strip_violations(strip, out);
}

void WestonWatkins::make_feasible(const Example& example, std::span<double> beta) const {
    const double rounding = rounding_of(example, beta);
    double sum = 0.0;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m == example.label) continue;
        beta[m] = std::clamp(beta[m], -example.bound, 0.0);
        if (-beta[m] <= rounding) beta[m] = 0.0;
        if (beta[m] + example.bound <= rounding) beta[m] = -example.bound;
        sum -= beta[m];
    }
    beta[example.label] = sum;
}

bool WestonWatkins::at_rest(std::span<const double> beta, const Example& example) const {
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m != example.label && beta[m] < 0.0 && beta[m] > -example.bound) return false;
    }
    return true;
}

std::vector<Exchange> WestonWatkins::exchanges(std::span<const double> beta, const Example& example) const {
    std::vector<Exchange> free;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m != example.label && beta[m] < 0.0 && beta[m] > -example.bound) free.push_back({example.label, m});
    }
    return free;
}

double WestonWatkins::room(std::span<const double> beta, std::span<const double> change, const Example& example) const {
    double share = kInfinity;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m == example.label) continue;
        if (change[m] > 0.0) share = std::min(share, -beta[m] / change[m]);
        if (change[m] < 0.0) share = std::min(share, (beta[m] + example.bound) / -change[m]);
    }
    return share;
}

}  // namespace polymargin
