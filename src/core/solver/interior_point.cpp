#include "solver/interior_point.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace polymargin {
double T_[8];
struct Tm { int i; double t; static double now(){ timespec ts; clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&ts); return ts.tv_sec+1e-9*ts.tv_nsec;} Tm(int i):i(i),t(now()){} ~Tm(){T_[i]+=now()-t;} };

template <class Real>
InteriorPoint<Real>::InteriorPoint(InteriorPointProblem problem, const KernelProduct<Real>& kernel, ThreadPool& pool,
                                   const Blas& blas, const Control& control, const InteriorPointSettings& settings)
    : problem_(std::move(problem)),
      kernel_(kernel),
      pool_(pool),
      control_(control),
      settings_(settings),
      n_(std::ssize(problem_.labels)),
      k_(problem_.slopes.view().classes),
      barrier_(problem_.labels, problem_.limits, problem_.slopes, pool),
      inverse_(kernel, k_, pool, blas),
      sample_(static_cast<Index>(settings.sample * std::cbrt(static_cast<double>(n_) * static_cast<double>(n_)))),
      v_(k_, n_), s_(k_, n_), b_(k_, n_), kb_(k_, n_), x_(k_, n_), kx_(k_, n_), r_(k_, n_), kr_(k_, n_), p_(k_, n_),
      kp_(k_, n_), y_(k_, n_), ky_(k_, n_), q_(k_, n_), kq_(k_, n_), snapped_(k_, n_),
      shift_(k_, 0.0), extra_(k_, 0.0) {}

template <class Real>
template <class Part>
double InteriorPoint<Real>::sum(const Part& part) const {
    return sum_of_strips(pool_, n_, [&](Index begin, Index end) {
        double total = 0.0;
        for (Index m = 0; m < k_; ++m) total += part(m, begin, end);
        return total;
    });
}

namespace {
double strip_dot(const double* a, const double* b, Index count) {
    constexpr Index lanes = 8;
    double sums[lanes] = {};
    Index t = 0;
    for (; t + lanes <= count; t += lanes) {
        for (Index l = 0; l < lanes; ++l) sums[l] += a[t + l] * b[t + l];
    }
    for (; t < count; ++t) sums[t % lanes] += a[t] * b[t];
    return std::accumulate(sums, sums + lanes, 0.0);
}
}  // namespace

template <class Real>
double InteriorPoint<Real>::dot(const Plane& x, const Plane& y) const {
    return sum([&](Index m, Index begin, Index end) {
        return strip_dot(x.view().row(m) + begin, y.view().row(m) + begin, end - begin);
    });
}

template <class Real>
void InteriorPoint<Real>::product(const Plane& x, Plane& out) {
    { Tm t_(0); kernel_.apply(x.view(), out.view()); }
    ++result_.products;
    result_.cost += 2.0 * static_cast<double>(n_) * static_cast<double>(n_ * k_);
}

template <class Real>
void InteriorPoint<Real>::centre_classes(Plane& x) const {
    sum_of_strips(pool_, n_, [&](Index begin, Index end) {
        double mean[kExampleStrip] = {};
        const Index count = end - begin;
        for (Index m = 0; m < k_; ++m) {
            const double* row = x.view().row(m) + begin;
            for (Index i = 0; i < count; ++i) mean[i] += row[i];
        }
        for (Index i = 0; i < count; ++i) mean[i] /= static_cast<double>(k_);
        for (Index m = 0; m < k_; ++m) {
            double* row = x.view().row(m) + begin;
            for (Index i = 0; i < count; ++i) row[i] -= mean[i];
        }
        return 0.0;
    });
}

template <class Real>
BarrierRows::Step InteriorPoint<Real>::step_to(double mu, bool correct) const {
    return {.scores = s_.view(), .change = kx_.view(), .shift = extra_, .mu = mu, .correct = correct};
}

template <class Real>
void InteriorPoint<Real>::start() {
    double scale = 0.0;
    for (Index i = 0; i < n_; ++i) {
        double margin = 0.0;
        for (Index m = 0; m < k_; ++m) margin = std::max(margin, std::abs(problem_.slopes.at(m, i)));
        scale = std::max(scale, margin * std::min(problem_.limits[i].largest, problem_.limits[i].most));
    }
    barrier_.centre(s_, settings_.start * scale);
}

/// The primal objective of V and of B, whichever is less, and the dual one of B.
template <class Real>
auto InteriorPoint<Real>::measure() -> Objectives {
    barrier_.coefficients(b_);
    product(b_, kb_);
    double primal = dot(v_, s_), dual = dot(b_, kb_), other = dual, bias = 0.0;
    const double weight = problem_.free_bias ? kernel_.weight() : 0.0;
    for (Index m = 0; m < k_; ++m) {
        const double* v = v_.view().row(m);
        const double* b = b_.view().row(m);
        const double sum_v = std::accumulate(v, v + n_, 0.0), sum_b = std::accumulate(b, b + n_, 0.0);
        primal -= sum_v * (shift_[m] + weight * sum_v);
        dual -= weight * sum_b * sum_b;
        other -= weight * sum_b * sum_b;
        extra_[m] = weight * sum_v;
        bias += (shift_[m] + extra_[m]) * sum_b;
    }
    primal = 0.5 * primal + barrier_.loss(s_.view(), {});
    other = 0.5 * other + barrier_.loss(kb_.view(), shift_);
    return {std::min(primal, other), -0.5 * dual - barrier_.linear() - bias};
}

/// `r = R + P Theta^-1 (c - P'K x) - x` and its product with K, of which that of R is there but for the shift.
template <class Real>
void InteriorPoint<Real>::set_residual(double mu, bool correct) {
    barrier_.respond(step_to(mu, correct), y_.view());
    product(y_, ky_);
    sum([&](Index m, Index begin, Index end) {
        for (Index i = begin; i < end; ++i) {
            r_.at(m, i) = b_.at(m, i) - v_.at(m, i) + y_.at(m, i) - x_.at(m, i);
            kr_.at(m, i) = kb_.at(m, i) - (s_.at(m, i) - shift_[m]) + ky_.at(m, i) - kx_.at(m, i);
        }
        return 0.0;
    });
}

template <class Real>
Index InteriorPoint<Real>::solve(double accuracy) {
    double before = 0.0;
    for (Index step = 0; step < settings_.max_products; ++step) {
        if (control_.stop_requested() || !(dot(r_, kr_) > accuracy * accuracy)) return step;
        { Tm t_(1); inverse_.apply(kr_.view(), y_.view()); }
        product(y_, ky_);
        sum([&](Index m, Index begin, Index end) {
            for (Index i = begin; i < end; ++i) {
                q_.at(m, i) = r_.at(m, i) - y_.at(m, i);
                kq_.at(m, i) = kr_.at(m, i) - ky_.at(m, i);
            }
            return 0.0;
        });
        result_.cost += inverse_.apply_cost();
        centre_classes(q_);
        centre_classes(kq_);
        const double now = dot(r_, kq_);
        if (!(now > 0.0)) return step;
        const double share = step == 0 ? 0.0 : now / before;
        before = now;
        sum([&](Index m, Index begin, Index end) {
            for (Index i = begin; i < end; ++i) {
                p_.at(m, i) = q_.at(m, i) + share * p_.at(m, i);
                kp_.at(m, i) = kq_.at(m, i) + share * kp_.at(m, i);
            }
            return 0.0;
        });
        barrier_.apply(kp_.view(), y_.view());
        product(y_, ky_);
        const double curvature = dot(p_, kp_) + dot(y_, kp_);
        if (!(curvature > 0.0)) return step;
        const double length = now / curvature;
        sum([&](Index m, Index begin, Index end) {
            for (Index i = begin; i < end; ++i) {
                x_.at(m, i) += length * p_.at(m, i);
                kx_.at(m, i) += length * kp_.at(m, i);
                r_.at(m, i) -= length * (p_.at(m, i) + y_.at(m, i));
                kr_.at(m, i) -= length * (kp_.at(m, i) + ky_.at(m, i));
            }
            return 0.0;
        });
    }
    return settings_.max_products;
}

template <class Real>
void InteriorPoint<Real>::choose_sample(Index iterations) {
    const double product = 2.0 * static_cast<double>(n_) * static_cast<double>(n_ * k_);
    const double use = static_cast<double>(iterations) * (product + inverse_.apply_cost());
    const double made = settings_.factor_worth * inverse_.factor_cost();
    if (use > settings_.most_share * made && inverse_.live() > sample_) {
        sample_ = static_cast<Index>(settings_.more * static_cast<double>(sample_));
    } else if (use < settings_.least_share * made) {
        sample_ = static_cast<Index>(settings_.fewer * static_cast<double>(sample_));
    }
}

template <class Real>
InteriorPointResult InteriorPoint<Real>::run(double gap) {
    const bool talk = std::getenv("IPM_TALK") != nullptr;
    start();
    Plane diagonal(k_, n_);
    double best_primal = std::numeric_limits<double>::infinity(), best_dual = -best_primal;
    auto t0 = clock();
    for (result_.status = Status::max_iterations; result_.steps < settings_.max_steps; ++result_.steps) {
        const auto [primal, dual] = measure();
        if (control_.stop_requested()) {
            result_.status = stop_reason(control_);
            break;
        }
        if (!std::isfinite(primal) || !std::isfinite(dual)) {
            result_.status = Status::precision;
            break;
        }
        best_primal = std::min(best_primal, primal);
        if (dual > best_dual) {
            best_dual = dual;
            barrier_.snapped_coefficients(snapped_);
        }
        result_.gap = relative_gap(best_primal, best_dual);
        const double comp = barrier_.complementarity(), accuracy = settings_.residual * std::sqrt(comp);
        if (talk)
            std::printf("%3ld mu %.2e gap %.2e primal %.6e dual %.6e products %ld q %ld t %.3f cost %.2e\n", result_.steps,
                        comp / barrier_.products(), result_.gap, primal, dual, result_.products, sample_,
                        double(clock()-t0)/CLOCKS_PER_SEC, result_.cost);
        if (result_.gap <= gap) {
            result_.status = Status::converged;
            break;
        }
        barrier_.linearise(diagonal);
        Tm* tf=new Tm(2); bool okf = inverse_.factor(diagonal.view(), sample_, settings_.negligible / problem_.unit, control_); delete tf; if (!okf) {
            result_.status = control_.stop_requested() ? stop_reason(control_) : Status::precision;
            break;
        }
        result_.cost += inverse_.factor_cost();
        sum([&](Index m, Index begin, Index end) {
            std::fill(x_.view().row(m) + begin, x_.view().row(m) + end, 0.0);
            std::fill(kx_.view().row(m) + begin, kx_.view().row(m) + end, 0.0);
            return 0.0;
        });
        set_residual(0.0, false);
        Tm* ts=new Tm(3); const Index first = solve(settings_.predictor*accuracy); delete ts;
        barrier_.set_direction(step_to(0.0, false));
        const double after = barrier_.complementarity_after(barrier_.longest_step());
        const double centring = std::pow(std::min(1.0, after / comp), 3);
        const double mu = centring * comp / barrier_.products();
        set_residual(mu, true);
        ts=new Tm(3); const Index second = solve(accuracy); delete ts;
        barrier_.set_direction(step_to(mu, true));
        const double length = std::min(1.0, settings_.boundary * barrier_.longest_step());
        if (talk) std::printf("      cg %ld+%ld centring %.1e length %.2f live %ld\n", first, second, centring, length, inverse_.live());
        barrier_.go(length);
        sum([&](Index m, Index begin, Index end) {
            for (Index i = begin; i < end; ++i) {
                v_.at(m, i) += length * x_.at(m, i);
                s_.at(m, i) += length * (kx_.at(m, i) + extra_[m]);
            }
            return 0.0;
        });
        for (Index m = 0; m < k_; ++m) shift_[m] += length * extra_[m];
        choose_sample(first + second);
    }
    if (talk) std::printf("cpu: product %.3f apply %.3f factor %.3f solve(all) %.3f total %.3f\n", T_[0],T_[1],T_[2],T_[3],double(clock()-t0)/CLOCKS_PER_SEC);
    result_.bias = shift_;
    for (Index m = 0; m < k_; ++m) result_.bias[m] += extra_[m];
    return result_;
}

template <class Real>
Index InteriorPoint<Real>::bytes(Index n, Index classes) {
    constexpr Index planes = 26;
    return planes * classes * padded<double>(n) * static_cast<Index>(sizeof(double));
}

template class InteriorPoint<float>;
template class InteriorPoint<double>;

}  // namespace polymargin
