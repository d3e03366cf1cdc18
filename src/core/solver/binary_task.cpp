#include "solver/binary_task.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "solver/binary_task_closing_impl.hpp"
#include "solver/binary_task_rows_impl.hpp"
#include "solver/binary_task_stages_impl.hpp"
#include "solver/binary_task_start_impl.hpp"
#include "solver/polish.hpp"
#include "solver/smallest.hpp"

namespace polymargin {

template <class Real>
BinaryTask<Real>::BinaryTask(const BinaryProblem& problem, std::span<const Range> segments,
                             std::span<const double> cost_bounds, const CostPath* path, const BinarySettings& settings,
                             Index capacity, SmoBlock<Real> block, const Control& control)
    : problem_(problem),
      segments_(segments),
      cost_bounds_(path != nullptr ? std::span<const double>(path->cost_bounds.front()) : cost_bounds),
      path_(path),
      settings_(settings),
      control_(control),
      runs_(runs_of(problem)),
      block_(std::move(block)),
      working_(problem.size(), capacity) {
    if (problem.ranges.empty()) throw std::invalid_argument("a binary problem has at least one range of examples");
    for (const Run& run : runs_) {
        const auto cost_bounds = cost_bounds_.subspan(run.global, run.size);
        hard_ = hard_ || std::any_of(cost_bounds.begin(), cost_bounds.end(), [](double c) { return std::isinf(c); });
    }
    Index local = 0;
    for (const Range& s : segments) {
        offsets_.push_back(local);
        local += s.size();
    }
    begin_anew();
    begin_stage(cost_bounds_);
}

template <class Real>
void BinaryTask<Real>::start_from(const BinaryStart& start) {
    for (std::size_t i = 0; i < start.support.size(); ++i)
        pending_.emplace_back(local_of(start.support[i]), start.beta[i]);
}

template <class Real>
void BinaryTask<Real>::begin_at(BinaryState state, Index steps) {
    state_ = std::move(state);
    iterations_ = steps;
    fresh_ = false;
}

template <class Real>
void BinaryTask<Real>::stop(Status reason) {
    undo_closing();
    if (fold_ < 0) {
        keep_solution(meets_rule() ? Status::converged : reason);
        keep_for_all_costs(reason);
    } else {
        note_unsolved(reason);
    }
    finished_ = true;
}

/// End the stage. An answer good enough counts as converged, even if it was to become better still.
template <class Real>
void BinaryTask<Real>::end_stage(Status reason) {
    undo_closing();
    const Index solves = reason == Status::converged ? polishing_solves() : 0;
    if (solves > 0) polish_solution(*settings_.polish, kMostFree, solves);
    Status status = reason;
    if (reason != Status::unbounded && meets_rule()) {
        status = Status::converged;
    } else if (reason == Status::converged && settings_.gap > 0.0) {
        status = Status::precision;
    }
    if (fold_ < 0) {
        keep_solution(status);
    } else {
        keep_held_out(status);
    }
    if (status == Status::unbounded) keep_for_all_costs(status);
    finished_ = status == Status::unbounded || !(raise_costs() || hold_out_next_fold());
}

template <class Real>
std::vector<Index> BinaryTask<Real>::spread(Index count) const {
    // At the start all examples violate alike: take them evenly from both sides.
    std::vector<Index> wanted;
    if (count == problem_.size()) {
        wanted.resize(count);
        std::iota(wanted.begin(), wanted.end(), Index{0});
        return wanted;
    }
    for (const double sign : {1.0, -1.0}) {
        Index side = 0;
        for (const Run& run : runs_) side += run.sign == sign ? run.size : 0;
        const Index take = std::min(side, count / 2);
        Index seen = 0;
        for (const Run& run : runs_) {
            if (run.sign != sign) continue;
            for (Index i = 0; i < run.size; ++i, ++seen) {
                if (seen * take / side != (seen + 1) * take / side) wanted.push_back(run.local + i);
            }
        }
    }
    return wanted;
}

template <class Real>
std::vector<Index> BinaryTask<Real>::worst(const Violation& v, Index count) const {
    Smallest up(count / 2, v.highest_low - tolerance_), low(count / 2, -v.lowest_up - tolerance_);
    for (const Run& run : runs_) {
        for (Index i = 0; i < run.size; ++i) {
            const Index t = run.local + i;
            const double bound = cost_bounds_[run.global + i];
            const double f = state_.f[t], b = state_.beta[t];
            if (run.sign > 0 ? b < bound : b < 0.0) up.offer(f, t);
            if (run.sign > 0 ? b > 0.0 : b > -bound) low.offer(-f, t);
        }
    }
    std::vector<Index> wanted;
    up.append_to(wanted);
    low.append_to(wanted);
    return wanted;
}

/// Why this stage should end, if it should.
template <class Real>
std::optional<Status> BinaryTask<Real>::reason_to_end() {
    if (meets_rule()) {
        // Polishing starts from an answer whose variables are mostly at the right bounds: go on for a while.
        if (settings_.polish != nullptr && settings_.polishing.asked && !refining_) {
            refining_ = true;
            tolerance_ *= 1e-4;
            const Index enough = 4 * iterations_ + 1000;
            iteration_limit_ = iteration_limit_ < 0 ? enough : std::min(enough, iteration_limit_);
        }
        const bool goes_on = refining_ ? violation_ > tolerance_ : settings_.gap <= 0.0 && closes_gap();
        if (!goes_on) return Status::converged;
    } else if (settings_.gap > 0.0 && !demands_more()) {
        return Status::precision;
    }
    if (iteration_limit_ >= 0 && iterations_ >= iteration_limit_) {
        return refining_ || closing_ ? Status::converged : Status::max_iterations;
    }
    if (inseparable()) return Status::unbounded;
    return std::nullopt;
}

/// How many variables enter the working set in a round.
template <class Real>
Index BinaryTask<Real>::entrants() const {
    if (settings_.rows_are_there && problem_.size() <= settings_.long_row) {
        return std::max(settings_.entrants,
                        std::min(problem_.size() / settings_.examples_for_entrant, settings_.most_entrants));
    }
    const bool is_dear = problem_.size() > settings_.long_row && !settings_.rows_are_there;
    return is_dear ? settings_.entrants_of_long_rows : settings_.entrants;
}

/// Whether more variables are free than the working set can hold, so that rounds would load the same ones again and
/// again, or most of all, and a row of the kernel is as it should be in a block of all examples.
template <class Real>
bool BinaryTask<Real>::outgrows_working_set() const {
    const Index n = problem_.size();
    if (!settings_.rows_are_there || n > settings_.most_in_one_piece || has_all()) return false;
    if (tables_.size() > 1 || !tables_[0][0]->filled_up()) return false;
    Index free = 0;
    for (const Run& run : runs_) {
        for (Index i = 0; i < run.size; ++i) {
            const double size = std::abs(state_.beta[run.local + i]);
            free += size > 0.0 && size < cost_bounds_[run.global + i];
        }
    }
    return free >= std::min(working_.capacity(), n / 2);
}

/// Optimise all variables together from now on.
template <class Real>
void BinaryTask<Real>::take_all() {
    in_one_piece_ = true;
    working_ = WorkingSet(problem_.size(), problem_.size());
    block_ = {};
}

template <class Real>
void BinaryTask<Real>::choose() {
    while (!finished_ && pending_.empty()) {
        const Violation v = violation(runs_, state_, cost_bounds_);
        violation_ = v.size();
        if (const auto reason = reason_to_end()) {
            end_stage(*reason);
            continue;
        }
        if (outgrows_working_set()) take_all();
        if (has_all()) return working_.take_all();
        const Index count = std::min(working_.capacity(), entrants());
        const std::vector<Index> wanted = fresh_ ? spread(count) : worst(v, count);
        fresh_ = false;
        return working_.take_in(wanted, [this](Index t) { return !is_free(t); });
    }
}

/// Whether a hard-margin problem shows no sign of being separable. With S the sum of the positive coefficients, b / S
/// names a point of the convex hull of either side, and |phi'b|^2 / S^2 is their squared distance, at least that of the
/// hulls. When it is tiny and the current direction still has examples on the wrong side, the hulls meet.
template <class Real>
bool BinaryTask<Real>::inseparable() const {
    if (!hard_) return false;
    double sum = 0.0, square = 0.0, largest = 0.0;
    double margin = std::numeric_limits<double>::infinity();
    const double offset = intercept(runs_, state_, cost_bounds_);
    for (const Run& run : runs_) {
        for (Index t = run.local; t < run.local + run.size; ++t) {
            sum += std::max(0.0, state_.beta[t]);
            square += state_.beta[t] * (state_.f[t] + run.sign);
            margin = std::min(margin, 1.0 + run.sign * (state_.f[t] + offset));
        }
    }
    for (Index s = 0; s < working_.size(); ++s) {
        largest = std::max(largest, static_cast<double>(block_.diagonal.data()[s]));
    }
    return sum > 0.0 && margin <= 0.0 &&
           square <= settings_.smallest_margin * settings_.smallest_margin * largest * sum * sum;
}

template <class Real>
void BinaryTask<Real>::advance() {
    std::vector<Index> moved;
    std::vector<double> change;
    if (!pending_.empty()) {
        for (std::size_t i = pending_batch(); i > 0; --i) {
            moved.push_back(pending_.back().first);
            change.push_back(pending_.back().second);
            state_.beta[moved.back()] = change.back();
            pending_.pop_back();
        }
        fresh_ = false;
        return add_to_gradient(moved, change);
    }
    load_block();
    const double share = cost_ > 0 ? settings_.inner_share_of_path : settings_.inner_share;
    const double tolerance = std::max(tolerance_ / 2, has_all() ? 0.0 : violation_ * share);
    Index limit = 100 * working_.size();
    if (iteration_limit_ >= 0) limit = std::min(limit, iteration_limit_ - iterations_);
    const SmoResult solved = smo(block_, tolerance, limit, settings_.jump, settings_.smo, &control_);
    iterations_ += solved.iterations;
    if (solved.unbounded) return end_stage(Status::unbounded);
    // The worst pair is in the block. If not even one step helps, the rest of the violation is rounding, and the next
    // round would be the same as this one.
    if (solved.iterations == 0) return end_stage(refining_ || closing_ ? Status::converged : Status::precision);
    moved.reserve(working_.size());
    change.reserve(working_.size());
    for (Index s = 0; s < working_.size(); ++s) {
        const Index t = working_.members()[s];
        const double delta = block_.beta.data()[s] - state_.beta[t];
        if (delta != 0.0) {
            moved.push_back(t);
            change.push_back(delta);
            state_.beta[t] = block_.beta.data()[s];
        }
    }
    add_to_gradient(moved, change);
}

template <class Real>
void BinaryTask<Real>::polish_solution(const Blas& blas, Index max_free, Index max_solves) {
    const auto values = [this](Index i, std::span<const Index> which, double* out) {
        const auto& tables = tables_[segment_of(i)];
        const Index g = global_of(i);
        std::size_t b = 0;
        for (const Index j : which) {
            while (b + 1 < offsets_.size() && offsets_[b + 1] <= j) ++b;
            *out++ = static_cast<double>(tables[b]->row(g)[j - offsets_[b]]) + (i == j ? ridge_of(i) : 0.0);
        }
    };
    const auto moved = [this](std::span<const Index> which, std::span<const double> change) {
        add_to_gradient(which, change);
    };
    polish(runs_, cost_bounds_, state_, {values, moved}, blas, std::min(max_free, kMostFree), max_solves, &control_);
}

template class BinaryTask<float>;
template class BinaryTask<double>;

}  // namespace polymargin
