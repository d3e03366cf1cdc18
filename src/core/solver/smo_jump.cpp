#include "solver/smo_jump.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "solver/accumulate.hpp"
#include "support/least_squares.hpp"

namespace polymargin {

template <class Real>
typename SmoJump<Real>::Outcome SmoJump<Real>::operator()() {
    if (!find_free() || !find_step()) return Outcome::impossible;
    const double length = length_to_optimum();
    return length > 0.0 ? go(length) : Outcome::impossible;
}

template <class Real>
bool SmoJump<Real>::find_free() {
    free_.clear();
    for (Index t = 0; t < block_.size; ++t) {
        const double b = block_.beta.data()[t], lower = block_.lower.data()[t], upper = block_.upper.data()[t];
        if (!(b > lower && b < upper)) continue;
        if (std::isinf(upper - lower)) return false;  // nothing would stop it short of losing all digits
        free_.push_back(t);
    }
    return std::ssize(free_) >= 2 && std::ssize(free_) <= settings_.most_free;
}

/// Solve for the step. All bounds being finite, one that is too long does no harm: it ends at one of them.
template <class Real>
bool SmoJump<Real>::find_step() {
    const Index m = std::ssize(free_) - 1, p = free_.back();
    const Real* row_p = block_.kernel.data() + p * block_.stride;
    const double own = row_p[p], f_p = block_.f.data()[p];
    std::vector<double> matrix(m * m), right(m);
    double largest = 0.0;
    for (Index a = 0; a < m; ++a) {
        const Real* row = block_.kernel.data() + free_[a] * block_.stride;
        const double less = own - row_p[free_[a]];
        for (Index b = 0; b <= a; ++b) matrix[b * m + a] = row[free_[b]] - static_cast<double>(row_p[free_[b]]) + less;
        largest = std::max(largest, matrix[a * m + a]);
        right[a] = f_p - block_.f.data()[free_[a]];
    }
    double ridge = largest * static_cast<double>(m) * std::numeric_limits<Real>::epsilon();
    for (int attempt = 0; attempt < settings_.attempts; ++attempt, ridge *= settings_.larger_ridge) {
        std::vector<double> guarded = matrix;
        for (Index a = 0; a < m; ++a) guarded[a * m + a] += ridge;
        step_ = solve_definite(blas_, std::move(guarded), right);
        if (!step_.empty()) break;
    }
    if (step_.empty()) return false;
    step_.push_back(-std::accumulate(step_.begin(), step_.end(), 0.0));
    return true;
}

/// Where along the step the objective is least: 1, but for rounding and the ridge that guards against it.
template <class Real>
double SmoJump<Real>::length_to_optimum() {
    std::vector<const Real*> rows(free_.size());
    for (std::size_t a = 0; a < free_.size(); ++a) rows[a] = block_.kernel.data() + free_[a] * block_.stride;
    change_.assign(block_.size, 0.0);
    accumulate<Real>(rows, step_, change_.data(), block_.size);
    double descent = 0.0, curvature = 0.0;
    for (std::size_t a = 0; a < free_.size(); ++a) {
        descent -= step_[a] * block_.f.data()[free_[a]];
        curvature += step_[a] * change_[free_[a]];
    }
    if (!(descent > 0.0)) return 0.0;
    return curvature > 0.0 ? descent / curvature : std::numeric_limits<double>::infinity();
}

template <class Real>
typename SmoJump<Real>::Outcome SmoJump<Real>::go(double length) {
    Index blocking = -1;
    for (std::size_t a = 0; a < free_.size(); ++a) {
        const Index t = free_[a];
        const double b = block_.beta.data()[t];
        const double distance = step_[a] > 0.0 ? block_.upper.data()[t] - b : b - block_.lower.data()[t];
        if (std::abs(step_[a]) * length > distance) {
            length = distance / std::abs(step_[a]);
            blocking = t;
        }
    }
    for (std::size_t a = 0; a < free_.size(); ++a) {
        const Index t = free_[a];
        const double lower = block_.lower.data()[t], upper = block_.upper.data()[t];
        double& b = block_.beta.data()[t];
        // A variable that meets its bound gets the bound itself, not the bound plus rounding.
        b = t == blocking ? (step_[a] > 0.0 ? upper : lower) : std::clamp(b + length * step_[a], lower, upper);
    }
    for (Index t = 0; t < block_.size; ++t) block_.f.data()[t] += static_cast<Real>(length * change_[t]);
    return blocking < 0 ? Outcome::arrived : Outcome::blocked;
}

template class SmoJump<float>;
template class SmoJump<double>;

}  // namespace polymargin
