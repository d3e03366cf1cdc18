#pragma once

// The member functions of `ProximalNewton` that make one step; included by its header alone.

#include <algorithm>
#include <bit>
#include <cmath>

namespace polymargin {

/// v + sum_i x_i (P_i/c_i x_i'v)'
template <RowLoss Loss, class Real>
void ProximalNewton<Loss, Real>::apply_hessian(std::span<const CurvedRow> curved, const Vector& v, Vector& out) {
    load(v);
    in_parts(std::ssize(curved), [&](Share& share, Index t) {
        const auto [i, face, factor] = curved[t];
        Real products[2 * proximal_newton::kMostClasses] = {};
        loaded_.products(rows_.row(i), products);
        Real mean = 0;
        for (Index m = 0; m < classes_; ++m) {
            products[m] = (face >> m & 1) != 0 ? products[m] + loaded_bias_[m] : Real(0);
            mean += products[m];
        }
        mean = Loss::kCoupled ? mean / static_cast<Real>(std::popcount(face)) : Real(0);
        const auto by = static_cast<Real>(factor);
        for (Index m = 0; m < classes_; ++m) {
            if ((face >> m & 1) != 0) products[m] = by * (products[m] - mean);
        }
        add(share, i, {products, static_cast<std::size_t>(width_)});
    });
    out = sum_of(shares_);
    proximal_newton::add_to(out, 1.0, v);
}

/// Conjugate gradients with the blocks of the classes as preconditioner.
template <RowLoss Loss, class Real>
bool ProximalNewton<Loss, Real>::find_direction() {
    using namespace proximal_newton;
    const std::vector<CurvedRow> curved = curved_rows();
    blocks_.factor(curved, Loss::kCoupled);
    Vector residual = now_.weights;
    add_to(residual, -1.0, weights_);
    const double wanted = kResidual * std::sqrt(dot(residual, residual));
    direction_.assign(weights_.size(), 0.0);
    Vector divided = residual, product;
    blocks_.divide(divided, width_);
    Vector along = divided;
    double size = dot(residual, divided);
    const Index most = std::clamp(rows_.size() / std::max<Index>(1, std::ssize(curved)), kLeastProducts, kMostProducts);
    for (Index t = 0; t < most && !stopped(); ++t) {
        apply_hessian(curved, along, product);
        const double length = size / dot(along, product);
        if (!(length > 0.0) || !std::isfinite(length)) break;
        add_to(direction_, length, along);
        add_to(residual, -length, product);
        if (dot(residual, residual) <= wanted * wanted) break;
        divided = residual;
        blocks_.divide(divided, width_);
        const double next = dot(residual, divided);
        for (std::size_t j = 0; j < along.size(); ++j) along[j] = divided[j] + next / size * along[j];
        size = next;
    }
    return dot(direction_, direction_) > 0.0;
}

/// Of the inner objective, along the direction.
template <RowLoss Loss, class Real>
double ProximalNewton<Loss, Real>::slope_at(double length) {
    in_parts(rows_.size(), [&](Share& share, Index i) {
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

template <RowLoss Loss, class Real>
double ProximalNewton<Loss, Real>::find_length() {
    using namespace proximal_newton;
    const double start = dot(weights_, direction_) - dot(now_.weights, direction_);
    if (!(start < 0.0)) return 0.0;
    double low = 0.0, slope_low = start, high = 0.0, slope_high = 0.0, length = 1.0;
    for (int look = 0; look < kMostLooks && !stopped(); ++look) {
        const double slope = slope_at(length);
        if (std::abs(slope) <= kSlope * std::abs(start) || (slope < 0.0 && high == 0.0)) return length;
        if (slope < 0.0) {
            low = length, slope_low = slope;
        } else {
            high = length, slope_high = slope;
        }
        length = low + (high - low) * std::clamp(slope_low / (slope_low - slope_high), 0.1, 0.9);
    }
    return low > 0.0 ? low : length;
}

}  // namespace polymargin
