#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
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
    FreeBias(Decomposition<Loss, Real>& problem, double scale) : problem_(problem), scale_(scale > 0.0 ? scale : 1.0) {}

    /// `shift` is where b starts; empty: at zero.
    Status run(double tolerance, std::vector<double> shift = {}) {
        double weight = scale_;
        double last = std::numeric_limits<double>::infinity();
        shift.resize(problem_.classes(), 0.0);
        for (steps_ = 1; steps_ <= kMaxSteps; ++steps_) {
            problem_.set_bias({weight, shift});
            const Status status = problem_.run(std::max(tolerance / 2, std::min(kInnerShare * last, 1.0)));
            const auto sums = problem_.column_sums();
            double residual = 0.0;
            for (std::size_t m = 0; m < sums.size(); ++m) {
                shift[m] += weight * sums[m];
                residual = std::max(residual, scale_ * std::abs(sums[m]));
            }
            if (status != Status::converged) return finish(shift, status);
            // What is left of the sums changes the scores by at most as much when it is taken out.
            if (residual <= tolerance / 4 && problem_.violation() <= tolerance / 2) {
                finish(shift, status);
                if (problem_.violation() <= tolerance) return status;
            }
            // Sums that do not change at all mean that b is on its way to the next place where a coefficient moves.
            const bool stuck = residual > kStuck * last;
            if (residual > kProgress * last) weight *= kGrowth;
            if (!stuck) weight = std::min(weight, kMostWeight * scale_);
            last = residual;
        }
        return finish(shift, Status::precision);
    }

    [[nodiscard]] Index steps() const { return steps_; }
    /// Whether the sums are zero: not when the solver was stopped and kernel rows were missing.
    [[nodiscard]] bool balanced() const { return balanced_; }

  private:
    static constexpr Index kMaxSteps = 200;
    /// A step is solved to this share of what the last one left of the sums.
    static constexpr double kInnerShare = 0.1;
    /// A step that leaves more than this share of the sums asks for a larger weight.
    static constexpr double kProgress = 0.5;
    static constexpr double kStuck = 0.99;
    static constexpr double kGrowth = 2.0;
    /// In units of a kernel value: much larger, and a step on one example can hardly move for the sums.
    static constexpr double kMostWeight = 16.0;

    Status finish(const std::vector<double>& shift, Status status) {
        problem_.set_bias({0.0, shift});
        balanced_ = balance_free() && balance_all();
        return status;
    }

    /// Take the sums out of coefficients that are free: they can move a little and stay optimal. False if the solver
    /// was stopped meanwhile.
    bool balance_free() {
        const Index k = problem_.classes(), n = problem_.size();
        // What each example can carry from one column to another and stay free.
        struct Carrier {
            Index example;
            double room;
        };
        std::vector<std::vector<Carrier>> carriers(k * k);
        std::vector<double> capacity(k * k, 0.0), row(k), change(k, 0.0);
        for (Index i = 0; i < n; ++i) {
            for (Index m = 0; m < k; ++m) row[m] = problem_.beta().at(m, i);
            const auto exchanges = problem_.loss().directions(row, problem_.example(i));
            for (const auto& [one, other] : exchanges) {
                for (const auto& [gains, loses] : {std::pair{one, other}, std::pair{other, one}}) {
                    change[gains] = 1.0;
                    change[loses] = -1.0;
                    double room = problem_.loss().max_step(row, change, problem_.example(i));
                    change[gains] = change[loses] = 0.0;
                    // A row has one room for all its exchanges. Half of it leaves the variable free.
                    room = std::min(room, kUnbounded) / (2.0 * static_cast<double>(exchanges.size()));
                    if (!(room > 0.0)) continue;
                    carriers[loses * k + gains].push_back({i, room});
                    capacity[loses * k + gains] += room;
                }
            }
        }
        const auto carried = carry_excess(problem_.column_sums(), capacity);
        std::map<Index, std::vector<double>> changes;
        for (Index edge = 0; edge < k * k; ++edge) {
            if (carried[edge] == 0.0) continue;
            for (const auto& [i, room] : carriers[edge]) {
                auto& row_change = changes.try_emplace(i, k, 0.0).first->second;
                const double share = carried[edge] * (room / capacity[edge]);
                row_change[edge / k] -= share;
                row_change[edge % k] += share;
            }
        }
        return apply(changes);
    }

    /// Take out what is left, whatever it does to the violation: the dual point must be feasible. Coefficients are a
    /// flow from the class of the example to the others; make it a circulation.
    bool balance_all() {
        const Index k = problem_.classes(), n = problem_.size();
        const auto beta = problem_.beta();
        std::vector<double> flow(k * k, 0.0);
        for (Index i = 0; i < n; ++i) {
            const Index y = problem_.example(i).label;
            for (Index m = 0; m < k; ++m) flow[y * k + m] += m == y ? 0.0 : -beta.at(m, i);
        }
        const auto balanced = largest_circulation_below(flow, k);
        std::map<Index, std::vector<double>> changes;
        for (Index y = 0; y < k; ++y) {
            for (Index m = 0; m < k; ++m) take_out(y, m, flow[y * k + m] - balanced[y * k + m], changes);
        }
        return apply(changes);
    }

    /// Take so much out of what the examples of class y have in class m, of those first that it hurts least: a
    /// coefficient at its limit is there for a reason, and off it the example may violate by all of its loss.
    void take_out(Index y, Index m, double amount, std::map<Index, std::vector<double>>& changes) const {
        if (!(amount > 0.0)) return;
        const auto beta = problem_.beta(), gradient = problem_.gradient();
        std::vector<std::pair<double, Index>> givers;
        for (Index i = 0; i < problem_.size(); ++i) {
            if (problem_.example(i).label != y || !(beta.at(m, i) < 0.0)) continue;
            givers.emplace_back(std::abs(gradient.at(m, i) - gradient.at(y, i)), i);
        }
        std::ranges::sort(givers);
        for (const auto& [hurt, i] : givers) {
            const double part = std::min(amount, -beta.at(m, i));
            auto& change = changes.try_emplace(i, problem_.classes(), 0.0).first->second;
            change[m] += part;
            change[y] -= part;
            amount -= part;
            if (!(amount > 0.0)) return;
        }
    }

    bool apply(const std::map<Index, std::vector<double>>& changes) {
        std::vector<Index> which;
        std::vector<double> values;
        for (const auto& [i, change] : changes) {
            which.push_back(i);
            values.insert(values.end(), change.begin(), change.end());
        }
        return problem_.change_rows(which, values);
    }

    static constexpr double kUnbounded = 1e100;

    Decomposition<Loss, Real>& problem_;
    double scale_;
    Index steps_ = 0;
    bool balanced_ = false;
};

}  // namespace polymargin
