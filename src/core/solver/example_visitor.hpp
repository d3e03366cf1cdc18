#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "linear/measure.hpp"
#include "linear/rows.hpp"
#include "linear/weights.hpp"
#include "problem/conjugate.hpp"
#include "problem/multiclass.hpp"
#include "solver/coefficients.hpp"
#include "solver/violations.hpp"

namespace polymargin {

/// What visits to examples read: the problem, and a point that stays as it is while they are made.
template <RowLoss Loss, class Real>
struct LinearPoint {
    const Loss& loss;
    std::span<const Index> labels;
    std::span<const double> cost_bounds;
    Index classes;
    const LinearRows<Real>& rows;
    const Weights<Real>& weights;
    const Coefficients& coefficients;
    std::span<const Real> bias;  ///< as long as a row of weights
    const double& bias_weight;   ///< what a coefficient adds to the bias of its class

    [[nodiscard]] Example example(Index i) const { return {labels[i], cost_bounds[i]}; }
    [[nodiscard]] double curvature(Index i) const { return rows.norm(i) + bias_weight; }
};

/// What a visit to an example found, to be applied to the point.
template <class Real>
struct Visit {
    /// A coefficient that changes, and the score of its class before.
    struct Change {
        Index column;
        double by;
        Real score;
    };

    double promise = 0.0;    ///< given the others
    double loss = 0.0;       ///< times C_i, if it was asked for
    double conjugate = 0.0;  ///< change of q_i
    double unseen = 0.0;     ///< change of the linear part along the mean of all classes, where scores do not see it
    bool at_vertex = false;  ///< of the row as it becomes; known if it changes, or if the loss was asked for
    bool worth = false;      ///< it promised enough to look for a better row
    std::vector<Coefficients::Entry> row;
    std::vector<Change> changes;  ///< by ascending class where all may change; empty: the row stays
};

/// How an example is visited.
struct VisitKind {
    bool used_only;           ///< with the classes that it uses and its own alone: with many classes that is much less
    bool with_loss;           ///< the loss too, which needs all classes
    double negligible = 0.0;  ///< an example that promises less is left as it is
};

/// Visits one example at a time: its scores, what it promises, and its best row while all others stay. Several visitors
/// may read the same point at once.
template <RowLoss Loss, class Real>
class ExampleVisitor {
  public:
    explicit ExampleVisitor(const LinearPoint<Loss, Real>& point)
        : point_(point),
          scores_(point.weights.width()),
          taken_(point.weights.width()),
          grow_(point.weights.width(), kInfinity),
          fall_(point.weights.width(), -kInfinity),
          loaded_(point.weights.width(), Real(0)) {
        for (Index m = 0; m < point.classes; ++m) set_limits(m, 0.0, false, 1.0);
    }

    void operator()(Index i, const VisitKind& kind, Visit<Real>& visit) {
        visit.changes.clear();
        visit.conjugate = visit.unseen = 0.0;
        const Example example = point_.example(i);
        visit.promise = kind.used_only ? promise_of_used(i, example) : promise_of_all(i, example);
        if (kind.with_loss) visit.loss = example.cost_bound * loss_of_scores(example.label);
        visit.worth = visit.promise > kind.negligible;
        if (visit.worth && improve(i, example, kind.used_only)) note(example, visit);
        if (visit.worth || kind.with_loss) {
            if (!visit.worth) load_used(i);
            visit.at_vertex = point_.loss.at_vertex(row_, placed(example));
        }
    }

  private:
    static constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

    double promise_of_all(Index i, const Example& example) {
        point_.weights.products(point_.rows.row(i), scores_.data());
        if constexpr (JoinableLoss<Loss>) {
            return promise_of_scores(i, example);
        } else {
            for (Index m = 0; m < point_.classes; ++m) scores_[m] += point_.bias[m];
            load_all(i);
            return promise_of_loaded(example);
        }
    }
    double promise_of_used(Index i, const Example& example) {
        load_used(i);
        point_.weights.products(point_.rows.row(i), used_, taken_.data());
        for (std::size_t c = 0; c < used_.size(); ++c) taken_[c] += point_.bias[used_[c]];
        return promise_of_loaded(example);
    }
    double promise_of_loaded(const Example& example) {
        load_gradient(example);
        return promise_of(point_.loss, extremes_of(point_.loss, gradient_, row_, placed(example)));
    }
    /// Of the products of an example, to which the bias is added, in one pass over its classes.
    double promise_of_scores(Index i, const Example& example) {
        const OwnOffset offsets = point_.loss.offsets(example.label);
        // The limits stand for an example of no class whose coefficients are zero; few differ.
        const auto row = point_.coefficients.row(i);
        if (example.label >= 0) set_limits(example.label, 0.0, true, example.cost_bound);
        for (const auto& [m, b] : row) set_limits(m, b, m == example.label, example.cost_bound);
        const Real own = example.label >= 0 ? static_cast<Real>(offsets.own - offsets.others) : Real(0);
        const auto [highest, lowest] = add_and_measure<Real>(scores_, point_.bias, static_cast<Real>(offsets.others),
                                                             example.label, own, fall_, grow_);
        if (example.label >= 0) set_limits(example.label, 0.0, false, 1.0);
        for (const auto& [m, b] : row) set_limits(m, 0.0, false, 1.0);
        return promise_of(point_.loss, {static_cast<double>(highest), static_cast<double>(lowest), 0.0});
    }
    double loss_of_scores(Index label) {
        all_scores_.assign(scores_.begin(), scores_.begin() + point_.classes);
        return point_.loss.loss(all_scores_, label);
    }

    /// Make the row of an example the best one, once its scores are known; false if there is none.
    bool improve(Index i, const Example& example, bool used_only) {
        if constexpr (JoinableLoss<Loss>) {
            if (!used_only) return improve_joining(i, example);
        }
        before_ = row_;
        return step(i, example);
    }
    /// First with the classes that it uses and the one with the highest score, then with those that are missing by what
    /// comes of it. They are few, and a step with all would cost more than the scores.
    bool improve_joining(Index i, const Example& example) {
        load_used(i);
        const Index top = std::ranges::max_element(scores_.begin(), scores_.begin() + point_.classes) - scores_.begin();
        if (place_of(top) < 0) load(top);
        before_ = row_;
        do {
            row_ = before_;
            for (std::size_t c = 0; c < used_.size(); ++c) taken_[c] = scores_[used_[c]];
            load_gradient(example);
            if (!step(i, example)) return false;
        } while (load_missing(i, example));
        return true;
    }
    bool step(Index i, const Example& example) {
        return point_.loss.step(gradient_, point_.curvature(i), placed(example), row_);
    }
    /// Load the classes that would gain beside a row which is best for those that are loaded; whether there are any.
    bool load_missing(Index i, const Example& example) {
        double level = 0.0;  // of a class for itself
        if constexpr (Loss::kRowsSumToZero) level = lowest_after(point_.curvature(i), example);
        const auto above = static_cast<Real>(level - point_.loss.offsets(example.label).others);
        const std::size_t loaded = used_.size();
        for (const Index m : used_) loaded_[m] = -kInfinity;
        missing_.resize(point_.classes);
        std::size_t count = 0;
        for (Index m = 0; m < point_.classes; ++m) {  // without branches
            missing_[count] = m;
            count += static_cast<std::size_t>(scores_[m] + loaded_[m] > above);
        }
        for (const Index m : used_) loaded_[m] = Real(0);
        for (std::size_t c = 0; c < count; ++c) load(missing_[c]);
        before_.resize(used_.size(), 0.0);
        return used_.size() > loaded;
    }
    /// The lowest gradient after a step among the classes that may grow.
    [[nodiscard]] double lowest_after(double curvature, const Example& example) const {
        double lowest = std::numeric_limits<double>::infinity();
        for (std::size_t c = 0; c < used_.size(); ++c) {
            if (!point_.loss.may_grow(row_[c], used_[c] == example.label, example.cost_bound)) continue;
            lowest = std::min(lowest, gradient_[c] + curvature * (row_[c] - before_[c]));
        }
        return lowest;
    }

    /// What the step did.
    void note(const Example& example, Visit<Real>& visit) const {
        const Example place = placed(example);
        visit.conjugate = conjugate_of(point_.loss, row_, place) - conjugate_of(point_.loss, before_, place);
        visit.row.clear();
        const double mean = unseen_change(example, visit);
        for (std::size_t c = 0; c < used_.size(); ++c) {
            if (row_[c] != 0.0) visit.row.push_back({static_cast<std::int32_t>(used_[c]), row_[c]});
            const double by = row_[c] - before_[c] - mean;
            if (by != 0.0) visit.changes.push_back({used_[c], by, taken_[c]});
        }
        // Classes were loaded as they were found missing; who reads coefficients expects them to ascend.
        std::ranges::sort(visit.row, {}, &Coefficients::Entry::column);
    }

    /// The mean of a change, which does not reach the weights where the scores of an example sum to zero; else 0. What
    /// moves no weight gains nothing, and is no change.
    double unseen_change(const Example& example, Visit<Real>& visit) const {
        double mean = 0.0;
        if constexpr (kScoresSumToZero<Loss>) {
            const auto offsets = point_.loss.offsets(example.label);
            double sum = 0.0;
            for (Index m = 0; m < point_.classes; ++m) {
                mean += (row_[m] - before_[m]) / static_cast<double>(point_.classes);
                sum += offsets[m];
            }
            visit.unseen = mean * sum;
        }
        return mean;
    }

    void load(Index m) {
        used_.push_back(m);
        row_.push_back(0.0);
    }
    /// The row of an example with the classes that it uses and its own.
    void load_used(Index i) {
        all_loaded_ = false;
        used_.clear();
        row_.clear();
        const Index label = point_.labels[i];
        bool own = label < 0;
        for (const auto& [m, b] : point_.coefficients.row(i)) {
            used_.push_back(m);
            row_.push_back(b);
            own = own || m == label;
        }
        if (!own) load(label);
    }
    /// The row of an example with all its classes, and their scores.
    void load_all(Index i) {
        if (!all_loaded_) {
            used_.resize(point_.classes);
            std::iota(used_.begin(), used_.end(), Index{0});
            all_loaded_ = true;
        }
        row_.assign(point_.classes, 0.0);
        for (const auto& [m, b] : point_.coefficients.row(i)) row_[m] = b;
        std::copy_n(scores_.begin(), point_.classes, taken_.begin());
    }
    /// From the scores, for the classes that are loaded.
    void load_gradient(const Example& example) {
        gradient_.resize(used_.size());
        const auto offsets = point_.loss.offsets(example.label);
        for (std::size_t c = 0; c < used_.size(); ++c) {
            gradient_[c] = static_cast<double>(taken_[c]) + offsets[used_[c]];
        }
        for_conjugate_gradient(point_.loss, row_, placed(example), [&](Index c, double q) { gradient_[c] += q; });
    }
    /// Where a class is among those that are loaded, -1 if it is not.
    [[nodiscard]] Index place_of(Index m) const {
        if (all_loaded_) return m;
        const auto found = std::ranges::find(used_, m);
        return found == used_.end() ? -1 : found - used_.begin();
    }
    [[nodiscard]] Example placed(const Example& example) const { return {place_of(example.label), example.cost_bound}; }
    /// Note whether a coefficient may grow or fall.
    void set_limits(Index m, double b, bool own, double bound) {
        grow_[m] = point_.loss.may_grow(b, own, bound) ? Real(0) : kInfinity;
        fall_[m] = point_.loss.may_fall(b, own, bound) ? Real(0) : -kInfinity;
    }

    const LinearPoint<Loss, Real>& point_;
    std::vector<Real> scores_, taken_;  // of all classes; of those that are loaded
    std::vector<Real> grow_, fall_;     // 0 where a coefficient of the row may grow (fall), else +inf (-inf)
    std::vector<Real> loaded_;          // -inf for the classes that are loaded, else 0
    std::vector<double> all_scores_;
    std::vector<Index> used_, missing_;            // the classes that are loaded
    std::vector<double> gradient_, row_, before_;  // for each of them
    bool all_loaded_ = false;
};

}  // namespace polymargin
