#pragma once

// The member functions of `SequentialDual`; included by its header alone.

namespace polymargin {

template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::visit_batch(std::size_t t, Index count, const VisitKind& kind) {
    const auto visit_chunk = [&](Index c) {
        for (Index v = c * kChunk; v < std::min(count, (c + 1) * kChunk); ++v) {
            prepare(t + v);
            visitors_[c](loop_[t + v], kind, visits_made_[v]);
        }
    };
    visits_ += count;
    const Index chunks = (count + kChunk - 1) / kChunk;
    if (shared(count)) return pool_->for_each(chunks, visit_chunk);
    for (Index c = 0; c < chunks; ++c) visit_chunk(c);
}

/// In each loop batches are tried again, from the smallest on that threads are woken for.
template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::begin_batches(bool used_only) {
    work_ = work_of_visit(used_only);
    const double least = std::ceil(settings_.worth_waking / std::max(1.0, work_));
    least_in_batch_ = std::max<Index>(2, static_cast<Index>(std::min(least, 1e9)));
    batch_ = least_in_batch_ > most_in_batch_ ? 1 : std::max(batch_, least_in_batch_);
}

template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::apply_batch(std::size_t t, Index count) {
    apply_steps(t, count);
    if (batch_ == 1) return;
    const double coupled = coupling(t, count);
    if (coupled > 2.0) shorten(t, count, 1.0 / coupled);
    if (coupled > settings_.coupling_to_shrink) {
        batch_ = batch_ / 2 < least_in_batch_ ? 1 : batch_ / 2;
    } else if (coupled < settings_.coupling_to_grow && count == batch_) {
        batch_ = std::min(most_in_batch_, 2 * batch_);
    }
}

/// Where threads share it, the coefficients and what they add up to are one task, and each part of the weights is one.
template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::apply_steps(std::size_t t, Index count) {
    const auto for_changes = [&](auto&& each) {
        for (Index v = 0; v < count; ++v) {
            if (!visits_made_[v].changes.empty()) each(loop_[t + v], visits_made_[v]);
        }
    };
    if (!shared(count)) {
        return for_changes([&](Index i, const Visit<Real>& visit) {
            note(i, visit);
            add_to_weights(point_.rows.row(i), visit, rooms_[0]);
        });
    }
    pool_->for_each(1 + point_.rows.parts(), [&](Index task) {
        for_changes([&](Index i, const Visit<Real>& visit) {
            if (task == 0) return note(i, visit);
            add_to_weights(point_.rows.part(i, task - 1), visit, rooms_[task - 1]);
        });
    });
}

template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::note(Index i, const Visit<Real>& visit) {
    conjugates_ += visit.conjugate;
    linear_ += visit.unseen;
    const auto offsets = point_.loss.offsets(point_.labels[i]);
    for (const auto& [m, by, score] : visit.changes) {
        linear_ += by * (offsets[m] + shift_[m]);
        sums_[m] += by;
        bias_[m] += weight_ * by;
        bias_row_[m] = static_cast<Real>(bias_[m]);
    }
    coefficients_.set(i, visit.row);
}

template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::add_to_weights(const Row<Real>& x, const Visit<Real>& visit, Room& room) {
    const bool few = point_.classes <= Weights<Real>::kFew;
    room.classes.clear();
    for (const auto& [m, by, score] : visit.changes) {
        room.change[few ? m : std::ssize(room.classes)] = static_cast<Real>(by);
        room.classes.push_back(m);
    }
    if (!few) return weights_.add(x, room.classes, room.change.data());
    weights_.add(x, room.change.data());
    for (const Index m : room.classes) room.change[m] = Real(0);
}

template <RowLoss Loss, class Real>
double SequentialDual<Loss, Real>::coupling(std::size_t t, Index count) {
    const Index stride = (count + settings_.probes - 1) / settings_.probes;
    double alone = 0.0, together = 0.0;
    std::vector<Real> scores(weights_.width());
    std::vector<Index> classes;
    for (Index v = 0; v < count; v += stride) {
        const Visit<Real>& visit = visits_made_[v];
        if (visit.changes.empty()) continue;
        const Index i = loop_[t + v];
        classes.clear();
        for (const auto& change : visit.changes) classes.push_back(change.column);
        weights_.products(point_.rows.row(i), classes, scores.data());
        for (std::size_t c = 0; c < classes.size(); ++c) {
            const auto& [m, by, score] = visit.changes[c];
            together += by * static_cast<double>(scores[c] + bias_row_[m] - score);
            alone += by * by * point_.curvature(i);
        }
    }
    return alone > 0.0 ? together / alone : 1.0;
}

template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::shorten(std::size_t t, Index count, double share) {
    for (Index v = 0; v < count; ++v) {
        Visit<Real>& visit = visits_made_[v];
        for (auto& [m, by, score] : visit.changes) {
            by *= share - 1.0;
            const auto found = std::ranges::find(visit.row, static_cast<std::int32_t>(m), &Entry::column);
            if (found != visit.row.end()) {
                found->value += by;
            } else {
                visit.row.push_back({static_cast<std::int32_t>(m), by});
            }
        }
    }
    apply_steps(t, count);
}

/// Bring what the visits after the t-th of the loop need into the cache.
template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::prepare(std::size_t t) const {
    constexpr std::size_t announced = 8, fetched = 2;  // visits ahead
    if (t + announced < loop_.size()) {
        const Index i = loop_[t + announced];
        point_.rows.announce(i);
        coefficients_.announce(i);
        __builtin_prefetch(&point_.labels[i]);
        __builtin_prefetch(&point_.cost_bounds[i]);
    }
    if (t + fetched < loop_.size()) {
        point_.rows.fetch(loop_[t + fetched]);
        coefficients_.fetch(loop_[t + fetched]);
    }
}

template <RowLoss Loss, class Real>
template <class After>
double SequentialDual<Loss, Real>::visit_all(std::span<const std::uint32_t> examples, VisitKind kind, After&& after) {
    loop_.assign(examples.begin(), examples.end());
    if (settings_.shuffling) shuffle_.in_blocks(loop_);
    double worst = 0.0;
    kind.negligible = std::isfinite(violation_) ? settings_.negligible * violation_ : 0.0;
    begin_batches(kind.used_only);
    Index unchecked = kCheckEvery;
    for (std::size_t t = 0; t < loop_.size();) {
        if (at_limit() || (unchecked >= kCheckEvery && !may_go_on())) return -1.0;
        if (unchecked >= kCheckEvery) unchecked = 0;
        Index count = std::min<Index>(batch_, std::ssize(loop_) - static_cast<Index>(t));
        if (settings_.max_visits >= 0) count = std::min(count, settings_.max_visits - visits_);
        visit_batch(t, count, kind);
        for (Index v = 0; v < count; ++v) {
            worst = std::max(worst, visits_made_[v].promise);
            after(loop_[t + v], visits_made_[v]);
        }
        apply_batch(t, count);
        note_mean();
        t += count;
        unchecked += count;
    }
    return worst;
}

template <RowLoss Loss, class Real>
bool SequentialDual<Loss, Real>::full_loop() {
    double losses = 0.0;
    std::vector<char> is_at_vertex(all_.size(), 0);
    const double worst =
        visit_all(all_, {.used_only = false, .with_loss = true}, [&](Index i, const Visit<Real>& visit) {
            losses += visit.loss;
            is_at_vertex[i] = visit.at_vertex;
        });
    if (worst < 0.0) return false;
    active_.clear();
    std::ranges::copy_if(all_, std::back_inserter(active_), [&](std::uint32_t i) { return !is_at_vertex[i]; });
    violation_ = worst;
    double square = squared_weights();
    for (const double s : sums_) square += weight_ * s * s;
    const double primal = 0.5 * square + losses, dual = -0.5 * square - linear_ - conjugates_;
    // The losses are those of many moments: a guess below zero is as wrong as one above.
    guessed_gap_ = std::abs(primal - dual) / std::max({std::abs(primal), std::abs(dual), 1e-300});
    return true;
}

template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::note_mean() {
    if (!settings_.mean) return;
    const auto n = static_cast<double>(point_.rows.size());
    const auto size = static_cast<double>(point_.rows.features() * weights_.width());
    const double visits = std::max(n / settings_.means_in_loop, size / (settings_.mean_share * std::max(1.0, work_)));
    if (static_cast<double>(visits_ - noted_) < visits) return;
    noted_ = visits_;
    if (mean_.moments > 0 && mean_.moments >= 2 * mean_before_.moments) {
        std::swap(mean_, mean_before_);
        mean_ = {};
    }
    mean_.weights.resize(point_.rows.features() * weights_.width(), 0.0);
    mean_.bias.resize(point_.classes, 0.0);
    const Real* w = weights_.row(0);
    for (double& sum : mean_.weights) sum += static_cast<double>(*w++);
    for (Index m = 0; m < point_.classes; ++m) mean_.bias[m] += bias_[m];
    ++mean_.moments;
}

template <RowLoss Loss, class Real>
PrimalPoint SequentialDual<Loss, Real>::mean_point() const {
    PrimalPoint point{std::vector<double>(point_.rows.features() * point_.classes, 0.0),
                      std::vector<double>(point_.classes, 0.0)};
    const Index moments = mean_.moments + mean_before_.moments;
    const auto original = point_.rows.original_features();
    for (const Mean* mean : {&mean_, &mean_before_}) {
        if (mean->moments == 0) continue;
        for (Index m = 0; m < point_.classes; ++m) {
            for (Index f = 0; f < point_.rows.features(); ++f) {
                point.weights[original[f] * point_.classes + m] +=
                    mean->weights[f * weights_.width() + m] / static_cast<double>(moments);
            }
            point.bias[m] += mean->bias[m] / static_cast<double>(moments);
        }
    }
    return point;
}

template <RowLoss Loss, class Real>
double SequentialDual<Loss, Real>::squared_weights() const {
    double square = 0.0;
    for (Index f = 0; f < point_.rows.features(); ++f) square += sum_of_squares(weights_.row(f), weights_.width());
    return square;
}

template <RowLoss Loss, class Real>
bool SequentialDual<Loss, Real>::shrunk_loops(double tolerance) {
    const auto most = static_cast<Index>(settings_.shrunk_loops * static_cast<double>(point_.rows.size()));
    // Where scores sum to zero a step on some classes would change all.
    const VisitKind kind{.used_only = point_.classes > Weights<Real>::kFew && !kScoresSumToZero<Loss>,
                         .with_loss = false};
    std::vector<char> is_at_vertex(all_.size(), 0);
    for (Index done = 0; done < most && !active_.empty(); done += std::ssize(loop_)) {
        const double worst = visit_all(active_, kind, [&](Index i, const Visit<Real>& visit) {
            if (visit.worth) is_at_vertex[i] = visit.at_vertex;
        });
        if (worst < 0.0) return false;
        std::erase_if(active_, [&](std::uint32_t i) { return is_at_vertex[i] != 0; });
        if (worst <= tolerance) break;
    }
    return true;
}

template <RowLoss Loss, class Real>
Status SequentialDual<Loss, Real>::run(double gap, double loops) {
    const double enough = static_cast<double>(visits_) + loops * static_cast<double>(point_.rows.size());
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
    coefficients_ = Coefficients(point_.rows.size());
    std::ranges::fill(sums_, 0.0);
    linear_ = conjugates_ = 0.0;
    std::vector<double> row;
    for (std::size_t s = 0; s < support.size(); ++s) {
        const Index i = support[s];
        const Example example = point_.example(i);
        row.assign(rows.begin() + s * point_.classes, rows.begin() + (s + 1) * point_.classes);
        point_.loss.make_feasible(example, row);
        conjugates_ += conjugate_of(point_.loss, row, example);
        const auto offsets = point_.loss.offsets(example.label);
        entries_.clear();
        for (Index m = 0; m < point_.classes; ++m) {
            if (row[m] == 0.0) continue;
            entries_.push_back({static_cast<std::int32_t>(m), row[m]});
            sums_[m] += row[m];
            linear_ += row[m] * (offsets[m] + shift_[m]);
        }
        coefficients_.set(i, entries_);
    }
    if constexpr (kScoresSumToZero<Loss>) take_mean_away(sums_);
}

template <RowLoss Loss, class Real>
void SequentialDual<Loss, Real>::set_bias(double weight, std::span<const double> shift) {
    weight_ = weight;
    double change = 0.0;
    for (Index m = 0; m < point_.classes; ++m) {
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
    const auto original = point_.rows.original_features();
    for (Index f = 0; f < point_.rows.features(); ++f) {
        const double* from = weights.data() + original[f] * point_.classes;
        for (Index m = 0; m < point_.classes; ++m) weights_.row(f)[m] = static_cast<Real>(from[m]);
    }
}

}  // namespace polymargin
