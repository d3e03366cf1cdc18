#include "problem/absolute_margins.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace polymargin {
namespace {

static_assert(MulticlassLoss<AbsoluteSum> && MulticlassLoss<AbsoluteMaximum>);
static_assert(AbsoluteLimitedLoss<AbsoluteSum> && AbsoluteLimitedLoss<AbsoluteMaximum>);
static_assert(!SeparableLoss<AbsoluteSum> && !LimitedLoss<AbsoluteSum>);

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// More than Newton's method ever needs; the bracket halves at least every other time.
constexpr int kMaxNewton = 200;
/// As in `exact_step`: gradients divided by less could overflow.
constexpr double kNoCurvature = 1e-290;
constexpr double kRounding = 4 * std::numeric_limits<double>::epsilon();

double sigma(Index m, Index label) {
    return m == label ? 1.0 : -1.0;
}

struct Line {
    double value, slope;
};

/// A zero of a piecewise linear function that does not grow, between `low` and `high`; what is below `rounding` is
/// zero.
template <class Function>
double falling_zero(Function&& function, double start, double low, double high, double rounding) {
    double t = std::clamp(start, low, high);
    for (int i = 0; i < kMaxNewton; ++i) {
        const auto [value, slope] = function(t);
        if (std::abs(value) <= rounding) return t;
        (value > 0.0 ? low : high) = t;
        const double next = slope < 0.0 ? t - value / slope : kInfinity;
        if (next == t) return t;
        const bool inside = next > low && next < high;
        const double chosen = inside ? next : 0.5 * (low + high);
        if (chosen == low || chosen == high) return inside ? next : t;
        t = chosen;
    }
    return t;
}

/// Without curvature coefficients go to where their gradients point; false if there is no end.
bool straight_step(std::span<const double> gradient, Index label, const AbsoluteLimits& limits, double most,
                   std::span<double> beta) {
    std::vector<Index> gaining;
    double sum = 0.0;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        const double s = sigma(m, label), limit = m == label ? limits.own : limits.others;
        if (s * gradient[m] > 0.0) beta[m] = 0.0;
        if (s * gradient[m] < 0.0 && limit > 0.0) {
            gaining.push_back(m);
            beta[m] = s * limit;
        }
        sum += s * beta[m];
    }
    if (gaining.empty() || sum <= most) return !std::isinf(sum);
    if (std::isinf(most)) return false;
    // The class that gains most has all there is.
    const auto gain = [&](Index m) { return -sigma(m, label) * gradient[m]; };
    const Index best = *std::ranges::max_element(gaining, {}, gain);
    std::ranges::fill(beta, 0.0);
    beta[best] = sigma(best, label) * most;
    return true;
}

/// z in the place of the row, and its sum as it was.
double to_targets(std::span<const double> gradient, double curvature, std::span<double> beta) {
    const double sum = std::accumulate(beta.begin(), beta.end(), 0.0);
    for (std::size_t m = 0; m < beta.size(); ++m) beta[m] -= gradient[m] / curvature;
    return sum;
}

double size_of(std::span<const double> z, double sum) {
    return std::accumulate(z.begin(), z.end(), std::abs(sum), [](double s, double v) { return s + std::abs(v); });
}

/// From z to the best row of a box.
void to_box(Index label, const AbsoluteLimits& limits, double sum, std::span<double> z) {
    const auto k = static_cast<double>(z.size());
    // Below the one no limit is met but those that make the balance larger; above the other no wrong class is used.
    double low = -z[label], high = -sum / k, others = 0.0;
    for (Index m = 0; m < std::ssize(z); ++m) {
        if (m == label) continue;
        low = std::min(low, -z[m]);
        high = std::max(high, -z[m]);
        others += z[m];
    }
    low = std::min(low, others - sum);
    if (z.size() > 1) high = std::max(high, (z[label] - sum) / (k - 1.0));
    const auto coefficient = [&](Index m, double tau) {
        return m == label ? std::clamp(z[m] + tau, 0.0, limits.own) : -std::clamp(-(z[m] + tau), 0.0, limits.others);
    };
    const auto balance = [&](double tau) {
        Line line{-sum - k * tau, -k};
        for (Index m = 0; m < std::ssize(z); ++m) {
            const double b = coefficient(m, tau), limit = m == label ? limits.own : limits.others;
            line.value += b;
            line.slope += b != 0.0 && std::abs(b) < limit ? 1.0 : 0.0;
        }
        return line;
    };
    const double tau = falling_zero(balance, 0.0, low, high, kRounding * size_of(z, sum));
    for (Index m = 0; m < std::ssize(z); ++m) z[m] = coefficient(m, tau);
}

/// From z to the best row whose multipliers have the sum `most`.
void to_full(Index label, bool counts, double most, double sum, std::span<double> z) {
    const auto k = static_cast<double>(z.size());
    // Only differences count, and they may be nothing beside z itself.
    double top = -kInfinity;
    for (Index m = 0; m < std::ssize(z); ++m) {
        if (m != label) top = std::max(top, -z[m]);
    }
    const auto below = [&](Index m) { return -z[m] - top; };
    const double own_target = z[label] - 2.0 * (most + sum) / k - top;  // of a_y, less its own part and lambda
    const auto others = [&](double lambda) {
        Line line{0.0, 0.0};
        for (Index m = 0; m < std::ssize(z); ++m) {
            const double a = m == label ? 0.0 : below(m) - lambda;
            line.value += a > 0.0 ? a : 0.0;
            line.slope -= a > 0.0 ? 1.0 : 0.0;
        }
        return line;
    };
    const auto without_own = [&](double lambda) {
        const auto [value, slope] = others(lambda);
        return Line{value - most, slope};
    };
    const double rounding = kRounding * most;
    double lambda = falling_zero(without_own, 0.0, -most, 0.0, rounding), own = 0.0;
    const double share = 1.0 - 4.0 / k;  // of a_y - 2 tau in a_y
    if (counts && own_target > lambda) {
        const auto with_own = [&](double at) {
            const auto [value, slope] = others(at);
            return Line{own_target - at - share * (most - value), share * slope - 1.0};
        };
        lambda = falling_zero(with_own, lambda, lambda, std::max(0.0, own_target - share * most), rounding);
        own = std::clamp(most - others(lambda).value, 0.0, most);
    }
    double left = most - own;
    Index largest = label;
    for (Index m = 0; m < std::ssize(z); ++m) {
        if (m == label) continue;
        const double a = std::max(0.0, below(m) - lambda);
        z[m] = -a;
        left -= a;
        if (a > 0.0 && (largest == label || a > -z[largest])) largest = m;
    }
    // A sum that meets its limit gets the limit itself, not the limit plus rounding.
    if (largest != label) z[largest] = std::min(0.0, z[largest] - left);
    z[label] = own;
}

}  // namespace

bool absolute_box_step(std::span<const double> gradient, double curvature, Index label, const AbsoluteLimits& limits,
                       std::span<double> beta) {
    if (!(curvature > kNoCurvature)) return straight_step(gradient, label, limits, kInfinity, beta);
    const double sum = to_targets(gradient, curvature, beta);
    to_box(label, limits, sum, beta);
    return true;
}

bool absolute_sum_step(std::span<const double> gradient, double curvature, Index label, bool counts, double most,
                       std::span<double> beta) {
    const AbsoluteLimits limits{counts ? kInfinity : 0.0, kInfinity};
    if (!(curvature > kNoCurvature)) return straight_step(gradient, label, limits, most, beta);
    const double sum = to_targets(gradient, curvature, beta);
    const std::vector<double> z(beta.begin(), beta.end());
    to_box(label, limits, sum, beta);
    double total = 0.0;
    for (const double b : beta) total += std::abs(b);
    if (total <= most) return true;
    std::ranges::copy(z, beta.begin());
    to_full(label, counts, most, sum, beta);
    return true;
}

double AbsoluteSum::loss(std::span<const double> scores, Index label) const {
    return loss_of(std::ssize(scores), label,
                   [&](Index m) { return m == label ? own_target_ - scores[m] : 1.0 + scores[m]; });
}

double AbsoluteSum::margin(std::span<const double> scores, Index label) const {
    double smallest = own_ > 0.0 ? scores[label] / own_target_ : kInfinity;
    for (Index m = 0; m < std::ssize(scores) && others_ > 0.0; ++m) {
        if (m != label) smallest = std::min(smallest, -scores[m]);
    }
    return smallest;
}

void AbsoluteSum::make_feasible(const Example& example, std::span<double> beta) const {
    const double rounding = rounding_of(example, beta);
    const auto [own, others] = limits(example);
    for (Index m = 0; m < std::ssize(beta); ++m) {
        const double s = sigma(m, example.label), limit = m == example.label ? own : others;
        double a = std::clamp(s * beta[m], 0.0, limit);
        if (a <= rounding) a = 0.0;
        if (limit - a <= rounding) a = limit;
        beta[m] = a == 0.0 ? 0.0 : s * a;
    }
}

bool AbsoluteSum::at_vertex(std::span<const double> beta, const Example& example) const {
    const auto [own, others] = limits(example);
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (beta[m] != 0.0 && std::abs(beta[m]) < (m == example.label ? own : others)) return false;
    }
    return true;
}

std::vector<Direction> AbsoluteSum::directions(std::span<const double> beta, const Example& example) const {
    const auto [own, others] = limits(example);
    std::vector<Direction> free;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (beta[m] == 0.0 || !(std::abs(beta[m]) < (m == example.label ? own : others))) continue;
        free.push_back(m == example.label ? Direction{m, kNoClass} : Direction{kNoClass, m});
    }
    return free;
}

double AbsoluteSum::max_step(std::span<const double> beta, std::span<const double> change,
                             const Example& example) const {
    const auto [own, others] = limits(example);
    double share = kInfinity;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        const double s = sigma(m, example.label), limit = m == example.label ? own : others;
        const double a = s * beta[m], by = s * change[m];
        if (by < 0.0) share = std::min(share, a / -by);
        if (by > 0.0) share = std::min(share, (limit - a) / by);
    }
    return share;
}

double AbsoluteMaximum::loss(std::span<const double> scores, Index label) const {
    return loss_of(std::ssize(scores), label, [&](Index m) { return 1.0 + (m == label ? -scores[m] : scores[m]); });
}

double AbsoluteMaximum::margin(std::span<const double> scores, Index label) const {
    double smallest = own_ ? scores[label] : kInfinity;
    for (Index m = 0; m < std::ssize(scores); ++m) {
        if (m != label) smallest = std::min(smallest, -scores[m]);
    }
    return smallest;
}

double AbsoluteMaximum::multiplier(std::span<const double> gradient, std::span<const double> beta,
                                   const Example& example) const {
    double total = 0.0, highest = -kInfinity, lowest = kInfinity;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        const double h = sigma(m, example.label) * gradient[m];
        total += std::abs(beta[m]);
        if (beta[m] != 0.0) highest = std::max(highest, h);
        if (m != example.label || own_) lowest = std::min(lowest, h);
    }
    return highest > -kInfinity && is_full(total, example.cost_bound) ? std::max(0.0, -0.5 * (highest + lowest)) : 0.0;
}

void AbsoluteMaximum::make_feasible(const Example& example, std::span<double> beta) const {
    const double rounding = rounding_of(example, beta);
    double sum = 0.0;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        const bool own = m == example.label;
        const double a = own && !own_ ? 0.0 : sigma(m, example.label) * beta[m];
        if (!(a > rounding)) beta[m] = 0.0;
        sum += std::abs(beta[m]);
    }
    // As with a sum on one side: a full row stays full whatever the rounding.
    if (sum > example.cost_bound - rounding) {
        const double share = sum > 0.0 ? example.cost_bound / sum : 0.0;
        for (double& b : beta) b *= share;
    }
}

bool AbsoluteMaximum::at_vertex(std::span<const double> beta, const Example& example) const {
    double total = 0.0;
    Index used = 0;
    for (const double b : beta) {
        total += std::abs(b);
        used += b != 0.0;
    }
    return used == 0 || (used == 1 && is_full(total, example.cost_bound));
}

std::vector<Direction> AbsoluteMaximum::directions(std::span<const double> beta, const Example& example) const {
    std::vector<Direction> free;
    double total = 0.0;
    for (const double b : beta) total += std::abs(b);
    const bool full = is_full(total, example.cost_bound);
    Index partner = kNoClass;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        if (beta[m] == 0.0) continue;
        if (!full) {
            free.push_back(m == example.label ? Direction{m, kNoClass} : Direction{kNoClass, m});
        } else if (m != example.label) {
            // At the limit of the sum all exchange with the first of the wrong classes.
            if (partner != kNoClass) free.push_back({partner, m});
            if (partner == kNoClass) partner = m;
        }
    }
    if (partner != kNoClass && beta[example.label] != 0.0) free.push_back({example.label, kNoClass, partner});
    return free;
}

double AbsoluteMaximum::max_step(std::span<const double> beta, std::span<const double> change,
                                 const Example& example) const {
    double share = kInfinity, total = 0.0, by = 0.0, size = 0.0;
    for (Index m = 0; m < std::ssize(beta); ++m) {
        const double s = sigma(m, example.label);
        if (s * change[m] < 0.0) share = std::min(share, beta[m] / -change[m]);
        total += std::abs(beta[m]);
        by += s * change[m];
        size += std::abs(change[m]);
    }
    // Of an exchange rounding alone is left of the sum.
    if (by > (1.0 - kFull) * size) share = std::min(share, std::max(0.0, example.cost_bound - total) / by);
    return share;
}

}  // namespace polymargin
