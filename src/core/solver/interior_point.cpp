#include "solver/interior_point.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "support/dot.hpp"

namespace polymargin {
namespace {

Index largest_sample(Index bytes, Index classes, const InteriorPointSettings& settings) {
    const double rows =
        std::sqrt(static_cast<double>(bytes) / static_cast<double>(sizeof(double)) / static_cast<double>(classes));
    return std::clamp(static_cast<Index>(rows), Index{1}, settings.most_sample);
}

double sum_of(const Plane& x, Index m, Index n) {
    const double* row = x.view().row(m);
    return std::accumulate(row, row + n, 0.0);
}

}  // namespace

template <class Real>
InteriorPoint<Real>::InteriorPoint(InteriorPointProblem problem, const KernelProduct<Real>& kernel, ThreadPool& pool,
                                   const Blas& blas, Control& control, const InteriorPointSettings& settings)
    : kernel_(kernel),
      pool_(pool),
      control_(control),
      settings_(settings),
      n_(std::ssize(problem.labels)),
      k_(problem.slopes.classes()),
      free_bias_(problem.free_bias),
      absolute_(problem.absolute),
      negligible_(settings.negligible / problem.unit),
      mu_(settings.start * largest_product(problem)),
      barrier_(problem.labels, std::move(problem.limits), std::move(problem.slopes), problem.absolute, pool),
      inverse_(kernel, k_, pool, blas),
      coupled_(kernel, k_, problem.absolute, pool, blas),
      most_bytes_(problem.most_bytes / 2),
      most_sample_(largest_sample(most_bytes_, k_, settings)),
      sample_(std::min(most_sample_, static_cast<Index>(settings.sample * std::cbrt(static_cast<double>(n_ * n_))))),
      v_(k_, n_),
      s_(k_, n_),
      b_(k_, n_),
      kb_(k_, n_),
      x_(k_, n_),
      kx_(k_, n_),
      r_(k_, n_),
      kr_(k_, n_),
      p_(k_, n_),
      kp_(k_, n_),
      z_(k_, n_),
      kz_(k_, n_),
      y_(k_, n_),
      ky_(k_, n_),
      diagonal_(k_, n_),
      weights_(k_, n_),
      best_rows_(k_, n_),
      shift_(k_, 0.0),
      extra_(k_, 0.0) {
    barrier_.centre(s_, mu_);
}

template <class Real>
double InteriorPoint<Real>::largest_product(const InteriorPointProblem& problem) {
    double largest = 0.0;
    for (Index i = 0; i < std::ssize(problem.labels); ++i) {
        double margin = 0.0;
        for (Index m = 0; m < problem.slopes.classes(); ++m) {
            margin = std::max(margin, std::abs(problem.slopes.at(m, i)));
        }
        const auto& [each, most, own] = problem.limits[i];
        largest = std::max(largest, margin * std::min(std::max(each, own), most));
    }
    return largest;
}

template <class Real>
template <class Part>
void InteriorPoint<Real>::for_strips(const Part& part) const {
    for_example_strips(pool_, n_, [&](Index begin, Index end) {
        for (Index m = 0; m < k_; ++m) part(m, begin, end);
    });
}

template <class Real>
double InteriorPoint<Real>::dot(const Plane& x, const Plane& y) const {
    return sum_of_strips(pool_, n_, [&](Index begin, Index end) {
        double sum = 0.0;
        for (Index m = 0; m < k_; ++m)
            sum += dot_in_lanes(x.view().row(m) + begin, y.view().row(m) + begin, end - begin);
        return sum;
    });
}

template <class Real>
void InteriorPoint<Real>::multiply(const Plane& x, Plane& kx) {
    kernel_.apply(x.view(), kx.view());
    ++result_.products;
}

template <class Real>
void InteriorPoint<Real>::centre_classes(Plane& x) const {
    for_example_strips(pool_, n_, [&](Index begin, Index end) {
        double mean[kExampleStrip] = {};
        const Index count = end - begin;
        for (Index m = 0; m < k_; ++m) {
            for (Index i = 0; i < count; ++i) mean[i] += x.at(m, begin + i);
        }
        for (Index i = 0; i < count; ++i) mean[i] /= static_cast<double>(k_);
        for (Index m = 0; m < k_; ++m) {
            for (Index i = 0; i < count; ++i) x.at(m, begin + i) -= mean[i];
        }
    });
}

template <class Real>
BarrierRows::Step InteriorPoint<Real>::step_to(double mu, bool correct) const {
    return {.scores = s_.view(), .change = kx_.view(), .shift = extra_, .mu = mu, .correct = correct};
}

/// The primal objective of V and of B, whichever is less, and the dual one of B. What the weight of a free bias adds is
/// no part of them; where the sums of the columns are not zero yet, their product with the bias is counted in the dual
/// one, which is then that of the Lagrangian.
template <class Real>
auto InteriorPoint<Real>::measure() -> Objectives {
    barrier_.coefficients(b_);
    multiply(b_, kb_);
    double squares = dot(v_, s_), dual_squares = dot(b_, kb_), bias = 0.0;
    const double weight = free_bias_ ? kernel_.weight() : 0.0;
    for (Index m = 0; m < k_; ++m) {
        const double sum = sum_of(v_, m, n_), dual_sum = sum_of(b_, m, n_);
        extra_[m] = weight * sum;
        squares -= sum * (shift_[m] + extra_[m]);
        dual_squares -= weight * dual_sum * dual_sum;
        bias += (shift_[m] + extra_[m]) * dual_sum;
    }
    const double primal = 0.5 * squares + barrier_.loss(s_.view(), {});
    const double primal_of_dual = 0.5 * dual_squares + barrier_.loss(kb_.view(), shift_);
    return {std::min(primal, primal_of_dual), -0.5 * dual_squares - barrier_.linear() - bias};
}

/// `r = R + P Theta^-1 (c - P'K x) - x` and its product with K: that of R is known.
template <class Real>
void InteriorPoint<Real>::set_residual(double mu, bool correct) {
    barrier_.respond(step_to(mu, correct), y_.view());
    multiply(y_, ky_);
    for_strips([&](Index m, Index begin, Index end) {
        for (Index i = begin; i < end; ++i) {
            r_.at(m, i) = b_.at(m, i) - v_.at(m, i) + y_.at(m, i) - x_.at(m, i);
            kr_.at(m, i) = kb_.at(m, i) - (s_.at(m, i) - shift_[m]) + ky_.at(m, i) - kx_.at(m, i);
        }
    });
}

template <class Real>
void InteriorPoint<Real>::precondition() {
    if (complete_) {
        coupled_.apply(kr_.view(), y_.view());
        kernel_.apply(y_.view(), coupled_.examples(), ky_.view());
    } else {
        inverse_.apply(kr_.view(), y_.view());
        multiply(y_, ky_);
    }
    for_strips([&](Index m, Index begin, Index end) {
        for (Index i = begin; i < end; ++i) {
            z_.at(m, i) = r_.at(m, i) - y_.at(m, i);
            kz_.at(m, i) = kr_.at(m, i) - ky_.at(m, i);
        }
    });
    centre_classes(z_);
    centre_classes(kz_);
}

template <class Real>
Index InteriorPoint<Real>::solve(double accuracy) {
    double before = 0.0;
    for (Index step = 0; step < settings_.max_products; ++step) {
        if (control_.stop_requested() || !(dot(r_, kr_) > accuracy * accuracy)) return step;
        precondition();
        const double now = dot(r_, kz_), share = before > 0.0 ? now / before : 0.0;
        before = now > 0.0 ? now : 0.0;
        if (!(now > 0.0)) {
            // Limits of sums at large C: rounding makes the coupled inverse indefinite, the sampled one is of squares.
            if (!absolute_ || !std::exchange(complete_, false) || !factor_sample()) return step;
            continue;
        }
        for_strips([&](Index m, Index begin, Index end) {
            for (Index i = begin; i < end; ++i) {
                p_.at(m, i) = z_.at(m, i) + share * p_.at(m, i);
                kp_.at(m, i) = kz_.at(m, i) + share * kp_.at(m, i);
            }
        });
        barrier_.apply(kp_.view(), y_.view());
        multiply(y_, ky_);
        const double curvature = dot(p_, kp_) + dot(y_, kp_);
        if (!(curvature > 0.0)) return step;
        const double length = now / curvature;
        for_strips([&](Index m, Index begin, Index end) {
            for (Index i = begin; i < end; ++i) {
                x_.at(m, i) += length * p_.at(m, i);
                kx_.at(m, i) += length * kp_.at(m, i);
                r_.at(m, i) -= length * (p_.at(m, i) + y_.at(m, i));
                kr_.at(m, i) -= length * (kp_.at(m, i) + ky_.at(m, i));
            }
        });
    }
    return settings_.max_products;
}

template <class Real>
bool InteriorPoint<Real>::coupled_pays() const {
    const double most = std::max(settings_.cheap * product_cost(), sampled_cost_);
    return (absolute_ ? settings_.centred_worth : settings_.factor_worth) * coupled_.factor_cost() <= most &&
           coupled_.bytes() <= most_bytes_ && coupled_.largest_class() <= settings_.most_sample;
}

template <class Real>
bool InteriorPoint<Real>::factor() {
    const auto spare = absolute_ ? barrier_.spare() : std::vector<double>{};
    coupled_.choose(diagonal_.view(), weights_.view(), negligible_, spare);
    complete_ = coupled_pays() && coupled_.factor(control_);
    if (control_.stop_requested()) return false;
    return complete_ || factor_sample();
}

template <class Real>
bool InteriorPoint<Real>::factor_sample() {
    return inverse_.factor(diagonal_.view(), sample_, negligible_, control_);
}

template <class Real>
void InteriorPoint<Real>::choose_sample(Index iterations) {
    if (complete_) return;
    const double use = static_cast<double>(iterations) * (2.0 * product_cost() + inverse_.apply_cost());
    const double made = settings_.factor_worth * inverse_.factor_cost();
    sampled_cost_ = use + made;
    if (use > settings_.most_share * made && inverse_.live() > sample_) {
        sample_ = std::min(most_sample_, static_cast<Index>(settings_.more * static_cast<double>(sample_)));
    } else if (use < settings_.least_share * made) {
        sample_ = static_cast<Index>(settings_.fewer * static_cast<double>(sample_));
    }
}

/// Predictor and corrector; false if the system could not be factorised.
template <class Real>
bool InteriorPoint<Real>::step() {
    barrier_.linearise(diagonal_, weights_);
    if (!factor()) return false;
    for_strips([&](Index m, Index begin, Index end) {
        std::fill(x_.view().row(m) + begin, x_.view().row(m) + end, 0.0);
        std::fill(kx_.view().row(m) + begin, kx_.view().row(m) + end, 0.0);
    });
    const double products = barrier_.complementarity(), accuracy = settings_.residual * std::sqrt(products);
    set_residual(0.0, false);
    Index iterations = solve(settings_.predictor * accuracy);
    barrier_.set_direction(step_to(0.0, false));
    const double after = barrier_.complementarity_after(barrier_.longest_step());
    mu_ = std::pow(std::min(1.0, after / products), 3) * products / barrier_.products();
    set_residual(mu_, true);
    iterations += solve(accuracy);
    barrier_.set_direction(step_to(mu_, true));
    const double length = std::min(1.0, settings_.boundary * barrier_.longest_step());
    short_steps_ = length < settings_.shortest ? short_steps_ + 1 : 0;
    go(length);
    choose_sample(iterations);
    return true;
}

template <class Real>
void InteriorPoint<Real>::go(double length) {
    barrier_.go(length);
    for_strips([&](Index m, Index begin, Index end) {
        for (Index i = begin; i < end; ++i) {
            v_.at(m, i) += length * x_.at(m, i);
            s_.at(m, i) += length * (kx_.at(m, i) + extra_[m]);
        }
    });
    for (Index m = 0; m < k_; ++m) shift_[m] += length * extra_[m];
}

/// Whether the gap of the rows, which are not quite the best dual point, is at most this. Of a free bias it is not
/// known: their columns do not sum to zero.
template <class Real>
bool InteriorPoint<Real>::rows_are_near(double gap) {
    if (free_bias_) return true;
    multiply(best_rows_, ky_);
    if (absolute_) centre_classes(ky_);
    return relative_gap(result_.primal, -0.5 * dot(best_rows_, ky_) - barrier_.linear(best_rows_)) <= gap;
}

template <class Real>
InteriorPointResult InteriorPoint<Real>::run(double gap) {
    Index last_gain = result_.steps;
    for (; result_.steps < settings_.max_steps; ++result_.steps) {
        const auto [primal, dual] = measure();
        if (control_.stop_requested()) return ended(stop_reason(control_));
        if (!std::isfinite(primal) || !std::isfinite(dual)) return ended(Status::precision);
        if (primal < result_.primal || dual > result_.dual) last_gain = result_.steps;
        result_.primal = std::min(result_.primal, primal);
        if (dual > result_.dual) {
            result_.dual = dual;
            barrier_.snapped_coefficients(best_rows_);
            result_.bias = shift_;
            for (Index m = 0; m < k_; ++m) result_.bias[m] += extra_[m];
        }
        result_.gap = relative_gap(result_.primal, result_.dual);
        Progress progress = control_.progress();
        progress.gap = result_.gap;
        control_.report(progress);
        if (result_.gap <= gap && rows_are_near(settings_.rounded * gap)) return ended(Status::converged);
        if (result_.steps - last_gain >= settings_.patience || short_steps_ >= settings_.most_short || !step()) {
            break;
        }
    }
    if (control_.stop_requested()) return ended(stop_reason(control_));
    return ended(result_.steps < settings_.max_steps ? Status::precision : Status::max_iterations);
}

template <class Real>
InteriorPointResult InteriorPoint<Real>::ended(Status status) {
    result_.status = status;
    return result_;
}

template <class Real>
Index InteriorPoint<Real>::bytes(Index n, Index classes) {
    constexpr Index planes = 27;  // 17 here, 10 in `BarrierRows`
    return planes * classes * padded<double>(n) * static_cast<Index>(sizeof(double));
}

template class InteriorPoint<float>;
template class InteriorPoint<double>;

}  // namespace polymargin
