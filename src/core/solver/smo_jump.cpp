#include "solver/smo_jump.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "solver/accumulate.hpp"

namespace polymargin {

template <class Real>
typename SmoJump<Real>::Outcome SmoJump<Real>::operator()(int most) {
    cost_ = 0.0;
    steps_ = 0;
    if (!find_free()) return Outcome::impossible;
    const bool followed = follow();
    if (!followed && !factorise()) return Outcome::impossible;
    const Outcome outcome = go(most);
    if (outcome != Outcome::impossible || !followed || !factorise()) return outcome;
    return go(most);  // rounding has not seen the new factor
}

template <class Real>
bool SmoJump<Real>::find_free() {
    free_.clear();
    for (Index t = 0; t < block_.size; ++t) {
        const double b = block_.beta.data()[t], lower = block_.lower.data()[t], upper = block_.upper.data()[t];
        if (!(b > lower && b < upper)) continue;
        // Without a ridge nothing would stop it short of losing all digits.
        if (std::isinf(upper - lower) && (block_.ridge.empty() || !(block_.ridge[t] > 0.0))) return false;
        free_.push_back(t);
    }
    return std::ssize(free_) >= 2 && std::ssize(free_) <= settings_.most_free;
}

template <class Real>
double SmoJump<Real>::price() {
    if (!find_free()) return 0.0;
    const auto m = static_cast<double>(free_.size());
    return m * m * m / 6 + m * static_cast<double>(block_.size);
}

/// The number of the system that belongs to two of its variables.
template <class Real>
double SmoJump<Real>::entry(Index a, Index b) const {
    const Real* row_p = block_.row(pivot_);
    return block_.value(a, b) - row_p[a] - row_p[b] + block_.value(pivot_, pivot_);
}

/// Begin with a factor for the variables that are free now. The one farthest from its bounds is p: with any other the
/// factor can go on.
template <class Real>
bool SmoJump<Real>::factorise() {
    const auto room = [this](Index t) {
        const double b = block_.beta.data()[t];
        return std::min(b - block_.lower.data()[t], block_.upper.data()[t] - b);
    };
    pivot_ = *std::ranges::max_element(free_, {}, room);
    order_ = free_;
    std::erase(order_, pivot_);
    const Index m = std::ssize(order_);
    double largest = 0.0;
    for (const Index a : order_) largest = std::max(largest, entry(a, a));
    ridge_ = largest * static_cast<double>(m) * std::numeric_limits<Real>::epsilon();
    const auto fill = [this, m](Index k, double* out) {
        for (Index r = k; r < m; ++r) *out++ = entry(order_[k], order_[r]) + (r == k ? ridge_ : 0.0);
    };
    for (int attempt = 0; attempt < settings_.attempts && !stopped(); ++attempt, ridge_ *= settings_.larger_ridge) {
        cost_ += static_cast<double>(m * m) * static_cast<double>(m) / 6;
        if (factor_.factorise(m, fill)) return true;
    }
    return false;
}

/// Bring the factor up to date, if that costs less than a new one.
template <class Real>
bool SmoJump<Real>::follow() {
    if (factor_.size() == 0) return false;
    std::vector<char> is_new(block_.size, 0);
    for (const Index t : free_) is_new[t] = 1;
    if (!is_new[pivot_]) return false;
    is_new[pivot_] = 0;
    const auto gone = std::ranges::count_if(order_, [&](Index t) { return !is_new[t]; });
    const Index changes = std::ssize(free_) - 1 - std::ssize(order_) + 2 * gone;
    if (changes * settings_.change_cost > std::ssize(free_)) return false;
    for (Index k = std::ssize(order_) - 1; k >= 0; --k) {
        if (!std::exchange(is_new[order_[k]], 0)) {
            factor_.remove(k);
            order_.erase(order_.begin() + k);
        }
    }
    std::vector<double> values;
    for (const Index t : free_) {
        if (!is_new[t]) continue;
        values.clear();
        for (const Index other : order_) values.push_back(entry(t, other));
        if (!factor_.append(values, entry(t, t) + ridge_)) return false;
        order_.push_back(t);
    }
    const auto m = static_cast<double>(order_.size());
    cost_ += static_cast<double>(changes) * m * m;
    return true;
}

/// Steps until one arrives; if together they gain nothing, all is as it was.
template <class Real>
typename SmoJump<Real>::Outcome SmoJump<Real>::go(int most) {
    const double f_p = block_.f.data()[pivot_];
    right_.clear();
    before_.clear();
    for (const Index a : order_) right_.push_back(f_p - block_.f.data()[a]);
    free_ = order_;
    free_.push_back(pivot_);
    for (const Index t : free_) before_.push_back(block_.beta.data()[t]);
    Outcome outcome = Outcome::blocked;
    for (steps_ = 0; outcome == Outcome::blocked && factor_.size() > 0 && steps_ < most && !stopped(); ++steps_) {
        outcome = step();
    }
    if (settle()) return outcome;
    for (std::size_t a = 0; a < free_.size(); ++a) block_.beta.data()[free_[a]] = before_[a];
    factor_.clear();
    steps_ = 0;
    return Outcome::impossible;
}

template <class Real>
typename SmoJump<Real>::Outcome SmoJump<Real>::step() {
    solve();
    const Index blocking = move();
    if (blocking < 0) return Outcome::arrived;
    if (blocking < std::ssize(order_)) {
        leave(blocking);
    } else {
        factor_.clear();  // p itself
    }
    return Outcome::blocked;
}

/// Solve for the step. All bounds being finite, one that is too long does no harm: it ends at one of them.
template <class Real>
void SmoJump<Real>::solve() {
    step_ = right_;
    factor_.solve(step_);
    step_.push_back(-std::accumulate(step_.begin(), step_.end(), 0.0));
    const auto m = static_cast<double>(step_.size());
    cost_ += m * m;
}

/// Move to where the objective is least along the step, which is its end but for the ridge, or to the first bound; the
/// variable that is there now, as it is numbered in `step_`, or -1.
template <class Real>
Index SmoJump<Real>::move() {
    double descent = 0.0, square = 0.0;
    for (std::size_t a = 0; a < right_.size(); ++a) {
        descent += step_[a] * right_[a];
        square += step_[a] * step_[a];
    }
    const double curvature = descent - ridge_ * square;
    double length = curvature > 0.0 ? descent / curvature : std::numeric_limits<double>::infinity();
    const auto variable = [this](std::size_t a) { return a < order_.size() ? order_[a] : pivot_; };
    Index blocking = -1;
    for (std::size_t a = 0; a < step_.size(); ++a) {
        const Index t = variable(a);
        const double b = block_.beta.data()[t];
        const double distance = step_[a] > 0.0 ? block_.upper.data()[t] - b : b - block_.lower.data()[t];
        if (std::abs(step_[a]) * length > distance) {
            length = distance / std::abs(step_[a]);
            blocking = static_cast<Index>(a);
        }
    }
    for (std::size_t a = 0; a < step_.size(); ++a) {
        const Index t = variable(a);
        const double lower = block_.lower.data()[t], upper = block_.upper.data()[t];
        double& b = block_.beta.data()[t];
        // A variable that meets its bound gets the bound itself, not the bound plus rounding.
        b = static_cast<Index>(a) == blocking ? (step_[a] > 0.0 ? upper : lower)
                                              : std::clamp(b + length * step_[a], lower, upper);
        if (a < right_.size()) right_[a] -= length * (right_[a] - ridge_ * step_[a]);
    }
    return blocking;
}

/// Go on without a variable of the factor.
template <class Real>
void SmoJump<Real>::leave(Index variable) {
    const auto after = static_cast<double>(std::ssize(order_) - variable);
    cost_ += 2.0 * after * after;
    factor_.remove(variable);
    order_.erase(order_.begin() + variable);
    right_.erase(right_.begin() + variable);
}

/// Bring the gradient up to date; false, and it stays as it is, if the objective has not become better.
template <class Real>
bool SmoJump<Real>::settle() {
    std::vector<const Real*> rows;
    std::vector<double> moved, change(block_.size, 0.0);
    for (std::size_t a = 0; a < free_.size(); ++a) {
        const double difference = block_.beta.data()[free_[a]] - before_[a];
        if (difference == 0.0) continue;
        rows.push_back(block_.row(free_[a]));
        moved.push_back(difference);
    }
    cost_ += static_cast<double>(rows.size()) * static_cast<double>(block_.size);
    accumulate<Real>(rows, moved, change.data(), block_.size);
    for (std::size_t a = 0; a < free_.size() && !block_.ridge.empty(); ++a) {
        change[free_[a]] += block_.ridge[free_[a]] * (block_.beta.data()[free_[a]] - before_[a]);
    }
    double ascent = 0.0;
    for (std::size_t a = 0; a < free_.size(); ++a) {
        const Index t = free_[a];
        ascent += (block_.beta.data()[t] - before_[a]) * (block_.f.data()[t] + change[t] / 2);
    }
    if (!(ascent < 0.0)) return false;
    for (Index t = 0; t < block_.size; ++t) block_.f.data()[t] += static_cast<Real>(change[t]);
    return true;
}

template class SmoJump<float>;
template class SmoJump<double>;

}  // namespace polymargin
