#pragma once

// The member functions of `ProximalNewton` that work on growing samples; included by its header alone.

#include <algorithm>
#include <cmath>
#include <vector>

namespace polymargin {

template <NewtonLoss Loss, class Real>
std::vector<Index> ProximalNewton<Loss, Real>::samples(const LinearRows<Real>& rows, const NewtonSettings& settings) {
    const Index least = std::max(settings.least_sample, settings.sample_per_feature * rows.features());
    std::vector<Index> sizes{rows.size()};
    while (sizes.back() / settings.growth >= least) sizes.push_back(sizes.back() / settings.growth);
    std::ranges::reverse(sizes);
    return sizes;
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::take_first(Index count) {
    rows_.read_to(count, {.pool = &pool_, .control = &control_, .thorough = patient_});
    active_ = count;
    centred_ = 0;
    least_norm_ = mean_cost_ = 0.0;
    for (Index i = 0; i < count; ++i) {
        least_norm_ += (rows_.norm(i) + weight_) / static_cast<double>(count);
        mean_cost_ += cost_bounds_[i] / static_cast<double>(count);
    }
    best_.primal = std::numeric_limits<double>::infinity();  // another sample, another objective
    scale_ = static_cast<double>(rows_.size()) / static_cast<double>(std::max<Index>(1, count));
    // In the first two columns: C x^2, and its square.
    in_parts(active_, false, [&](Share& share, Range tile) {
        const auto add = [&](Index f, double reach) {
            share.weights[f * width_] += reach;
            share.weights[f * width_ + 1] += reach * reach;
        };
        for (Index i = tile.begin; i < tile.end; ++i) {
            const Row<Real> x = rows_.row(i);
            const double cost = example(i).cost_bound;
            for (Index p = 0; p < x.count; ++p) {
                const auto value = static_cast<double>(x.values[p]);
                add(x.columns == nullptr ? p : static_cast<Index>(x.columns[p]), cost * value * value);
            }
            if (bias_ > 0.0) add(size_ - 1, cost * weight_);
        }
    });
    const Vector sums = sum_of(shares_);
    for (Index f = 0; f < size_; ++f) {
        const double reach = sums[f * width_], squares = sums[f * width_ + 1];
        reach_[f] = reach;
        bearers_[f] = squares > 0.0 ? reach * reach / squares : 0.0;
    }
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::sum_centre() {
    in_parts(active_, false, [&](Share& share, Range tile) {
        if (middle_) set_middle(share, tile);
        const Real* centre = middle_ ? share.centre.data() : centre_.data() + tile.begin * width_;
        for (Index t = 0; t < tile.size(); ++t) {
            const auto offsets = loss_.offsets(labels_[tile.begin + t]);
            for (Index m = 0; m < classes_; ++m) {
                share.linear += (offsets[m] + shift_[m]) * static_cast<double>(centre[t * width_ + m]);
            }
        }
        add(share, Tile(rows_, tile.begin, tile.size()), centre);
    });
    const Answer sums = collected();
    base_ = sums.weights;
    base_linear_ = sums.linear;
}

/// How far the scores of an example with the mean cost and length may be from its hinge, with a coefficient between
/// its limits.
template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::band() const {
    return share_ * least_norm_ * mean_cost_ * scale_;
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::set_band(double band) {
    const double unit = least_norm_ * mean_cost_ * scale_;
    if (unit > 0.0) share_ = band / unit;  // examples may all be zero
}

/// The width at which what the band adds to the gap, with its square, is a share of the gap that is asked for.
template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::next_band(double gap) const {
    const double smooth = smoothed();
    const double by = smooth > 0.0 ? std::sqrt(settings_.band_share * gap / smooth) : 1.0;
    return band() * std::clamp(by, settings_.narrower, 1.0);
}

/// Around the middle the band may become narrower at any time.
template <NewtonLoss Loss, class Real>
bool ProximalNewton<Loss, Real>::narrow(double gap) {
    if (!middle_ || narrowed_ == settings_.most_narrowings) return false;
    ++narrowed_;
    const double before = share_;
    set_band(next_band(gap));
    return share_ < before;
}

template <NewtonLoss Loss, class Real>
Status ProximalNewton<Loss, Real>::grow(double gap, Index max_visits) {
    weights_.assign(size_ * width_, 0.0);
    inner_share_ = settings_.inner_share;
    damping_ = settings_.first_damping;
    const auto sizes = samples(rows_, settings_);
    for (const Index size : sizes) {
        const bool first = size == sizes.front(), last = size == rows_.size();
        patient_ = first && !last && size * rows_.features() <= settings_.patience;
        const double width = first ? settings_.widest_band * margin_ : next_band(gap);
        take_first(size);
        share_ = settings_.first_share;
        set_band(first ? std::min(width, band()) : width);
        middle_ = true;
        narrowed_ = 0;
        base_.clear();
        const Status status = run(last ? gap : std::max(gap, settings_.sample_gap), max_visits);
        patient_ = false;
        if (last || status == Status::max_iterations) return status;
        if (stopped()) {
            certified_ = false;  // a sample's coefficients are not those of all
            return stop_reason(control_);
        }
        move_bias();
    }
    return Status::precision;
}

}  // namespace polymargin
