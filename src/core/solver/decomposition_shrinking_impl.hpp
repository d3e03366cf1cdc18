#pragma once

// The member functions of `Decomposition` that solve for some examples alone; included by its header alone.

namespace polymargin {

template <MulticlassLoss Loss, class Real>
std::vector<Index> Decomposition<Loss, Real>::active() const {
    std::vector<Index> members;
    for (Index i = 0; i < size(); ++i) {
        if (last_violated_[i] > rounds_ - settings_.rounds_without_violation || !at_vertex(i)) members.push_back(i);
    }
    return members;
}

template <MulticlassLoss Loss, class Real>
bool Decomposition<Loss, Real>::shrinking_pays(std::span<const Index> active, double tolerance) const {
    const Index count = std::ssize(active);
    if (violation_ < settings_.near_tolerance * tolerance) return false;
    if (count > static_cast<Index>(settings_.active_share * static_cast<double>(size()))) return false;
    // Rows that stay in the cache cost nothing more; rows that do not all fit are better short.
    return store_.whole() ? RestrictedStore<Real>::fits(store_, count) : store_.overflowed();
}

template <MulticlassLoss Loss, class Real>
void Decomposition<Loss, Real>::adopt(const Decomposition& from, std::span<const Index> members) {
    for (Index m = 0; m < classes_; ++m) {
        for (Index i = 0; i < size(); ++i) {
            gradient_view().at(m, i) = from.gradient().at(m, members[i]);
            beta_view().at(m, i) = from.beta().at(m, members[i]);
        }
    }
    bias_ = from.bias_;
    measure();
}

template <MulticlassLoss Loss, class Real>
bool Decomposition<Loss, Real>::solve_active(std::span<const Index> active, double tolerance, Index most_steps,
                                             double most_work) {
    std::vector<Index> labels;
    std::vector<double> cost_bounds;
    for (const Index i : active) {
        labels.push_back(labels_[i]);
        cost_bounds.push_back(cost_bounds_[i]);
    }
    std::vector<double> changes(active.size() * classes_);
    Index steps = 0;
    {
        if (!store_.whole()) {
            store_.close(*table_);  // its memory is needed
            return_freed_memory();
        }
        RestrictedStore<Real> restricted(store_, active);
        if (!store_.whole() && restricted.store().capacity(std::ssize(active)) < settings_.working_set) return false;
        ++shrinkings_;
        DecompositionSettings settings = settings_;
        settings.gap = 0.0;  // that of a part says nothing
        Decomposition problem(loss_, labels, cost_bounds, classes_, restricted.store(), settings, control_);
        problem.adopt(*this, active);
        problem.run(tolerance, most_steps, most_work);
        steps = problem.iterations();
        other_work_ += problem.work();
        store_.count_evaluations(restricted.store().evaluations());
        for (Index i = 0; i < std::ssize(active); ++i) {
            for (Index m = 0; m < classes_; ++m) {
                changes[i * classes_ + m] = problem.beta().at(m, i) - beta().at(m, active[i]);
            }
        }
    }
    if (!store_.whole()) return_freed_memory();
    iterations_ += steps;
    for (const Index i : active)
        last_violated_[i] = rounds_ - settings_.rounds_without_violation;  // who is at a vertex now may stay there
    return change_rows(active, changes) && steps > 0;
}

}  // namespace polymargin
