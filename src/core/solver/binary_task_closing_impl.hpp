#pragma once

// The member functions of `BinaryTask` that know when an answer is good enough; included by its source alone.

#include <algorithm>
#include <cmath>

#include "solver/binary_task.hpp"

namespace polymargin {

template <class Real>
double BinaryTask<Real>::gap() const {
    return worth(intercept(runs_, state_, cost_bounds_)).gap();
}

template <class Real>
Objectives BinaryTask<Real>::worth(double intercept) const {
    return problem_.squared ? squared_objectives(runs_, state_, costs_, intercept)
                            : objectives(runs_, state_, costs_, intercept);
}

/// Whether the answer is as good as was asked for.
template <class Real>
bool BinaryTask<Real>::meets_rule() const {
    return settings_.gap > 0.0 ? gap() <= settings_.gap : !(violation_ > settings_.tolerance);
}

/// How many systems to solve to make the answer exact.
template <class Real>
Index BinaryTask<Real>::polishing_solves() const {
    if (settings_.polish == nullptr) return 0;
    if (settings_.polishing.asked) return settings_.polishing.most;
    Index free = 0;
    for (const Run& run : runs_) {
        for (Index i = 0; i < run.size; ++i) {
            const double size = std::abs(state_.beta[run.local + i]);
            free += size > 0.0 && size < cost_bounds_[run.global + i];
        }
    }
    return settings_.polishing.solves(free, problem_.size(), iterations_);
}

/// Whether to go on for a while because the violation that is met leaves a large gap, and somebody will see it.
template <class Real>
bool BinaryTask<Real>::closes_gap() {
    const GapSettings& closing = settings_.closing;
    if (fold_ >= 0 || path_ != nullptr || gap() <= closing.open) return false;
    if (!closing_) {
        // To solve for the free variables must not cost more than the steps did, each on a whole working set.
        const double steps = static_cast<double>(iterations_) * static_cast<double>(working_.capacity());
        if (settings_.finish != nullptr)
            polish_solution(*settings_.finish, static_cast<Index>(std::cbrt(steps)), settings_.polishing.most);
        closing_ = true;
        met_ = state_;
        const double few = std::max(closing.few_steps, closing.few_for_example * static_cast<double>(problem_.size()));
        const double more = closing.more_steps * static_cast<double>(iterations_) + few;
        const Index enough = iterations_ + static_cast<Index>(more);
        iteration_limit_ = iteration_limit_ < 0 ? enough : std::min(enough, iteration_limit_);
        violation_ = violation(runs_, state_, cost_bounds_).size();
        if (gap() <= closing.open) return false;
    }
    return demands_more();
}

/// Ask for a smaller violation than the one that is met; false if there is none.
template <class Real>
bool BinaryTask<Real>::demands_more() {
    tolerance_ = finer_tolerance(tolerance_, violation_, settings_.closing);
    return violation_ > tolerance_;
}

/// What was done to close the gap must not cost the violation.
template <class Real>
void BinaryTask<Real>::undo_closing() {
    if (!closing_) return;
    violation_ = violation(runs_, state_, cost_bounds_).size();
    if (violation_ > settings_.tolerance) {
        state_ = met_;
        violation_ = violation(runs_, state_, cost_bounds_).size();
    }
}

}  // namespace polymargin
