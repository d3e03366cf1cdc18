#pragma once

// The member functions of `SequentialDual`; included by its header alone.

namespace polymargin {

template <RowLoss Loss, class Real>
double SequentialDual<Loss, Real>::visit(Index i) {
    ++visits_;
    const Example example = this->example(i);
    weights_.products(rows_.row(i), scores_.data());
    if constexpr (kOwnOffset<Loss> && !Loss::kConjugate) {
        return promise_of_scores(i, example);
    } else {
        for (Index m = 0; m < classes_; ++m) scores_[m] += bias_row_[m];
        load_row(i);
        load_gradient(example);
        const auto [highest, lowest, own] = extremes_of(loss_, gradient_, row_, example);
        return promise_of<Loss>(highest, lowest);
    }
}

/// Of the products of an example, to which the bias is added, in one pass over its classes.
template <RowLoss Loss, class Real>
double SequentialDual<Loss, Real>::promise_of_scores(Index i, const Example& example) {
    const OwnOffset offsets = loss_.offsets(example.label);
    // The limits stand for an example of no class whose coefficients are zero; few differ.
    const auto row = coefficients_.row(i);
    if (example.label >= 0) set_limits(example.label, 0.0, true, example.cost_bound);
    for (const auto& [m, b] : row) set_limits(m, b, m == example.label, example.cost_bound);
    const Real own = example.label >= 0 ? static_cast<Real>(offsets.own - offsets.others) : Real(0);
    const auto [highest, lowest] =
        add_and_measure<Real>(scores_, bias_row_, static_cast<Real>(offsets.others), example.label, own, fall_, grow_);
    if (example.label >= 0) set_limits(example.label, 0.0, false, 1.0);
    for (const auto& [m, b] : row) set_limits(m, 0.0, false, 1.0);
    return std::max(0.0, static_cast<double>(Loss::kRowsSumToZero ? highest - lowest : std::max(highest, -lowest)));
}

template <RowLoss Loss, class Real>
double SequentialDual<Loss, Real>::visit_used(Index i) {
    ++visits_;
    const Example example = this->example(i);
    all_loaded_ = false;
    used_.clear();
    row_.clear();
    bool own = example.label < 0;
    for (const auto& [m, b] : coefficients_.row(i)) {
        used_.push_back(m);
        row_.push_back(b);
        own = own || m == example.label;
    }
    if (!own) {
        used_.push_back(example.label);
        row_.push_back(0.0);
    }
    weights_.products(rows_.row(i), used_, scores_.data());
    for (std::size_t c = 0; c < used_.size(); ++c) scores_[c] += bias_row_[used_[c]];
    load_gradient(example);
    const auto [highest, lowest, mine] =
        extremes_of(loss_, gradient_, row_, {place_of(example.label), example.cost_bound});
    return promise_of<Loss>(highest, lowest);
}

/// The row of an example with all its classes.
template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::load_row(Index i) {
    if (!all_loaded_) {
        used_.resize(classes_);
        std::iota(used_.begin(), used_.end(), Index{0});
        all_loaded_ = true;
    }
    row_.assign(classes_, 0.0);
    for (const auto& [m, b] : coefficients_.row(i)) row_[m] = b;
}

/// From the scores, for the classes that are loaded.
template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::load_gradient(const Example& example) {
    gradient_.resize(used_.size());
    const auto offsets = loss_.offsets(example.label);
    for (std::size_t c = 0; c < used_.size(); ++c) {
        gradient_[c] = static_cast<double>(scores_[c]) + offsets[used_[c]];
    }
    for_conjugate_gradient(loss_, row_, {place_of(example.label), example.cost_bound},
                           [&](Index c, double q) { gradient_[c] += q; });
}

template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::improve(Index i) {
    const Example example = this->example(i);
    const double curvature = rows_.norm(i) + weight_;
    before_ = row_;
    const Example placed{place_of(example.label), example.cost_bound};
    if (!loss_.step(gradient_, curvature, placed, row_)) return;
    conjugates_ += conjugate_of(loss_, row_, placed) - conjugate_of(loss_, before_, placed);
    const auto offsets = loss_.offsets(example.label);
    entries_.clear();
    changed_.clear();
    for (std::size_t c = 0; c < used_.size(); ++c) {
        const Index m = used_[c];
        if (row_[c] != 0.0) entries_.push_back({static_cast<std::int32_t>(m), row_[c]});
        const double by = row_[c] - before_[c];
        if (by == 0.0) continue;
        changed_.push_back(m);
        change_[changed_.size() - 1] = static_cast<Real>(by);
        linear_ += by * (offsets[m] + shift_[m]);
        // |w + by x|^2 = |w|^2 + 2 by w.x + by^2 |x|^2
        square_ += by * (2.0 * (static_cast<double>(scores_[c]) - bias_[m]) + by * rows_.norm(i));
        sums_[m] += by;
        bias_[m] += weight_ * by;
        bias_row_[m] = static_cast<Real>(bias_[m]);
    }
    if (changed_.empty()) return;
    coefficients_.set(i, entries_);
    if (classes_ > Weights<Real>::kFew) return weights_.add(rows_.row(i), changed_, change_.data());
    for (std::size_t c = changed_.size(); c-- > 0;) {  // spread over all classes, from behind: places only grow
        const Real by = std::exchange(change_[c], Real(0));
        change_[changed_[c]] = by;
    }
    weights_.add(rows_.row(i), change_.data());
    for (const Index m : changed_) change_[m] = Real(0);
}

/// Bring what the visits after the t-th of the loop need into the cache.
template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::prepare(std::size_t t) const {
    constexpr std::size_t announced = 8, fetched = 2;  // visits ahead
    if (t + announced < loop_.size()) {
        const Index i = loop_[t + announced];
        rows_.announce(i);
        coefficients_.announce(i);
        __builtin_prefetch(&labels_[i]);
        __builtin_prefetch(&cost_bounds_[i]);
    }
    if (t + fetched < loop_.size()) {
        rows_.fetch(loop_[t + fetched]);
        coefficients_.fetch(loop_[t + fetched]);
    }
}

template <RowLoss Loss, class Real>
template <class After>
double SequentialDual<Loss, Real>::visit_all(std::span<const std::uint32_t> examples, bool used_only, After&& after) {
    loop_.assign(examples.begin(), examples.end());
    if (settings_.shuffling) shuffle_.in_blocks(loop_);
    double worst = 0.0;
    const double negligible = std::isfinite(violation_) ? settings_.negligible * violation_ : 0.0;
    for (std::size_t t = 0; t < loop_.size(); ++t) {
        if (at_limit() || (static_cast<Index>(t) % kCheckEvery == 0 && !may_go_on())) return -1.0;
        prepare(t);
        const Index i = loop_[t];
        const double distance = used_only ? visit_used(i) : visit(i);
        worst = std::max(worst, distance);
        const bool above = distance > negligible;
        if (above && !used_only) {
            load_row(i);
            load_gradient(example(i));
        }
        if (above) improve(i);
        after(i, above);
    }
    return worst;
}

template <RowLoss Loss, class Real>
bool SequentialDual<Loss, Real>::full_loop() {
    double losses = 0.0;
    std::vector<double> scores(classes_);
    std::vector<char> is_at_vertex(all_.size(), 0);
    const double worst = visit_all(all_, false, [&](Index i, bool changed) {
        for (Index m = 0; m < classes_; ++m) scores[m] = static_cast<double>(scores_[m]);  // as they were before
        losses += cost_bounds_[i] * loss_.loss(scores, labels_[i]);
        if (!changed) load_row(i);
        is_at_vertex[i] = at_vertex(i);
    });
    if (worst < 0.0) return false;
    active_.clear();
    std::ranges::copy_if(all_, std::back_inserter(active_), [&](std::uint32_t i) { return !is_at_vertex[i]; });
    violation_ = worst;
    double square = square_;
    for (const double s : sums_) square += weight_ * s * s;
    const double primal = 0.5 * square + losses, dual = -0.5 * square - linear_ - conjugates_;
    // The losses are those of many moments: a guess below zero is as wrong as one above.
    guessed_gap_ = std::abs(primal - dual) / std::max({std::abs(primal), std::abs(dual), 1e-300});
    return true;
}

template <RowLoss Loss, class Real>
bool SequentialDual<Loss, Real>::shrunk_loops(double tolerance) {
    const auto most = static_cast<Index>(settings_.shrunk_loops * static_cast<double>(rows_.size()));
    const bool used_only = classes_ > Weights<Real>::kFew;
    std::vector<char> is_at_vertex(all_.size(), 0);
    for (Index done = 0; done < most && !active_.empty(); done += std::ssize(loop_)) {
        const double worst = visit_all(active_, used_only, [&](Index i, bool changed) {
            if (changed) is_at_vertex[i] = at_vertex(i);
        });
        if (worst < 0.0) return false;
        std::erase_if(active_, [&](std::uint32_t i) { return is_at_vertex[i] != 0; });
        if (worst <= tolerance) break;
    }
    return true;
}

template <RowLoss Loss, class Real>
Status SequentialDual<Loss, Real>::run(double gap, double loops) {
    const double enough = static_cast<double>(visits_) + loops * static_cast<double>(rows_.size());
    double best = std::numeric_limits<double>::infinity();
    for (int idle = 0;; ++idle) {
        if (!full_loop()) return reason_to_stop();
        control_.report({.done = 0, .total = 1, .iterations = visits_, .gap = guessed_gap_});
        if (guessed_gap_ <= gap || violation_ <= 0.0) return Status::converged;
        // What has added up in the weights and the norm may hide the rest.
        if (guessed_gap_ < 0.5 * best) {
            best = guessed_gap_;
            idle = 0;
        }
        if (idle == settings_.max_idle || static_cast<double>(visits_) >= enough) return Status::converged;
        if (settings_.shrinking && !shrunk_loops(settings_.cooling ? settings_.cooling_share * violation_ : 0.0)) {
            return reason_to_stop();
        }
    }
}

template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::start_from(std::span<const Index> support, std::span<const double> rows) {
    coefficients_ = Coefficients(rows_.size());
    std::ranges::fill(sums_, 0.0);
    linear_ = conjugates_ = 0.0;
    for (std::size_t s = 0; s < support.size(); ++s) {
        const Index i = support[s];
        const Example example = this->example(i);
        row_.assign(rows.begin() + s * classes_, rows.begin() + (s + 1) * classes_);
        loss_.make_feasible(example, row_);
        conjugates_ += conjugate_of(loss_, row_, example);
        const auto offsets = loss_.offsets(example.label);
        entries_.clear();
        for (Index m = 0; m < classes_; ++m) {
            if (row_[m] == 0.0) continue;
            entries_.push_back({static_cast<std::int32_t>(m), row_[m]});
            sums_[m] += row_[m];
            linear_ += row_[m] * (offsets[m] + shift_[m]);
        }
        coefficients_.set(i, entries_);
    }
}

template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::set_bias(double weight, std::span<const double> shift) {
    weight_ = weight;
    double change = 0.0;
    for (Index m = 0; m < classes_; ++m) {
        const double s = shift.empty() ? 0.0 : shift[m];
        change += (s - shift_[m]) * sums_[m];
        shift_[m] = s;
        bias_[m] = weight * sums_[m] + s;
        bias_row_[m] = static_cast<Real>(bias_[m]);
    }
    linear_ += change;
}

template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::set_weights(std::span<const double> weights) {
    square_ = 0.0;
    const auto original = rows_.original_features();
    for (Index f = 0; f < rows_.features(); ++f) {
        const double* from = weights.data() + original[f] * classes_;
        for (Index m = 0; m < classes_; ++m) {
            weights_.row(f)[m] = static_cast<Real>(from[m]);
            square_ += from[m] * from[m];
        }
    }
}

}  // namespace polymargin
