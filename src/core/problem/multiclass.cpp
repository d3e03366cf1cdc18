#include "problem/multiclass.hpp"

#include <algorithm>
#include <cmath>

namespace polymargin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// More than Newton's method ever needs; the bracket halves at least every other time.
constexpr int kMaxNewton = 200;

/// sum_m clip(z_m - t, 0, largest) - min(t, most): falls from positive to negative; the slope goes to `slope`.
double balance(std::span<const double> z, Index label, const RowLimits& limits, double t, double& slope) {
    double sum = t < limits.most ? -t : -limits.most;
    slope = t < limits.most ? -1.0 : 0.0;
    for (Index m = 0; m < std::ssize(z); ++m) {
        if (m == label) continue;
        const double a = z[m] - t;
        sum += std::clamp(a, 0.0, limits.largest);
        slope -= a > 0.0 && a < limits.largest ? 1.0 : 0.0;
    }
    return sum;
}

/// The zero of `balance` between 0 and the largest z.
double find_level(std::span<const double> z, Index label, const RowLimits& limits, double start, double highest) {
    double low = 0.0, high = highest;
    double t = start > low && start < high ? start : 0.5 * high;
    for (int i = 0; i < kMaxNewton; ++i) {
        double slope = 0.0;
        const double value = balance(z, label, limits, t, slope);
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
    Index best = label;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m == label) continue;
        if (gradient[m] > gradient[best]) best = m;
        if (gradient[m] > own) beta[m] = -limits.largest;
        if (gradient[m] < own) beta[m] = 0.0;
        sum -= beta[m];
    }
    if (best != label && std::isinf(limits.most) && std::isinf(limits.largest)) return false;
    if (sum > limits.most) {  // all that there is goes to the class that gains most
        for (double& b : beta) b = 0.0;
        beta[best] = -limits.most;
        sum = limits.most;
    }
    beta[label] = sum;
    return true;
}

}  // namespace

bool exact_step(std::span<const double> gradient, double curvature, Index label, const RowLimits& limits,
                std::span<double> beta) {
    if (!(curvature > 0.0)) return linear_step(gradient, label, limits, beta);
    const double own = gradient[label], before = beta[label];
    double highest = -kInfinity;
    // z takes the place of beta: nothing else is needed of it.
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m == label) continue;
        beta[m] = -beta[m] - (own - gradient[m]) / curvature + before;
        highest = std::max(highest, beta[m]);
    }
    if (!(highest > 0.0)) {
        std::fill(beta.begin(), beta.end(), 0.0);
        return true;
    }
    const double t = find_level(beta, label, limits, before, highest);
    double sum = 0.0;
    Index largest = label;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (m == label) continue;
        beta[m] = -std::clamp(beta[m] - t, 0.0, limits.largest);
        sum -= beta[m];
        if (largest == label || beta[m] < beta[largest]) largest = m;
    }
    // A sum that meets its limit gets the limit itself, not the limit plus rounding.
    if (t >= limits.most) {
        beta[largest] = std::min(0.0, beta[largest] - (limits.most - sum));
        sum = limits.most;
    }
    beta[label] = sum;
    return true;
}

double smallest_margin(std::span<const double> scores, Index label, double required) {
    double rival = -kInfinity;
    for (Index m = 0; m < std::ssize(scores); ++m) {
        if (m != label) rival = std::max(rival, scores[m]);
    }
    return (scores[label] - rival) / required;
}

}  // namespace polymargin
