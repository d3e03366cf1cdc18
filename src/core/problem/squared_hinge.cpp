#include "problem/squared_hinge.hpp"

#include <cmath>
#include <vector>

namespace polymargin {
namespace {

static_assert(MulticlassLoss<SquaredWestonWatkins> && MulticlassLoss<SquaredCrammerSinger>);
static_assert(ShiftableLoss<SquaredOneVsRest>);

double squared_hinge(double shortfall) {
    return shortfall > 0.0 ? shortfall * shortfall : 0.0;
}

double sum_of_squares(std::span<const double> beta, Index without) {
    double square = 0.0;
    for (Index m = 0; m < std::ssize(beta); ++m) square += m == without ? 0.0 : beta[m] * beta[m];
    return square;
}

/// The row without coefficients, for a cost of zero.
bool nothing(std::span<double> beta) {
    std::ranges::fill(beta, 0.0);
    return true;
}

/// The wrong class with the highest gradient.
Index strongest_rival(std::span<const double> gradient, Index label) {
    Index rival = kNoClass;
    for (Index m = 0; m < std::ssize(gradient); ++m) {
        if (m != label && (rival == kNoClass || gradient[m] > gradient[rival])) rival = m;
    }
    return rival;
}

}  // namespace

double SquaredWestonWatkins::loss(std::span<const double> scores, Index label) const {
    double sum = 0.0;
    for (Index m = 0; m < std::ssize(scores); ++m) {
        if (m != label) sum += squared_hinge(margin_ - (scores[label] - scores[m]));
    }
    return sum;
}

/// With `r = 1 / 2C`, `h_m = g_y - g_m` and S the sum of the a, the conditions `h_m + (c + r) d_m + c d_S >= 0` are
/// those of `exact_step` for the curvature c + r: `a_m = max(0, a_m - h_m / (c + r) + S0 c / (c + r) - t)`, and the sum
/// is `t (c + r) / c`. Without c nothing is coupled.
bool SquaredWestonWatkins::step(std::span<const double> gradient, double curvature, const Example& example,
                                std::span<double> beta) const {
    if (!(example.cost_bound > 0.0)) return nothing(beta);
    const double ridge = squared_ridge(example.cost_bound), whole = curvature + ridge, level = whole / curvature;
    if (!(ridge > 0.0)) return exact_step(gradient, whole, example.label, {}, beta);
    if (std::isfinite(level)) return exact_step(gradient, whole, example.label, {}, beta, level);
    const double own = gradient[example.label];
    double sum = 0.0;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m == example.label) continue;
        beta[m] = std::min(0.0, beta[m] + (own - gradient[m]) / ridge);
        sum -= beta[m];
    }
    beta[example.label] = sum;
    return true;
}

double SquaredWestonWatkins::conjugate(std::span<const double> beta, const Example& example) const {
    return 0.5 * squared_ridge(example.cost_bound) * sum_of_squares(beta, example.label);
}

void SquaredWestonWatkins::conjugate_gradient(std::span<const double> beta, const Example& example,
                                              std::span<double> out) const {
    const double ridge = squared_ridge(example.cost_bound);
    for (Index m = 0; m < std::ssize(beta); ++m) out[m] = m == example.label ? 0.0 : ridge * beta[m];
}

/// As above, but `h_m + c d_m + (c + r) d_S >= 0`: `a_m = max(0, a_m - h_m / c + S0 (c + r) / c - t)`, and the sum is
/// `t c / (c + r)`. Without c all goes to the class that gains most.
bool SquaredCrammerSinger::step(std::span<const double> gradient, double curvature, const Example& example,
                                std::span<double> beta) const {
    if (!(example.cost_bound > 0.0)) return nothing(beta);
    const double ridge = squared_ridge(example.cost_bound), level = curvature / (curvature + ridge);
    if (!(ridge > 0.0)) return exact_step(gradient, curvature, example.label, {}, beta);
    if (std::isfinite(1.0 / level)) return exact_step(gradient, curvature, example.label, {}, beta, level);
    const Index rival = strongest_rival(gradient, example.label);
    if (rival == kNoClass) return true;
    const double gain = gradient[rival] - gradient[example.label];
    const double sum = std::max(0.0, beta[example.label] + gain / ridge);
    std::ranges::fill(beta, 0.0);
    beta[rival] = -sum;
    beta[example.label] = sum;
    return true;
}

double SquaredCrammerSinger::conjugate(std::span<const double> beta, const Example& example) const {
    return 0.5 * squared_ridge(example.cost_bound) * beta[example.label] * beta[example.label];
}

void SquaredCrammerSinger::conjugate_gradient(std::span<const double> beta, const Example& example,
                                              std::span<double> out) const {
    std::ranges::fill(out, 0.0);
    out[example.label] = squared_ridge(example.cost_bound) * beta[example.label];
}

double SquaredOneVsRest::loss(std::span<const double> scores, Index label) const {
    double sum = 0.0;
    for (Index m = 0; m < std::ssize(scores); ++m) sum += squared_hinge(1.0 + (m == label ? -scores[m] : scores[m]));
    return sum;
}

bool SquaredOneVsRest::step(std::span<const double> gradient, double curvature, const Example& example,
                            std::span<double> beta) const {
    if (!(example.cost_bound > 0.0)) return nothing(beta);
    const double whole = curvature + squared_ridge(example.cost_bound);
    if (!(whole > 0.0)) return hinge_.step(gradient, curvature, limited(example), beta);
    for (Index m = 0; m < std::ssize(beta); ++m) {
        const double b = beta[m] - gradient[m] / whole;
        beta[m] = m == example.label ? std::max(0.0, b) : std::min(0.0, b);
    }
    return true;
}

double SquaredOneVsRest::conjugate(std::span<const double> beta, const Example& example) const {
    return 0.5 * squared_ridge(example.cost_bound) * sum_of_squares(beta, kNoClass);
}

void SquaredOneVsRest::conjugate_gradient(std::span<const double> beta, const Example& example,
                                          std::span<double> out) const {
    const double ridge = squared_ridge(example.cost_bound);
    for (std::size_t m = 0; m < beta.size(); ++m) out[m] = ridge * beta[m];
}

double SquaredOneVsRest::best_shift(std::span<const double> scores, std::span<const Index> labels,
                                    std::span<const double> costs, Index m) const {
    struct Kink {
        double place, cost;  // the cost joins here, or leaves if it is negative
    };
    std::vector<Kink> kinks;
    double cost = 0.0, moment = 0.0;  // of those that are short: half of the slope at b is `cost b - moment`
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const bool own = labels[i] == m;
        kinks.push_back({(own ? 1.0 : -1.0) - scores[i], own ? -costs[i] : costs[i]});
        if (!own) continue;
        cost += costs[i];
        moment += costs[i] * kinks.back().place;
    }
    if (kinks.empty()) return 0.0;
    std::ranges::sort(kinks, {}, &Kink::place);
    double before = kinks.front().place;
    for (const Kink& kink : kinks) {
        if (!(cost * kink.place < moment)) {
            const bool flat = !(cost > 0.0);
            return flat ? 0.5 * (before + kink.place) : std::clamp(moment / cost, before, kink.place);
        }
        cost += kink.cost;
        moment += kink.cost * kink.place;
        before = kink.place;
    }
    return cost > 0.0 ? std::max(before, moment / cost) : before;
}

}  // namespace polymargin
