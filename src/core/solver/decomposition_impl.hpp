#pragma once

// The member functions of `Decomposition`; included by its header alone.

#include <numeric>

namespace polymargin {

template <MulticlassLoss Loss, class Real>
Decomposition<Loss, Real>::Decomposition(const Loss& loss, std::span<const Index> labels,
                                         std::span<const double> cost_bounds, Index classes, GramStore<Real>& store,
                                         const DecompositionSettings& settings, Control& control)
    : loss_(loss),
      labels_(labels),
      cost_bounds_(cost_bounds),
      classes_(classes),
      stride_(padded<double>(std::ssize(labels))),
      store_(store),
      settings_(settings),
      control_(control),
      table_(store.shared({0, std::ssize(labels)})),
      working_(std::ssize(labels), std::min<Index>(settings.working_set, std::ssize(labels))),
      gradient_(classes * stride_),
      beta_(classes * stride_),
      violations_(labels.size()),
      last_violated_(labels.size(), 0),
      block_(working_.capacity(), classes, settings.block),
      hard_(std::ranges::any_of(cost_bounds, [](double c) { return std::isinf(c); })),
      shrinking_(!hard_ && settings.gap == 0.0 && std::ssize(labels) >= settings.shrink_from) {
    std::fill_n(beta_.data(), classes * stride_, 0.0);
    for (Index m = 0; m < classes; ++m) {
        for (Index i = 0; i < size(); ++i) gradient_view().at(m, i) = loss.offsets(labels[i])[m];
    }
    measure();
}

template <MulticlassLoss Loss, class Real>
std::vector<double> Decomposition<Loss, Real>::column_sums() const {
    std::vector<double> sums(classes_);
    for (Index m = 0; m < classes_; ++m) sums[m] = std::accumulate(beta().row(m), beta().row(m) + size(), 0.0);
    if constexpr (kScoresSumToZero<Loss>) take_mean_away(sums);
    return sums;
}

template <MulticlassLoss Loss, class Real>
void Decomposition<Loss, Real>::set_bias(const Bias& bias) {
    auto changes = column_sums();
    for (Index m = 0; m < classes_; ++m) {
        const double shift = (bias.shift.empty() ? 0.0 : bias.shift[m]) - (bias_.shift.empty() ? 0.0 : bias_.shift[m]);
        changes[m] = (bias.weight - bias_.weight) * changes[m] + shift;
    }
    // A large weight makes much of what rounding leaves of the mean.
    if constexpr (kScoresSumToZero<Loss>) take_mean_away(changes);
    for (Index m = 0; m < classes_; ++m) {
        for (Index i = 0; i < size(); ++i) gradient_view().at(m, i) += changes[m];
    }
    bias_ = bias;
    measure();
}

template <MulticlassLoss Loss, class Real>
void Decomposition<Loss, Real>::start_from(std::span<const Index> support, std::span<const double> rows) {
    std::vector<double> changes(rows.begin(), rows.end());
    for (std::size_t i = 0; i < support.size(); ++i) {
        loss_.make_feasible(example(support[i]), std::span(changes).subspan(i * classes_, classes_));
    }
    change_rows(support, changes);
}

template <MulticlassLoss Loss, class Real>
bool Decomposition<Loss, Real>::change_rows(std::span<const Index> which, std::span<const double> changes) {
    const Index batch = working_.capacity();  // as many rows as the store is sure to hold
    for (Index start = 0; start < std::ssize(which); start += batch) {
        const auto part = which.subspan(start, std::min(batch, std::ssize(which) - start));
        if (!fetch(part)) return false;
        Changes change(classes_);
        std::vector<double> changed(classes_);
        for (std::size_t i = 0; i < part.size(); ++i) {
            const auto row = changes.subspan((start + static_cast<Index>(i)) * classes_, classes_);
            change.add(table_->row(part[i]), row);
            for (Index m = 0; m < classes_; ++m) changed[m] = beta_view().at(m, part[i]) + row[m];
            // What is at a bound is on it, whatever the rounding of the sum.
            loss_.make_feasible(example(part[i]), changed);
            for (Index m = 0; m < classes_; ++m) beta_view().at(m, part[i]) = changed[m];
            follow_conjugate(part[i], row);
        }
        update(change);
    }
    return true;
}

template <MulticlassLoss Loss, class Real>
bool Decomposition<Loss, Real>::fetch(std::span<const Index> examples) {
    // Rows that are there can be used even after a stop.
    if (std::ranges::all_of(examples, [this](Index i) { return table_->row(i) != nullptr; }) && store_.whole())
        return true;
    store_.request(table_, examples);
    return store_.fulfil();
}

/// Bring the block up to date: the kernel of the examples that came in, the state of all.
template <MulticlassLoss Loss, class Real>
void Decomposition<Loss, Real>::load_block() {
    const auto members = working_.members();
    block_.resize(working_.size(), bias_.weight);
    for (Index s = 0; s < working_.size(); ++s) {
        const Index i = members[s];
        copy_row(beta(), i, block_.row(s));
        block_.load(loss_, s, example(i), [&](Index m) { return gradient().at(m, i); });
    }
    // A group at a time, because the columns of neighbouring slots share cache lines.
    constexpr Index group = 16;
    const auto added = working_.added();
    std::vector<char> fresh(working_.size(), 0);
    for (const Index s : added) fresh[s] = 1;
    const auto ordered = working_.slots_in_order();
    store_.pool().for_each((std::ssize(added) + group - 1) / group, [&](Index g) {
        load_columns(added.subspan(g * group, std::min(group, std::ssize(added) - g * group)), fresh, ordered);
    });
}

/// The kernel of some newcomers. It is symmetric: their rows give their columns too, in the rows that stay.
template <MulticlassLoss Loss, class Real>
void Decomposition<Loss, Real>::load_columns(std::span<const Index> slots, std::span<const char> fresh,
                                             std::span<const Index> ordered) {
    const auto members = working_.members();
    for (const Index s : slots) {
        const Real* values = table_->row(members[s]);
        Real* row = block_.kernel(s);
        for (const Index u : ordered) row[u] = values[members[u]];
    }
    for (Index u = 0; u < working_.size(); ++u) {
        if (fresh[u]) continue;
        for (const Index s : slots) block_.kernel(u)[s] = block_.kernel(s)[u];
    }
}

template <MulticlassLoss Loss, class Real>
bool Decomposition<Loss, Real>::store_block() {
    Changes changes(classes_);
    bool changed = false;
    std::vector<double> change(classes_);
    for (Index s = 0; s < working_.size(); ++s) {
        const Index i = working_.members()[s];
        for (Index m = 0; m < classes_; ++m) {
            change[m] = block_.row(s)[m] - beta().at(m, i);
            changed = changed || change[m] != 0.0;
            beta_view().at(m, i) = block_.row(s)[m];
        }
        changes.add(table_->row(i), change);
        follow_conjugate(i, change);
    }
    if (changed) update(changes);
    return changed;
}

/// Bring the gradient of all examples, and their violations, up to date.
template <MulticlassLoss Loss, class Real>
void Decomposition<Loss, Real>::update(const Changes& changes) {
    for (const Change& change : changes.of_classes) {
        other_work_ += settings_.block.sum_cost * static_cast<double>(size() * std::ssize(change.rows));
    }
    std::vector<double> shifts(classes_);
    for (Index m = 0; m < classes_; ++m) {
        shifts[m] = bias_.weight * (changes.of_classes[m].sum - changes.mean.sum);
    }
    if constexpr (kScoresSumToZero<Loss>) take_mean_away(shifts);  // as above
    const Index strips = (size() + kStrip - 1) / kStrip;
    store_.pool().for_each(strips, [&](Index strip) {
        const Index begin = strip * kStrip, count = std::min(kStrip, size() - begin);
        for (Index m = 0; m < classes_; ++m) {
            add_change(changes.of_classes[m], shifts[m], begin, std::span(gradient_view().row(m) + begin, count));
        }
        if constexpr (kScoresSumToZero<Loss>) {
            std::vector<double> common(count, 0.0);
            add_change(changes.mean, 0.0, begin, common);
            for (Index m = 0; m < classes_; ++m) {
                for (Index i = 0; i < count; ++i) gradient_view().row(m)[begin + i] -= common[i];
            }
        }
        measure_violations(loss_,
                           {gradient_view().from(begin), beta_view().from(begin), labels_.data() + begin,
                            cost_bounds_.data() + begin, count},
                           violations_.data() + begin);
    });
    violation_ = *std::ranges::max_element(violations_);
}

/// `K change + shift` for the examples from `begin` on.
template <MulticlassLoss Loss, class Real>
void Decomposition<Loss, Real>::add_change(const Change& change, double shift, Index begin,
                                           std::span<double> out) const {
    if (!change.rows.empty()) {
        std::vector<const Real*> rows(change.rows);
        for (const Real*& row : rows) row += begin;
        accumulate<Real>(rows, change.by, out.data(), std::ssize(out));
    }
    if (shift == 0.0) return;
    for (double& g : out) g += shift;
}

template <MulticlassLoss Loss, class Real>
auto Decomposition<Loss, Real>::snapshot() const -> Snapshot {
    return {
        {gradient_.data(), gradient_.data() + gradient_.size()}, {beta_.data(), beta_.data() + beta_.size()}, bias_};
}

template <MulticlassLoss Loss, class Real>
void Decomposition<Loss, Real>::restore(const Snapshot& snapshot) {
    std::ranges::copy(snapshot.gradient, gradient_.data());
    std::ranges::copy(snapshot.beta, beta_.data());
    bias_ = snapshot.bias;
    measure();
}

template <MulticlassLoss Loss, class Real>
void Decomposition<Loss, Real>::measure() {
    update(Changes(classes_));
}

template <MulticlassLoss Loss, class Real>
bool Decomposition<Loss, Real>::at_vertex(Index i) const {
    std::vector<double> row(classes_);
    copy_row(beta(), i, row);
    return loss_.at_vertex(row, example(i));
}

template <MulticlassLoss Loss, class Real>
void Decomposition<Loss, Real>::follow_conjugate(Index i, std::span<const double> change) {
    for_conjugate_gradient(loss_, change, example(i), [&](Index m, double q) { gradient_view().at(m, i) += q; });
}

template <MulticlassLoss Loss, class Real>
void Decomposition<Loss, Real>::copy_scores(Index i, std::span<double> scores) const {
    const auto offsets = loss_.offsets(labels_[i]);
    for (Index m = 0; m < classes_; ++m) scores[m] = gradient().at(m, i) - offsets[m];
    if constexpr (Loss::kConjugate) {
        std::vector<double> row(classes_);
        copy_row(beta(), i, row);
        for_conjugate_gradient(loss_, row, example(i), [&](Index m, double q) { scores[m] -= q; });
    }
}

/// Whether a hard-margin problem shows no sign of being separable. With T the sum of all B_iy (of all |B_im| where
/// rows do not sum to zero), `w / T` is a point of
/// the set whose distance from 0 is the margin. When that is tiny and some example is still on the wrong side, the
/// margin is taken for none.
template <MulticlassLoss Loss, class Real>
bool Decomposition<Loss, Real>::inseparable() const {
    if (!hard_) return false;
    const double least = settings_.smallest_margin;
    double mass = 0.0, square = 0.0, margin = std::numeric_limits<double>::infinity(), largest = 0.0;
    std::vector<double> scores(classes_);
    for (Index i = 0; i < size(); ++i) {
        copy_scores(i, scores);
        for (Index m = 0; m < classes_; ++m) square += beta().at(m, i) * scores[m];
        if (!std::isinf(cost_bounds_[i])) continue;
        for (Index m = 0; m < classes_; ++m) {
            if (!Loss::kRowsSumToZero || m == labels_[i]) mass += std::abs(beta().at(m, i));
        }
        margin = std::min(margin, loss_.margin(scores, labels_[i]));
    }
    for (Index s = 0; s < working_.size(); ++s) {
        largest = std::max(largest, static_cast<double>(block_.kernel(s)[s]) + bias_.weight);
    }
    return mass > 0.0 && margin <= 0.0 && square <= least * least * largest * mass * mass;
}

template <MulticlassLoss Loss, class Real>
MulticlassObjectives Decomposition<Loss, Real>::objectives() const {
    double square = 0.0, linear = 0.0, conjugates = 0.0, margin = std::numeric_limits<double>::infinity();
    std::vector<double> scores(classes_), row(classes_);
    for (Index i = 0; i < size(); ++i) {
        copy_scores(i, scores);
        copy_row(beta(), i, row);
        const auto offsets = loss_.offsets(labels_[i]);
        for (Index m = 0; m < classes_; ++m) {
            const double shift = bias_.shift.empty() ? 0.0 : bias_.shift[m];
            square += row[m] * (scores[m] - shift);
            linear += row[m] * (offsets[m] + shift);
        }
        conjugates += conjugate_of(loss_, row, example(i));
        if (std::isinf(cost_bounds_[i])) margin = std::min(margin, loss_.margin(scores, labels_[i]));
    }
    // With C = inf the primal point is the current one, scaled until the margin is there.
    const double scale = hard_ ? 1.0 / margin : 1.0;
    double losses = 0.0;
    for (Index i = 0; i < size(); ++i) {
        if (std::isinf(cost_bounds_[i])) continue;
        copy_scores(i, scores);
        for (double& s : scores) s *= scale;
        losses += cost_bounds_[i] * loss_.loss(scores, labels_[i]);
    }
    MulticlassObjectives result{.primal = 0.5 * square * scale * scale + losses,
                                .dual = -0.5 * square - linear - conjugates};
    if (hard_ && !(margin > 0.0)) result.primal = std::numeric_limits<double>::infinity();
    // Weak duality holds exactly; at an exact optimum rounding may say otherwise in the last bits.
    const double rounding = 1e-12 * std::abs(result.dual);
    if (result.primal < result.dual && result.dual - result.primal <= rounding) result.primal = result.dual;
    return result;
}

template <MulticlassLoss Loss, class Real>
Status Decomposition<Loss, Real>::run(double tolerance, Index most_steps, double most_work) {
    const double last_work = std::min(work() + most_work, settings_.max_work);
    std::vector<Index> wanted;
    bool shrunk = false;
    Index last = settings_.max_iterations < 0 ? std::numeric_limits<Index>::max() : settings_.max_iterations;
    if (most_steps < last - iterations_) last = iterations_ + most_steps;
    while (true) {
        control_.report({.done = 0, .total = 1, .iterations = iterations_, .violation = violation_});
        if (!(violation_ > tolerance)) return Status::converged;
        if (iterations_ >= last || work() >= last_work) return Status::max_iterations;
        if (control_.stop_requested()) return stop_reason(control_);
        if (inseparable()) return Status::unbounded;
        if (settings_.gap > 0.0) {
            const auto [primal, dual] = objectives();
            const double scale = std::max(std::abs(primal), std::abs(dual));
            if (std::isfinite(primal) && primal - dual <= settings_.gap * scale) return Status::converged;
        }
        wanted.clear();
        ++rounds_;
        Smallest worst(std::min(settings_.entrants, working_.capacity()), -tolerance);
        for (Index i = 0; i < size(); ++i) {
            if (violations_[i] > tolerance) last_violated_[i] = rounds_;
            worst.offer(-violations_[i], i);
        }
        if (shrinking_ && (shrunk || rounds_ % settings_.rounds_without_violation == 0)) {
            const auto members = active();
            shrunk = shrinking_pays(members, tolerance);
            if (shrunk) {
                shrinking_ = solve_active(members, std::max(tolerance, settings_.shrunk_share * violation_),
                                          last - iterations_, last_work - work());
                continue;
            }
        }
        worst.append_to(wanted);
        working_.take_in(wanted, [this](Index i) { return at_vertex(i); });
        if (!fetch(working_.members())) return stop_reason(control_);
        load_block();
        const Index limit = std::min(settings_.steps_per_example * working_.size(), last - iterations_);
        const double inner = std::max(tolerance / 2, violation_ * settings_.inner_share);
        const Index steps = block_.solve(loss_, inner, limit, settings_.blas, &control_, last_work - other_work_);
        if (steps < 0) return Status::unbounded;
        iterations_ += steps;
        // The worst example is in the block. If no step changes anything, the rest of the violation is rounding.
        if (!store_block()) return Status::precision;
    }
}

}  // namespace polymargin
