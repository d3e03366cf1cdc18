#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "solver/circulation.hpp"
#include "solver/decomposition.hpp"

namespace polymargin {

/// Solve an all-together problem whose bias is not regularised: `sum_i B_im = 0` for every class m, H&L (5) and (23).
///
/// The method of multipliers, which for the primal is a series of proximal steps on b: each is a bounded problem with
/// the kernel `K + rho` and the scores shifted by the current b, started where the last one ended; then b moves by
/// `rho sum_i B_im`. At the end the rest of the sums is taken out of the coefficients, so that the dual point is
/// feasible and its objective a bound.
template <MulticlassLoss Loss, class Real>
class FreeBias {
  public:
    /// `scale` is the size of a kernel value.
    FreeBias(Decomposition<Loss, Real>& problem, double scale) : problem_(problem), scale_(scale) {}

    Status run(double tolerance) {
        double weight = scale_ > 0.0 ? scale_ : 1.0;
        double last = std::numeric_limits<double>::infinity();
        std::vector<double> shift(problem_.classes(), 0.0);
        for (steps_ = 1; steps_ <= kMaxSteps; ++steps_) {
            problem_.set_bias({weight, shift});
            const Status status = problem_.run(std::max(tolerance / 4, std::min(kInnerShare * last, 1.0)));
            const auto sums = problem_.column_sums();
            double residual = 0.0;
            for (std::size_t m = 0; m < sums.size(); ++m) {
                shift[m] += weight * sums[m];
                residual = std::max(residual, scale_ * std::abs(sums[m]));
            }
            if (status != Status::converged) return finish(shift, status);
            // What is left of the sums changes the scores by at most as much when it is taken out.
            if (residual <= tolerance / 4 && problem_.violation() <= tolerance / 4) {
                finish(shift, status);
                if (problem_.violation() <= tolerance) return status;
            }
            if (residual > kProgress * last) weight *= kGrowth;
            last = residual;
        }
        return finish(shift, Status::precision);
    }

    [[nodiscard]] Index steps() const { return steps_; }

  private:
    static constexpr Index kMaxSteps = 200;
    /// A step is solved to this share of what the last one left of the sums.
    static constexpr double kInnerShare = 0.1;
    /// A step that leaves more than this share of the sums asks for a larger weight.
    static constexpr double kProgress = 0.25;
    static constexpr double kGrowth = 4.0;

    Status finish(const std::vector<double>& shift, Status status) {
        problem_.set_bias({0.0, shift});
        balance();
        return status;
    }

    /// Coefficients as a flow from the class of the example to the others: make it a circulation.
    void balance() {
        const Index k = problem_.classes(), n = problem_.size();
        const auto beta = problem_.beta();
        std::vector<double> flow(k * k, 0.0);
        for (Index i = 0; i < n; ++i) {
            const Index y = problem_.example(i).label;
            for (Index m = 0; m < k; ++m) flow[y * k + m] += m == y ? 0.0 : -beta.at(m, i);
        }
        const auto balanced = largest_circulation_below(flow, k);
        std::vector<Index> which;
        std::vector<double> changes;
        for (Index i = 0; i < n; ++i) {
            const Index y = problem_.example(i).label;
            std::vector<double> change(k, 0.0);
            for (Index m = 0; m < k; ++m) {
                if (m == y || beta.at(m, i) == 0.0 || flow[y * k + m] == balanced[y * k + m]) continue;
                change[m] = beta.at(m, i) * (balanced[y * k + m] / flow[y * k + m] - 1.0);
                change[y] -= change[m];
            }
            if (std::ranges::all_of(change, [](double c) { return c == 0.0; })) continue;
            which.push_back(i);
            changes.insert(changes.end(), change.begin(), change.end());
        }
        problem_.change_rows(which, changes);
    }

    Decomposition<Loss, Real>& problem_;
    double scale_;
    Index steps_ = 0;
};

}  // namespace polymargin
