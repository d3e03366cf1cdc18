#pragma once

// The member functions of `BinaryTask` that go from stage to stage, over costs and folds, and keep what each gave;
// included by its source alone.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "solver/binary_task.hpp"

namespace polymargin {

template <class Real>
void BinaryTask<Real>::begin_anew() {
    state_.beta.assign(problem_.size(), 0.0);
    state_.f.resize(problem_.size());
    for (const Run& run : runs_) std::fill_n(state_.f.begin() + run.local, run.size, -run.sign);
    fresh_ = true;
}

/// Go on with other costs. Of squared hinges they are a ridge, which the gradient follows, and no bounds.
template <class Real>
void BinaryTask<Real>::set_costs(std::span<const double> costs) {
    costs_ = cost_bounds_ = costs;
    if (!problem_.squared) return;
    limits_.resize(costs.size());
    ridge_.resize(problem_.size(), 0.0);
    for (const Run& run : runs_) {
        for (Index i = 0; i < run.size; ++i) {
            const Index t = run.local + i;
            const double cost = costs[run.global + i], before = std::exchange(ridge_[t], squared_ridge(cost));
            limits_[run.global + i] = squared_limit(cost);
            if (!(cost > 0.0)) continue;
            state_.f[t] += (ridge_[t] - before) * state_.beta[t];
        }
    }
    cost_bounds_ = limits_;
}

template <class Real>
void BinaryTask<Real>::begin_stage(std::span<const double> cost_bounds) {
    set_costs(cost_bounds);
    past_iterations_ += std::exchange(iterations_, 0);
    iteration_limit_ = settings_.max_iterations;
    tolerance_ = settings_.tolerance;
    violation_ = std::numeric_limits<double>::infinity();
    refining_ = closing_ = false;
}

/// Go on to the next cost; false if there is none.
template <class Real>
bool BinaryTask<Real>::raise_costs() {
    if (path_ == nullptr || cost_ + 1 == std::ssize(path_->cost_bounds)) return false;
    const std::span<const double> cost_bounds(path_->cost_bounds[++cost_]);
    if (problem_.squared) set_costs(cost_bounds);
    scale_to(problem_.squared ? cost_bounds_ : cost_bounds, path_->growth[cost_]);
    begin_stage(cost_bounds);
    return true;
}

/// Take the best multiple of the point that is feasible for bounds that are `growth` times as high: with `b'y` and
/// `b'Kb` known, the dual along the ray is a parabola, and the gradient is as easily scaled as the point.
template <class Real>
void BinaryTask<Real>::scale_to(std::span<const double> cost_bounds, double growth) {
    double linear = 0.0, square = 0.0;
    for (const Run& run : runs_) {
        for (Index i = 0; i < run.size; ++i) {
            const double b = state_.beta[run.local + i];
            linear += run.sign * b;
            square += b * (state_.f[run.local + i] + run.sign);
        }
    }
    if (!(square > 0.0)) return;
    const double scale = std::clamp(linear / square, 1.0, growth);
    for (const Run& run : runs_) {
        for (Index i = 0; i < run.size; ++i) {
            double &b = state_.beta[run.local + i], &f = state_.f[run.local + i];
            const double bound = cost_bounds[run.global + i], size = std::abs(b);
            const bool at_bound = size >= cost_bounds_[run.global + i];
            // Who was at the bound stays there to the last bit.
            b = std::copysign(at_bound && scale == growth ? bound : std::min(scale * size, bound), b);
            f = scale * (f + run.sign) - run.sign;
        }
    }
}

/// Begin the stage of the next fold that has examples of this problem; false if there is none. It starts from zero:
/// the kernel rows are there and the working set has the examples that matter, and with them that takes no more time
/// than to start from the solution and repair it.
template <class Real>
bool BinaryTask<Real>::hold_out_next_fold() {
    if (settings_.folds == nullptr) return false;
    const auto& [of, cost_bounds] = *settings_.folds;
    const auto has_examples = [&](Index fold) {
        return std::ranges::any_of(segments_, [&](Range s) {
            return std::find(of.begin() + s.begin, of.begin() + s.end, fold) != of.begin() + s.end;
        });
    };
    do {
        if (++fold_ == std::ssize(cost_bounds)) return false;
    } while (!has_examples(fold_));
    begin_anew();
    begin_stage(cost_bounds[fold_]);
    return true;
}

/// The costs that are left have the solution of the last one, which is feasible for them.
template <class Real>
void BinaryTask<Real>::keep_for_all_costs(Status status) {
    while (path_ != nullptr && cost_ + 1 < std::ssize(path_->cost_bounds)) {
        begin_stage(path_->cost_bounds[++cost_]);
        keep_solution(status);
    }
}

template <class Real>
void BinaryTask<Real>::keep_solution(Status status) {
    BinaryResult& result = results_.emplace_back();
    result.status = status;
    result.iterations = iterations_;
    result.violation = violation(runs_, state_, cost_bounds_).size();
    result.intercept = intercept(runs_, state_, cost_bounds_);
    result.objectives = worth(result.intercept);
    const auto used = std::ranges::count_if(state_.beta, [](double b) { return b != 0.0; });
    result.support.reserve(used);
    result.beta.reserve(used);
    for (const Run& run : runs_) {
        for (Index i = 0; i < run.size; ++i) {
            const double b = state_.beta[run.local + i];
            if (b != 0.0) {
                result.support.push_back(run.global + i);
                result.beta.push_back(b);
            }
            if (settings_.folds != nullptr) {
                result.held_out.push_back(plain_gradient(run.local + i) + run.sign + result.intercept);
            }
        }
    }
}

/// Report a fold as unsolved, unless something else is.
template <class Real>
void BinaryTask<Real>::note_unsolved(Status status) {
    BinaryResult& result = results_.back();
    if (result.status != Status::converged) return;
    result.status = status;
    result.violation = violation_;
}

template <class Real>
void BinaryTask<Real>::keep_held_out(Status status) {
    if (status != Status::converged) note_unsolved(status);
    const double offset = intercept(runs_, state_, cost_bounds_);
    for (const Run& run : runs_) {
        for (Index i = 0; i < run.size; ++i) {
            if (settings_.folds->of[run.global + i] != fold_) continue;
            results_.back().held_out[run.local + i] = plain_gradient(run.local + i) + run.sign + offset;
        }
    }
}

}  // namespace polymargin
