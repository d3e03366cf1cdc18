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
    active_ = count;
    centred_ = 0;
    best_.primal = std::numeric_limits<double>::infinity();  // another sample, another objective
    scale_ = static_cast<double>(rows_.size()) / static_cast<double>(std::max<Index>(1, count));
    // It is for damping alone: some of many examples tell as much as all.
    reach_.assign(size_, 0.0);
    const Index every = std::max<Index>(1, count / settings_.reach_rows);
    for (Index i = 0; i < count; i += every) {
        const Row<Real> x = rows_.row(i);
        const double by = static_cast<double>(every) / norm(i);
        for (Index p = 0; p < x.count; ++p) {
            const auto value = static_cast<double>(x.values[p]);
            reach_[x.columns == nullptr ? p : static_cast<Index>(x.columns[p])] += by * value * value;
        }
        if (bias_ > 0.0) reach_.back() += by * weight_;
    }
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::sum_centre() {
    in_parts(active_, [&](Share& share, Range tile) {
        const Real* centre = centre_.data() + tile.begin * width_;
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
    const double smooth = gap_of(now_) - unsolved();
    const double by = smooth > 0.0 ? std::sqrt(settings_.band_share * gap / smooth) : 1.0;
    return band() * std::clamp(by, settings_.narrower, 1.0);
}

/// The point of the dual to start from, given the weights: what examples answer that are not near a hinge, and the mean
/// of what those near answer on either side. From there the answers to weights near by are nearly a point of the dual
/// that is as good as the weights: its error is that of the second order, in the width of the band, and from the other
/// points, such as zero, of the first.
template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::centre_at_weights() {
    load(weights_, true);
    const std::vector<Real> nothing(Tile::kMost * width_, Real(0));
    in_parts(active_, [&](Share& share, Range tile) {
        const Index count = tile.size() * width_;
        Real* centre = centre_.data() + tile.begin * width_;
        std::fill_n(centre, count, Real(0));
        products(Tile(rows_, tile.begin, tile.size()), share.scores.data());
        share.visits += tile.size();
        for (const double side : {-0.5, 1.0}) {  // half a band away from the hinge, and from there to its other side
            for (Index i = tile.begin; i < tile.end; ++i) {
                const auto away = static_cast<Real>(side * curvature(i) * example(i).cost_bound);
                Real* row = share.scores.data() + (i - tile.begin) * width_;
                for (Index m = 0; m < classes_; ++m) {
                    row[m] += m == labels_[i] ? away : Loss::kRowsSumToZero ? Real(0) : -away;
                }
            }
            (void)respond(share, tile, share.scores.data(), nothing.data(), settings_.sharpness);
            for (Index t = 0; t < count; ++t) centre[t] += Real(0.5) * share.answers.data()[t];
        }
    });
    base_.clear();  // its sum, until it is needed
    if (!stopped()) centred_ = active_;
}

template <NewtonLoss Loss, class Real>
Status ProximalNewton<Loss, Real>::grow(double gap, Index max_visits) {
    weights_.assign(size_ * width_, 0.0);
    inner_share_ = settings_.inner_share;
    damping_ = settings_.first_damping;
    const auto sizes = samples(rows_, settings_);
    for (const Index size : sizes) {
        const bool first = size == sizes.front(), last = size == rows_.size();
        const double width = first ? 0.0 : next_band(gap);
        take_first(size);
        if (first) {
            share_ = settings_.first_share;
            set_band(std::min(settings_.widest_band, band()));
            std::fill_n(centre_.data(), size * width_, Real(0));
            base_ = weights_;
            base_linear_ = 0.0;
            centred_ = active_;
        } else {
            set_band(width);
            centre_at_weights();
        }
        const Status status = run(last ? gap : std::max(gap, settings_.sample_gap), max_visits);
        if (last || stopped() || status == Status::max_iterations) return status;
    }
    return Status::precision;
}

}  // namespace polymargin
