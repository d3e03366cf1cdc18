#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "kernel/gram.hpp"
#include "solver/decomposition.hpp"
#include "solver/interior_point.hpp"

namespace polymargin {

/// When an interior-point method takes over from a decomposition.
struct TakeoverSettings {
    /// What the method is expected to take, in units of n^2 k operations of the decomposition, and beside. (On two
    /// threads it took 330 to 800 in 14 cells, which are data sets of 500 to 3,000 examples at several C and gamma, and
    /// 1,100 of 214 examples; on one up to twice that.)
    double expected = 600.0, beside = 2e8;
    /// The decomposition has a short time, in operations, or a share of what is expected between these two; and all of
    /// it unless what is left looks like more than so much of it. (With 1,200, 2e10 and 2, problems that crawl took 1.3
    /// to 2 times as long: violations that fall ever more slowly promise an end that does not come.)
    /// With absolute margins, where nearly all coefficients are free and steps crawl, it has the least share.
    double short_time = 1e10, least_share = 0.15, most_share = 0.75, hopeless = 0.5;
    /// Of the short time it has this share after the method, which goes on from where it ended for little. (Where its
    /// rows were not near enough a decomposition that crawled before crawls again.)
    double again = 0.1;
    /// The gap that the method is asked for, and by which factor it is less the next time.
    double gap = 1e-5, finer = 1e-2;
    Index most = 3;  ///< times
    /// Where the budget does not leave memory for so many rows of each class, the decomposition goes on.
    Index least_sample = 256;
    /// Of a hard margin: what coefficients have for a limit, in units of the largest so far.
    double room = 100.0;
    InteriorPointSettings interior_point = {};
};

/// A joint problem on the whole kernel matrix: by the block decomposition, which is by far the faster where it gets
/// on, and where it crawls by an interior-point method, which takes about as long whatever the kernel and C. The rows
/// that come of it go back to the decomposition for the last digits.
///
/// Whether it crawls is told by its work, in operations and not in seconds, so that a fit takes the same steps on any
/// machine: it may take as much as the other method is expected to, so that a problem takes about twice the work of the
/// better of the two at most, and only a share of that where violations fall too slowly by far.
template <MulticlassLoss Loss, class Real>
class JointSolver {
  public:
    JointSolver(Decomposition<Loss, Real>& problem, GramStore<Real>& store, const Blas& blas, Control& control,
                double unit, bool free_bias, const TakeoverSettings& settings)
        : problem_(problem),
          store_(store),
          blas_(blas),
          control_(control),
          unit_(unit > 0.0 ? unit : 1.0),
          free_bias_(free_bias),
          settings_(settings),
          gap_(settings.gap) {}

    /// As `Decomposition::run`.
    Status run(double tolerance, Index most_steps = std::numeric_limits<Index>::max()) {
        if (!can_take_over()) return problem_.run(tolerance, most_steps);
        const Index last = problem_.iterations() + std::min(most_steps, std::numeric_limits<Index>::max() / 2);
        double patience = first_patience(), part = patience / 2;
        double spent = 0.0;
        std::vector<double> violations{problem_.violation()};  // the least so far, after each half of the patience
        while (true) {
            const double started = problem_.work();
            const Status status = problem_.run(tolerance, last - problem_.iterations(), part);
            const double work = problem_.work() - started;
            if (status != Status::max_iterations || work < part || problem_.iterations() >= last) return status;
            spent += work;
            violations.push_back(std::min(violations.back(), problem_.violation()));
            if (goes_on(violations, tolerance, spent, patience)) continue;
            if (!separable()) continue;
            if (times_ >= settings_.most) return problem_.run(tolerance, last - problem_.iterations());
            take_over();
            if (control_.stop_requested()) return stop_reason(control_);
            spent = 0.0;
            violations = {problem_.violation()};
            patience = settings_.again * first_patience();
            part = patience / 2;
        }
    }

    /// Whether the method took over, once at least.
    [[nodiscard]] bool took_over() const { return method_ != nullptr; }

  private:
    static constexpr bool kHasBarrier = LimitedLoss<Loss> || AbsoluteLimitedLoss<Loss>;

    [[nodiscard]] bool can_take_over() const {
        const Index n = problem_.size(), k = problem_.classes();
        return settings_.most > 0 && kHasBarrier && k > 1 && store_.whole() && memory_for_sample() >= enough(n, k);
    }
    /// What the budget leaves for the preconditioner, and what it cannot do without.
    [[nodiscard]] Index memory_for_sample() const {
        return store_.unused_bytes() - InteriorPoint<Real>::bytes(problem_.size(), problem_.classes());
    }
    [[nodiscard]] Index enough(Index n, Index k) const {
        return InteriorPoint<Real>::sample_bytes(std::min(n, settings_.least_sample), k);
    }
    [[nodiscard]] double expected() const {
        const auto n = static_cast<double>(problem_.size());
        return settings_.expected * n * n * static_cast<double>(problem_.classes()) + settings_.beside;
    }
    [[nodiscard]] double first_patience() const {
        if (kScoresSumToZero<Loss>) return settings_.least_share * expected();
        return std::clamp(settings_.short_time, settings_.least_share * expected(), settings_.most_share * expected());
    }
    /// Whether the decomposition is still the better bet: it has not taken yet what the method is expected to, and the
    /// least violation fell in the second half of that work so fast that it is not far from the end.
    [[nodiscard]] bool goes_on(std::span<const double> violations, double tolerance, double spent,
                               double patience) const {
        if (spent < patience) return true;
        if (!(spent < expected())) return false;
        const double least = violations.back(), fallen = std::log(violations[violations.size() / 2] / least);
        const double left = std::log(least / tolerance) / fallen * spent / 2;
        return fallen > 0.0 && left <= settings_.hopeless * expected();
    }

    /// Of a hard margin: whether there is one, as far as it is known. If there is none the decomposition will find out.
    [[nodiscard]] bool separable() const { return std::isfinite(problem_.objectives().primal); }
    [[nodiscard]] RowLimits limits_of(Index i, double largest) const {
        if constexpr (kHasBarrier) {
            const double c = problem_.example(i).cost_bound;
            return problem_.loss().row_limits(std::isinf(c) ? largest : c);
        } else {
            return {};
        }
    }
    /// What takes the place of an infinite C: a start that it limits is as good as any other.
    [[nodiscard]] double room() const {
        double largest = 0.0;
        for (Index m = 0; m < problem_.classes(); ++m) {
            const double* b = problem_.beta().row(m);
            for (Index i = 0; i < problem_.size(); ++i) largest = std::max(largest, std::abs(b[i]));
        }
        return settings_.room * (largest > 0.0 ? largest : 1.0 / unit_);
    }

    /// The method, at its beginning.
    void prepare() {
        const Index n = problem_.size(), k = problem_.classes();
        InteriorPointProblem request{.labels = problem_.labels(),
                                     .limits = {},
                                     .slopes = Plane(k, n),
                                     .absolute = kScoresSumToZero<Loss>,
                                     .free_bias = free_bias_,
                                     .unit = unit_,
                                     .most_bytes = memory_for_sample()};
        const double largest = room();
        for (Index i = 0; i < n; ++i) {
            const Index y = problem_.example(i).label;
            const auto offsets = problem_.loss().offsets(y);
            for (Index m = 0; m < k; ++m) {
                if (kScoresSumToZero<Loss>) {
                    request.slopes.at(m, i) = m == y ? offsets[y] : -offsets[m];
                } else {
                    request.slopes.at(m, i) = offsets[y] - offsets[m];
                }
            }
            request.limits.push_back(limits_of(i, largest));
        }
        const double weight = free_bias_ ? settings_.interior_point.free_weight * unit_ : problem_.bias().weight;
        kernel_ = std::make_unique<KernelProduct<Real>>(problem_.kernel_rows(), weight, store_.pool(), control_);
        method_ = std::make_unique<InteriorPoint<Real>>(std::move(request), *kernel_, store_.pool(), blas_, control_,
                                                        settings_.interior_point);
    }

    void take_over() {
        if (!method_) prepare();
        const auto result = method_->run(gap_);
        // Asked again it would end at the same point, unless that is what it was asked for; and how near a proximal
        // step on a free bias is cannot be told from its objectives.
        times_ = free_bias_ || result.status != Status::converged ? settings_.most : times_ + 1;
        gap_ *= settings_.finer;
        adopt(method_->rows(), result);
    }

    /// Go on from the rows that were found, if they are better.
    void adopt(const Plane& rows, const InteriorPointResult& result) {
        const Index n = problem_.size(), k = problem_.classes();
        const auto saved = problem_.snapshot();
        const double dual = problem_.objectives().dual;
        std::vector<Index> all(n);
        std::vector<double> changes(n * k), row(k);
        for (Index i = 0; i < n; ++i) {
            all[i] = i;
            for (Index m = 0; m < k; ++m) row[m] = rows.at(m, i);
            problem_.loss().make_feasible(problem_.example(i), row);
            for (Index m = 0; m < k; ++m) changes[i * k + m] = row[m] - problem_.beta().at(m, i);
        }
        if (free_bias_) problem_.set_bias({problem_.bias().weight, result.bias});
        const bool whole = problem_.change_rows(all, changes);
        if (!whole || !(free_bias_ || problem_.objectives().dual > dual)) problem_.restore(saved);
    }

    Decomposition<Loss, Real>& problem_;
    GramStore<Real>& store_;
    const Blas& blas_;
    Control& control_;
    double unit_;
    bool free_bias_;
    TakeoverSettings settings_;
    std::unique_ptr<KernelProduct<Real>> kernel_;
    std::unique_ptr<InteriorPoint<Real>> method_;  // once it has taken over: it goes on where it ended
    double gap_;
    Index times_ = 0;
};

}  // namespace polymargin
