#pragma once

// The member functions of `ProximalNewton` that make one step; included by its header alone.

#include <algorithm>
#include <bit>
#include <cmath>

namespace polymargin {

/// Damped where nothing is known: a feature whose examples are all at their limits has no curvature that would end a
/// step before they move, and the few examples that a rare one has would be thrown far beyond their hinges. What all
/// features have on average counts as much as some examples of its own.
template <NewtonLoss Loss, class Real>
auto ProximalNewton<Loss, Real>::hessian() const -> Hessian {
    Hessian hessian{curved_rows(), Vector(size_ * width_, 1.0)};
    Vector curvature(classes_, 0.0), counts(classes_, 0.0);
    for (const CurvedRow& row : hessian.curved) {
        for (std::uint64_t left = row.classes; left != 0; left &= left - 1) {
            curvature[std::countr_zero(left)] += row.by * norm(row.row);
            counts[std::countr_zero(left)] += 1.0;
        }
    }
    if (Loss::kRowsSumToZero) {  // whose classes share a step
        for (Vector* sums : {&curvature, &counts}) {
            std::ranges::fill(*sums, std::accumulate(sums->begin(), sums->end(), 0.0) / static_cast<double>(classes_));
        }
    }
    const double all = std::accumulate(reach_.begin(), reach_.end(), 0.0);
    for (Index f = 0; all > 0.0 && f < size_; ++f) {
        for (Index m = 0; m < classes_; ++m) {
            const double seen = bearers_[f] * counts[m] / static_cast<double>(active_);
            const double guess = middle_ ? settings_.guess_worth / (settings_.guess_worth + seen) : 0.0;
            hessian.diagonal[f * width_ + m] += std::max(damping_, guess) * curvature[m] * (reach_[f] / all);
        }
    }
    return hessian;
}

/// Conjugate gradients go on with blocks that were made for an earlier step, until they have cost as much as new ones.
template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::factor_blocks(const Hessian& hessian) {
    if (spent_ < blocks_.work(std::ssize(hessian.curved))) return;
    blocks_.factor(hessian.curved, Loss::kRowsSumToZero, hessian.diagonal, width_);
    spent_ = 0.0;
}

/// d v + sum_i x_i (P_i/c_i x_i'v)'
template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::multiply(const Hessian& hessian, const Vector& v, Vector& out) {
    load(v, false);
    in_parts(std::ssize(hessian.curved), false, [&](Share& share, Range part) {
        share.numbers.clear();
        for (Index t = part.begin; t < part.end; ++t) share.numbers.push_back(hessian.curved[t].row);
        const Tile tile(rows_, share.numbers, share.rows.data());
        products(tile, share.answers.data());
        for (Index t = part.begin; t < part.end; ++t) {
            const auto& [row, face, by, own] = hessian.curved[t];
            Real* products = share.answers.data() + (t - part.begin) * width_;
            if (own >= 0) {
                proximal_newton::curve_pairs(products, width_, face, static_cast<Real>(by), own);
            } else {
                proximal_newton::curve_row(products, width_, face, static_cast<Real>(by), Loss::kRowsSumToZero);
            }
        }
        add(share, tile, share.answers.data());
    });
    out = sum_of(shares_);
    for (std::size_t e = 0; e < out.size(); ++e) out[e] += hessian.diagonal[e] * v[e];
}

/// The weights of coupled classes sum up to zero for every feature, and so does every step, but the blocks know nothing
/// of that: without a projection conjugate gradients would have to find out.
template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::divide_by_blocks(Vector& v) const {
    blocks_.divide(v, width_);
    if (!Loss::kRowsSumToZero) return;
    for (Index f = 0; f < size_; ++f) {
        const std::span row(v.data() + f * width_, static_cast<std::size_t>(classes_));
        const double mean = std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(classes_);
        for (double& value : row) value -= mean;
    }
}

/// Conjugate gradients with the blocks of the classes as preconditioner.
template <NewtonLoss Loss, class Real>
bool ProximalNewton<Loss, Real>::find_direction() {
    using namespace proximal_newton;
    const Hessian hessian = this->hessian();
    factor_blocks(hessian);
    const double share = static_cast<double>(std::ssize(hessian.curved)) / static_cast<double>(rows_.size());
    const double work = blocks_.work_of_division() + 2.0 * share * static_cast<double>(rows_.entries() * width_);
    Vector residual = now_.weights;
    add_to(residual, -1.0, weights_);
    direction_.assign(weights_.size(), 0.0);
    Vector divided = residual, product;
    divide_by_blocks(divided);
    Vector along = divided;
    // In the metric of the blocks: a feature with few examples and large values is no more than another.
    double size = dot(residual, divided);
    const double wanted = settings_.residual * settings_.residual * size;
    const Index most = std::clamp(active_ / std::max<Index>(1, std::ssize(hessian.curved)), settings_.least_products,
                                  settings_.most_products);
    for (Index t = 0; t < most && !stopped() && !spent_all(); ++t) {
        multiply(hessian, along, product);
        spent_ += work;
        const double length = size / dot(along, product);
        if (!(length > 0.0) || !std::isfinite(length)) break;
        add_to(direction_, length, along);
        add_to(residual, -length, product);
        divided = residual;
        divide_by_blocks(divided);
        const double next = dot(residual, divided);
        if (next <= wanted) break;
        for (std::size_t j = 0; j < along.size(); ++j) along[j] = divided[j] + next / size * along[j];
        size = next;
    }
    return dot(direction_, direction_) > 0.0;
}

/// What the whole step promises, as far as the objective is a parabola.
template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::promised() const {
    return -0.5 * slope();
}

template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::slope() const {
    return proximal_newton::dot(weights_, direction_) - proximal_newton::dot(now_.weights, direction_);
}

/// The whole step in one pass, in which everything is read once and answers. It is nearly always the right length; if
/// not, secants find where the slope is small, with Illinois' rule for the end that stays.
template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::step() {
    const double start = slope();
    if (!(start < 0.0)) return 0.0;
    double low = 0.0, slope_low = start, high = 1.0, slope_high = move_along(1.0);
    if (slope_high <= settings_.slope * std::abs(start)) return 1.0;
    double length = 1.0;
    bool before = true;  // the last look was beyond
    for (int look = 1; look < settings_.most_looks && !stopped(); ++look) {
        const double share = std::clamp(slope_low / (slope_low - slope_high), 0.05, 0.95);
        const double next = low + (high - low) * share;
        const double slope = move_along(next - length);
        length = next;
        if (std::abs(slope) <= settings_.slope * std::abs(start)) break;
        const bool beyond = slope > 0.0;
        (beyond ? high : low) = length;
        (beyond ? slope_high : slope_low) = slope;
        if (beyond == before) (beyond ? slope_low : slope_high) *= 0.5;
        before = beyond;
        if (look + 1 == settings_.most_looks && beyond && low > 0.0) {
            (void)move_along(low - length);
            length = low;
        }
    }
    return length;
}

/// The slope there.
template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::move_along(double length) {
    proximal_newton::add_to(weights_, length, direction_);
    now_ = answer();
    return slope();
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::adapt_damping(double length) {
    const bool overshot = length < 0.1;
    if (overshot) damping_ = std::max(10.0 * damping_, settings_.fresh_damping);
    // What has just been needed is not given up at the first success.
    if (length > 0.5 && !overshot_) damping_ = damping_ > settings_.least_damping ? 0.1 * damping_ : 0.0;
    overshot_ = overshot || (overshot_ && length <= 0.5);
}

}  // namespace polymargin
