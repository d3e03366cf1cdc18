#include "problem/multiclass.hpp"

#include <algorithm>
#include <cmath>

#include "support/multiversion.hpp"

namespace polymargin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// More than Newton's method ever needs; the bracket halves at least every other time.
constexpr int kMaxNewton = 200;
/// Gradients divided by less could overflow, and a row that curves so little is straight.
constexpr double kNoCurvature = 1e-290;

/// What the sum of a row is to be: what the level says, or `most` whatever the level.
struct Target {
    double largest;
    double most;
    double level;
    bool full;
};

struct Balance {
    double value;
    double slope;
};

/// The sum over z of clip(z - t, 0, largest), and how many are between the limits. A few lanes, so that sums do not
/// wait for each other.
POLYMARGIN_MULTIVERSION Balance clipped_sum(const double* z, Index count, double t, double largest) {
    constexpr Index lanes = 8;
    double sum[lanes] = {}, inner[lanes] = {};
    const auto take = [&](Index m, Index l) {
        const double a = z[m] - t, low = a > 0.0 ? a : 0.0;
        sum[l] += low < largest ? low : largest;
        inner[l] += a > 0.0 && a < largest ? 1.0 : 0.0;
    };
    Index m = 0;
    for (; m + lanes <= count; m += lanes) {
        for (Index l = 0; l < lanes; ++l) take(m + l, l);
    }
    for (; m < count; ++m) take(m, m % lanes);
    Balance total{0.0, 0.0};
    for (Index l = 0; l < lanes; ++l) {
        total.value += sum[l];
        total.slope += inner[l];
    }
    return total;
}

/// The same of a few numbers, for which the lanes cost more than they save.
Balance short_clipped_sum(std::span<const double> z, double t, double largest) {
    Balance total{0.0, 0.0};
    for (const double value : z) {
        const double a = value - t, low = a > 0.0 ? a : 0.0;
        total.value += low < largest ? low : largest;
        total.slope += a > 0.0 && a < largest ? 1.0 : 0.0;
    }
    return total;
}

/// sum_m clip(z_m - t, 0, largest) minus the target, and its slope: falls from positive to negative. The z of the own
/// class is minus infinity, which adds nothing.
Balance balance(std::span<const double> z, const Target& target, double t) {
    constexpr std::size_t few = 8;
    const auto [sum, inner] = z.size() <= few ? short_clipped_sum(z, t, target.largest)
                                              : clipped_sum(z.data(), std::ssize(z), t, target.largest);
    return target.full ? Balance{sum - target.most, -inner} : Balance{sum - target.level * t, -inner - target.level};
}

/// The zero of `balance` between `low` and `high`.
double find_level(std::span<const double> z, const Target& target, double start, double low, double high) {
    double t = start > low && start < high ? start : 0.5 * (low + high);
    for (int i = 0; i < kMaxNewton; ++i) {
        const auto [value, slope] = balance(z, target, t);
        (value > 0.0 ? low : high) = t;
        const double next = slope < 0.0 ? t - value / slope : kInfinity;
        // On the right piece Newton's step comes back to the same place.
        if (value == 0.0 || next == t) return t;
        const bool inside = next > low && next < high;
        const double chosen = inside ? next : 0.5 * (low + high);
        if (chosen == low || chosen == high) return inside ? next : t;
        t = chosen;
    }
    return t;
}

/// Without curvature the row goes to the end of its feasible set that the gradient points to.
bool linear_step(std::span<const double> gradient, Index label, const RowLimits& limits, std::span<double> beta) {
    const double own = gradient[label];
    double sum = 0.0;
    std::vector<Index> gaining;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m == label) continue;
        if (gradient[m] > own) gaining.push_back(m);
        if (gradient[m] > own) beta[m] = -limits.largest;
        if (gradient[m] < own) beta[m] = 0.0;
        sum -= beta[m];
    }
    if (!gaining.empty() && std::isinf(limits.most) && std::isinf(limits.largest)) return false;
    if (!gaining.empty() && sum > limits.most) {  // the classes that gain most share what there is
        std::fill(beta.begin(), beta.end(), 0.0);
        std::ranges::stable_sort(gaining, [&](Index a, Index b) { return gradient[a] > gradient[b]; });
        double left = limits.most;
        for (const Index m : gaining) {
            beta[m] = -std::min(limits.largest, left);
            left += beta[m];
        }
        sum = limits.most - left;
    }
    beta[label] = std::min(sum, limits.most);
    return true;
}

/// Take from the coefficients of wrong classes what their sum has too much, or add what it lacks: where each is at a
/// limit of its own, none of them stands for all. Returns what is left of the excess.
double spread_excess(std::span<double> beta, Index label, double largest, double excess) {
    for (Index m = 0; m < std::ssize(beta) && excess != 0.0; ++m) {
        if (m == label) continue;
        const double a = std::clamp(-beta[m] - excess, 0.0, largest);
        excess -= -beta[m] - a;
        beta[m] = -a;
    }
    return excess;
}

}  // namespace

bool exact_step(std::span<const double> gradient, double curvature, Index label, const RowLimits& limits,
                std::span<double> beta, double level) {
    if (!(curvature > kNoCurvature)) return linear_step(gradient, label, limits, beta);
    const double own = gradient[label], before = beta[label] / level;
    double lowest = kInfinity, highest = -kInfinity;
    // z takes the place of beta: nothing else is needed of it.
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m == label) continue;
        beta[m] = -beta[m] - (own - gradient[m]) / curvature + before;
        lowest = std::min(lowest, beta[m]);
        highest = std::max(highest, beta[m]);
    }
    if (!(highest > 0.0)) {
        std::fill(beta.begin(), beta.end(), 0.0);
        return true;
    }
    beta[label] = -kInfinity;
    double low = 0.0, high = highest, start = before;
    Target target{.largest = limits.largest, .most = limits.most, .level = level, .full = false};
    target.full = std::isfinite(limits.most) && balance(beta, target, limits.most).value >= 0.0;
    if (target.full) {
        // Only differences of z count. They may be nothing beside z itself: bring the highest down to 0.
        for (double& z : beta) z -= highest;
        low = -(limits.largest < limits.most ? limits.largest + highest - lowest : limits.most);
        high = start = 0.0;
    }
    const double t = find_level(beta, target, start, low, high);
    double sum = 0.0;
    Index inner = label;  // the largest of those between their limits
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m == label) continue;
        const double a = std::clamp(beta[m] - t, 0.0, limits.largest);
        beta[m] = -a;
        sum += a;
        if (a > 0.0 && a < limits.largest && (inner == label || a > -beta[inner])) inner = m;
    }
    // A sum that meets its limit gets the limit itself, not the limit plus rounding.
    if (target.full || sum > limits.most) {
        double excess = sum - limits.most;
        if (inner != label) {
            const double a = -beta[inner], corrected = std::clamp(a - excess, 0.0, limits.largest);
            beta[inner] = -corrected;
            excess = corrected > 0.0 && corrected < limits.largest ? 0.0 : excess - (a - corrected);
        }
        sum = limits.most + spread_excess(beta, label, limits.largest, excess);
    }
    beta[label] = sum;
    return true;
}

double rounding_of(const Example& example, std::span<const double> beta) {
    constexpr double bits = 64 * std::numeric_limits<double>::epsilon();
    double largest = 0.0;
    for (const double b : beta) largest = std::max(largest, std::abs(b));
    return bits * std::min(largest, example.cost_bound);
}

double smallest_margin(std::span<const double> scores, Index label, double required) {
    double rival = -kInfinity;
    for (Index m = 0; m < std::ssize(scores); ++m) {
        if (m != label) rival = std::max(rival, scores[m]);
    }
    return (scores[label] - rival) / required;
}

}  // namespace polymargin
