#pragma once

// The member functions of `SequentialDual`; included by its header alone.

namespace polymargin {

template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::load_row(Index i) {
    std::fill(row_.begin(), row_.end(), 0.0);
    for (const auto& [column, value] : coefficients_.row(i)) row_[column] = value;
}

template <RowLoss Loss, class Real>
double SequentialDual<Loss, Real>::visit(Index i) {
    ++visits_;
    const Example example = this->example(i);
    weights_.products(rows_.row(i), scores_.data());
    // The limits stand for an example of no class whose coefficients are zero; few differ.
    const auto row = coefficients_.row(i);
    if (example.label >= 0) set_limits(example.label, 0.0, true, example.bound);
    for (const auto& [m, b] : row) set_limits(m, b, m == example.label, example.bound);
    const Real own = example.label >= 0 ? static_cast<Real>(loss_.offset(true) - loss_.offset(false)) : Real(0);
    const auto [highest, lowest] = add_and_measure<Real>(scores_, bias_row_, static_cast<Real>(loss_.offset(false)),
                                                         example.label, own, fall_, grow_);
    if (example.label >= 0) set_limits(example.label, 0.0, false, 1.0);
    for (const auto& [m, b] : row) set_limits(m, 0.0, false, 1.0);
    return std::max(0.0, static_cast<double>(Loss::kCoupled ? highest - lowest : std::max(highest, -lowest)));
}

/// Make the row that was visited last the best one.
template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::improve(Index i) {
    const Example example = this->example(i);
    const double curvature = rows_.norm(i) + weight_;
    load_row(i);
    std::copy(row_.begin(), row_.end(), before_.begin());
    for (Index m = 0; m < classes_; ++m) {
        gradient_[m] = static_cast<double>(scores_[m]) + loss_.offset(m == example.label);
    }
    if (!loss_.step(gradient_, curvature, example, row_)) return;
    entries_.clear();
    used_.clear();
    for (Index m = 0; m < classes_; ++m) {
        const double by = row_[m] - before_[m];
        if (row_[m] != 0.0) entries_.push_back({static_cast<std::int32_t>(m), row_[m]});
        change_[m] = static_cast<Real>(by);
        if (by == 0.0) continue;
        used_.push_back(m);
        linear_ += by * (loss_.offset(m == example.label) + shift_[m]);
        // |w + by x|^2 = |w|^2 + 2 by w.x + by^2 |x|^2
        square_ += by * (2.0 * (static_cast<double>(scores_[m]) - bias_[m]) + by * rows_.norm(i));
        sums_[m] += by;
        bias_[m] += weight_ * by;
        bias_row_[m] = static_cast<Real>(bias_[m]);
    }
    if (used_.empty()) return;
    coefficients_.set(i, entries_);
    if (classes_ <= Weights<Real>::kFew) return weights_.add(rows_.row(i), change_.data());
    for (std::size_t c = 0; c < used_.size(); ++c) change_[c] = static_cast<Real>(row_[used_[c]] - before_[used_[c]]);
    weights_.add(rows_.row(i), used_, change_.data());
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
        __builtin_prefetch(&bounds_[i]);
    }
    if (t + fetched < loop_.size()) {
        rows_.fetch(loop_[t + fetched]);
        coefficients_.fetch(loop_[t + fetched]);
    }
}

template <RowLoss Loss, class Real>
template <class After>
double SequentialDual<Loss, Real>::visit_all(std::span<const std::uint32_t> examples, After&& after) {
    loop_.assign(examples.begin(), examples.end());
    if (settings_.shuffling) shuffle_.in_blocks(loop_);
    double worst = 0.0;
    for (std::size_t t = 0; t < loop_.size(); ++t) {
        if (static_cast<Index>(t) % kCheckEvery == 0 && !may_go_on()) return -1.0;
        prepare(t);
        const double distance = visit(loop_[t]);
        worst = std::max(worst, distance);
        if (distance > 0.0) improve(loop_[t]);
        after(loop_[t], distance > 0.0);
    }
    return worst;
}

template <RowLoss Loss, class Real>
bool SequentialDual<Loss, Real>::full_loop() {
    double losses = 0.0;
    std::vector<double> scores(classes_);
    std::vector<char> rests(all_.size(), 0);
    const double worst = visit_all(all_, [&](Index i, bool changed) {
        for (Index m = 0; m < classes_; ++m) scores[m] = static_cast<double>(scores_[m]);  // as they were before
        losses += bounds_[i] * loss_.loss(scores, labels_[i]);
        if (!changed) load_row(i);
        rests[i] = loss_.at_rest(row_, example(i));
    });
    if (worst < 0.0) return false;
    active_.clear();
    std::ranges::copy_if(all_, std::back_inserter(active_), [&](std::uint32_t i) { return !rests[i]; });
    violation_ = worst;
    double square = square_;
    for (const double s : sums_) square += weight_ * s * s;
    const double primal = 0.5 * square + losses, dual = -0.5 * square - linear_;
    guessed_gap_ = (primal - dual) / std::max({std::abs(primal), std::abs(dual), 1e-300});
    return true;
}

template <RowLoss Loss, class Real>
bool SequentialDual<Loss, Real>::shrunk_loops(double tolerance) {
    const auto most = static_cast<Index>(kMostShrunkLoops * static_cast<double>(rows_.size()));
    std::vector<char> rests(all_.size(), 0);
    for (Index done = 0; done < most && !active_.empty(); done += std::ssize(loop_)) {
        const double worst = visit_all(active_, [&](Index i, bool changed) {
            if (changed) rests[i] = loss_.at_rest(row_, example(i));
        });
        if (worst < 0.0) return false;
        std::erase_if(active_, [&](std::uint32_t i) { return rests[i] != 0; });
        if (worst <= tolerance) break;
    }
    return true;
}

template <RowLoss Loss, class Real>
Status SequentialDual<Loss, Real>::run(double gap) {
    while (true) {
        if (!full_loop()) return stop_reason();
        control_.report({.done = 0, .total = 1, .iterations = visits_, .violation = guessed_gap_});
        if (guessed_gap_ <= gap || violation_ <= 0.0) return Status::converged;
        if (settings_.shrinking && !shrunk_loops(settings_.cooling ? kCooling * violation_ : 0.0)) {
            return stop_reason();
        }
    }
}

template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::start_from(std::span<const Index> support, std::span<const double> rows) {
    for (std::size_t s = 0; s < support.size(); ++s) {
        const Index i = support[s];
        const Example example = this->example(i);
        std::copy_n(rows.begin() + s * classes_, classes_, row_.begin());
        loss_.make_feasible(example, row_);
        entries_.clear();
        for (Index m = 0; m < classes_; ++m) {
            if (row_[m] == 0.0) continue;
            entries_.push_back({static_cast<std::int32_t>(m), row_[m]});
            sums_[m] += row_[m];
            linear_ += row_[m] * (loss_.offset(m == example.label) + shift_[m]);
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
