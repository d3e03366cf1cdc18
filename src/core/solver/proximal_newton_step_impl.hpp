#pragma once

// The member functions of `ProximalNewton` that make one step; included by its header alone.

#include <algorithm>
#include <bit>
#include <cmath>

namespace polymargin {

/// Damped: a feature whose examples are all at their limits has no curvature that would end a step before they move.
template <NewtonLoss Loss, class Real>
auto ProximalNewton<Loss, Real>::hessian() const -> Hessian {
    Hessian hessian{curved_rows(), Vector(size_, 1.0)};
    proximal_newton::add_to(hessian.diagonal, damping_ / share_, reach_);
    return hessian;
}

/// d v + sum_i x_i (P_i/c_i x_i'v)'
template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::multiply(const Hessian& hessian, const Vector& v, Vector& out) {
    load(v);
    in_parts(std::ssize(hessian.curved), [&](Share& share, Index t) {
        const auto [i, face, factor] = hessian.curved[t];
        Real products[2 * proximal_newton::kMostClasses] = {};
        loaded_.products(rows_.row(i), products);
        Real mean = 0;
        for (Index m = 0; m < classes_; ++m) {
            products[m] = (face >> m & 1) != 0 ? products[m] + loaded_bias_[m] : Real(0);
            mean += products[m];
        }
        mean = Loss::kRowsSumToZero ? mean / static_cast<Real>(std::popcount(face)) : Real(0);
        const auto by = static_cast<Real>(factor);
        for (Index m = 0; m < classes_; ++m) {
            if ((face >> m & 1) != 0) products[m] = by * (products[m] - mean);
        }
        add(share, i, {products, static_cast<std::size_t>(width_)});
    });
    out = sum_of(shares_);
    for (Index f = 0; f < size_; ++f) {
        for (Index m = 0; m < classes_; ++m) out[f * width_ + m] += hessian.diagonal[f] * v[f * width_ + m];
    }
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
    blocks_.factor(hessian.curved, Loss::kRowsSumToZero, hessian.diagonal);
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
    for (Index t = 0; t < most && !stopped(); ++t) {
        multiply(hessian, along, product);
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

/// Of the inner objective, along the direction.
template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::slope_at(double length) {
    in_parts(active_, [&](Share& share, Index i) {
        double scores[proximal_newton::kMostClasses], row[proximal_newton::kMostClasses];
        const Real* s = scores_.data() + i * classes_;
        const Real* d = slopes_.data() + i * classes_;
        for (Index m = 0; m < classes_; ++m) scores[m] = static_cast<double>(s[m]) + length * static_cast<double>(d[m]);
        respond(i, {scores, static_cast<std::size_t>(classes_)}, {row, static_cast<std::size_t>(classes_)});
        for (Index m = 0; m < classes_; ++m) share.slope -= row[m] * static_cast<double>(d[m]);
    });
    double slope = proximal_newton::dot(weights_, direction_) + length * proximal_newton::dot(direction_, direction_);
    for (const Share& share : shares_) slope += share.slope;
    return slope;
}

template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::find_length(double start, double whole) {
    double low = 0.0, slope_low = start, high = 1.0, slope_high = whole;
    for (int look = 1; look < settings_.most_looks && !stopped(); ++look) {
        const double length = low + (high - low) * std::clamp(slope_low / (slope_low - slope_high), 0.05, 0.9);
        const double slope = slope_at(length);
        if (std::abs(slope) <= settings_.slope * std::abs(start)) return length;
        if (slope < 0.0) {
            low = length, slope_low = slope;
        } else {
            high = length, slope_high = slope;
        }
    }
    return low > 0.0 ? low : high;
}

/// The whole step in one pass, in which everything is read once and answers. It is nearly always the right length.
template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::step() {
    using namespace proximal_newton;
    const double start = dot(weights_, direction_) - dot(now_.weights, direction_);
    if (!(start < 0.0)) return 0.0;
    load(direction_);
    in_parts(active_, [&](Share& share, Index i) {
        Real products[2 * kMostClasses];
        loaded_.products(rows_.row(i), products);
        for (Index m = 0; m < classes_; ++m) {
            const Real slope = products[m] + loaded_bias_[m];
            slopes_.data()[i * classes_ + m] = slope;
            scores_.data()[i * classes_ + m] += slope;
        }
        answer_of(share, i);
    });
    add_to(weights_, 1.0, direction_);
    now_ = collected();
    const double slope = dot(weights_, direction_) - dot(now_.weights, direction_);
    if (slope <= settings_.slope * std::abs(start) || stopped()) return 1.0;
    move_along(-1.0);
    const double length = find_length(start, slope);
    move_along(length);
    now_ = answer();
    return length;
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::move_along(double length) {
    proximal_newton::add_to(weights_, length, direction_);
    in_parts(active_, [&](Share&, Index i) {
        for (Index t = i * classes_; t < (i + 1) * classes_; ++t) {
            scores_.data()[t] += static_cast<Real>(length) * slopes_.data()[t];
        }
    });
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
