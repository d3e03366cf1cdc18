#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "solver/circulation.hpp"
#include "solver/decomposition.hpp"
#include "solver/multipliers.hpp"

namespace polymargin {

struct FreeBiasSettings {
    MultiplierSettings multipliers = {};
    /// A step is solved to this share of what the last one left of the sums.
    double inner_share = 0.1;
};

/// Solve a joint problem whose bias is not regularised: `sum_i B_im = 0` for every class m, Hsu & Lin (5) and (23), by
/// the method of multipliers. At the end the rest of the sums is taken out of the coefficients, so that the dual point
/// is feasible and its objective a bound.
template <MulticlassLoss Loss, class Real>
class FreeBias {
  public:
    using Run = std::function<Status(double tolerance)>;

    /// `scale` is the size of a kernel value; `run` solves the problem as it is, by default by its own method.
    FreeBias(Decomposition<Loss, Real>& problem, double scale, const FreeBiasSettings& settings = {}, Run run = {})
        : problem_(problem), scale_(scale > 0.0 ? scale : 1.0), settings_(settings), run_(std::move(run)) {}

    /// `shift` is where b starts; empty: at zero.
    Status run(double tolerance, std::vector<double> shift = {}) {
        tolerance_ = tolerance;
        shift.resize(problem_.classes(), 0.0);
        if constexpr (kScoresSumToZero<Loss>) take_mean_away(shift);
        const auto result = solve_by_multipliers(*this, scale_, std::move(shift), settings_.multipliers);
        steps_ = result.steps;
        return result.status;
    }

    [[nodiscard]] Index steps() const { return steps_; }
    /// Whether the sums are zero: not when the solver was stopped and kernel rows were missing.
    [[nodiscard]] bool balanced() const { return balanced_; }

    // What the method of multipliers asks, `BiasedProblem`.
    Status solve(double weight, const std::vector<double>& shift, double left) {
        problem_.set_bias({weight, shift});
        const double tolerance = std::max(tolerance_ / 2, std::min(settings_.inner_share * left, 1.0));
        return run_ ? run_(tolerance) : problem_.run(tolerance);
    }
    [[nodiscard]] std::vector<double> sums() const { return problem_.column_sums(); }
    [[nodiscard]] std::vector<double> bias() const {
        std::vector<double> bias = problem_.bias().shift;
        const auto sums = problem_.column_sums();
        for (std::size_t m = 0; m < bias.size(); ++m) bias[m] += problem_.bias().weight * sums[m];
        if constexpr (kScoresSumToZero<Loss>) take_mean_away(bias);  // a large weight makes much of rounding
        return bias;
    }
    std::optional<Status> judge(const std::vector<double>& shift, double left, Status status) {
        if (status != Status::converged) return finish(shift, status);
        // What is left of the sums changes the scores by at most as much when it is taken out.
        if (left > tolerance_ / 4 || problem_.violation() > tolerance_ / 2) return std::nullopt;
        finish(shift, status);
        return problem_.violation() <= tolerance_ ? std::optional(status) : std::nullopt;
    }
    Status give_up(const std::vector<double>& shift) { return finish(shift, Status::precision); }

  private:
    using Changes = std::map<Index, std::vector<double>>;
    static constexpr double kUnbounded = 1e100;
    static constexpr double kRounding = 1e-14;  // of a sum

    /// What an example can carry from one column to another and stay free.
    struct Carrier {
        Index example;
        double most;
    };
    struct Carriers {
        std::vector<std::vector<Carrier>> on;  // of each edge, from column to column
        std::vector<double> capacity;
    };

    Status finish(const std::vector<double>& shift, Status status) {
        problem_.set_bias({0.0, shift});
        balanced_ = balance_free() && balance_all();
        return status;
    }

    /// Columns and, where coefficients move alone, nobody: what they give to, or get from.
    [[nodiscard]] Index nodes() const { return problem_.classes() + (Loss::kRowsSumToZero ? 0 : 1); }
    [[nodiscard]] Index node(Index m) const { return m == kNoClass ? problem_.classes() : m; }

    [[nodiscard]] Carriers find_carriers() const {
        const Index k = problem_.classes(), n = nodes();
        Carriers carriers{std::vector<std::vector<Carrier>>(n * n), std::vector<double>(n * n, 0.0)};
        std::vector<double> row(k), change(k, 0.0);
        for (Index i = 0; i < problem_.size(); ++i) {
            for (Index m = 0; m < k; ++m) row[m] = problem_.beta().at(m, i);
            const auto directions = problem_.loss().directions(row, problem_.example(i));
            for (const auto& [one, other, also] : directions) {
                if (also != kNoClass) continue;  // no edge
                for (const Direction d : {Direction{one, other}, Direction{other, one}}) {
                    d.add_to(change, 1.0);
                    double most = problem_.loss().max_step(row, change, problem_.example(i));
                    std::ranges::fill(change, 0.0);
                    // A row has one way to go for all its directions. Half of it leaves the variable free.
                    most = std::min(most, kUnbounded) / (2.0 * static_cast<double>(directions.size()));
                    if (!(most > 0.0)) continue;
                    const Index edge = node(d.loses) * n + node(d.gains);
                    carriers.on[edge].push_back({i, most});
                    carriers.capacity[edge] += most;
                }
            }
        }
        return carriers;
    }

    /// Take the sums out of coefficients that are free: they can move a little and stay optimal. False if the solver
    /// was stopped meanwhile.
    bool balance_free() {
        const Index k = problem_.classes(), n = nodes();
        const Carriers carriers = find_carriers();
        auto excess = problem_.column_sums();
        if (n > k) excess.push_back(-std::accumulate(excess.begin(), excess.end(), 0.0));
        const auto carried = carry_excess(std::move(excess), carriers.capacity);
        Changes changes;
        for (Index edge = 0; edge < n * n; ++edge) {
            if (carried[edge] == 0.0) continue;
            const Direction d{edge % n == k ? kNoClass : edge % n, edge / n == k ? kNoClass : edge / n};
            for (const auto& [i, most] : carriers.on[edge]) {
                d.add_to(row_of(changes, i), carried[edge] * (most / carriers.capacity[edge]));
            }
        }
        return apply(changes);
    }

    /// Take out what is left, whatever it does to the violation: the dual point must be feasible. Coefficients that sum
    /// to zero are a flow from the class of the example to the others; make it a circulation. Else each column has
    /// examples on two sides, and the heavier one gives in; where scores sum to zero all columns come to the same sum.
    /// None grows, so that all stay feasible.
    bool balance_all() {
        const Index k = problem_.classes(), n = problem_.size();
        const auto beta = problem_.beta();
        Changes changes;
        if constexpr (Loss::kRowsSumToZero) {
            std::vector<double> flow(k * k, 0.0);
            for (Index i = 0; i < n; ++i) {
                const Index y = problem_.example(i).label;
                for (Index m = 0; m < k; ++m) flow[y * k + m] += m == y ? 0.0 : -beta.at(m, i);
            }
            const auto balanced = largest_circulation_below(flow, k);
            for (Index y = 0; y < k; ++y) {
                for (Index m = 0; m < k; ++m) {
                    const auto gives = [&](Index i) { return problem_.example(i).label == y && beta.at(m, i) < 0.0; };
                    take_out(gives, {m, y}, flow[y * k + m] - balanced[y * k + m], changes);
                }
            }
        } else {
            std::vector<double> sums(k);
            double size = 0.0;
            for (Index m = 0; m < k; ++m) {
                sums[m] = std::accumulate(beta.row(m), beta.row(m) + n, 0.0);
                for (Index i = 0; i < n; ++i) size += std::abs(beta.at(m, i));
            }
            const auto [least, most] = std::ranges::minmax(sums);
            const double level = !kScoresSumToZero<Loss> ? 0.0 : least > 0.0 ? least : std::min(most, 0.0);
            for (Index m = 0; m < k; ++m) {
                const double excess = sums[m] - level, sign = excess < 0.0 ? -1.0 : 1.0;
                if (std::abs(excess) <= kRounding * size) continue;  // it would take a coefficient off its limit
                const auto gives = [&](Index i) { return sign * beta.at(m, i) > 0.0; };
                take_out(gives, sign < 0.0 ? Direction{m, kNoClass} : Direction{kNoClass, m}, sign * excess, changes);
            }
        }
        return apply(changes);
    }

    /// Move so much along a direction that makes a column smaller, of the examples that give those first that it hurts
    /// least: a coefficient at its limit is there for a reason, and off it the example may violate by all of its loss.
    template <class Gives>
    void take_out(Gives&& gives, const Direction& d, double amount, Changes& changes) const {
        if (!(amount > 0.0)) return;
        const auto beta = problem_.beta(), gradient = problem_.gradient();
        const Index column = Loss::kRowsSumToZero || d.loses == kNoClass ? d.gains : d.loses;
        std::vector<std::pair<double, Index>> givers;
        for (Index i = 0; i < problem_.size(); ++i) {
            if (gives(i)) givers.emplace_back(std::abs(d.slope([&](Index m) { return gradient.at(m, i); })), i);
        }
        std::ranges::sort(givers);
        for (const auto& [hurt, i] : givers) {
            const double part = std::min(amount, std::abs(beta.at(column, i)));
            d.add_to(row_of(changes, i), part);
            amount -= part;
            if (!(amount > 0.0)) return;
        }
    }

    [[nodiscard]] std::vector<double>& row_of(Changes& changes, Index i) const {
        return changes.try_emplace(i, problem_.classes(), 0.0).first->second;
    }
    bool apply(const Changes& changes) {
        std::vector<Index> which;
        std::vector<double> values;
        for (const auto& [i, change] : changes) {
            which.push_back(i);
            values.insert(values.end(), change.begin(), change.end());
        }
        return problem_.change_rows(which, values);
    }

    Decomposition<Loss, Real>& problem_;
    double scale_;
    FreeBiasSettings settings_;
    Run run_;
    double tolerance_ = 0.0;
    Index steps_ = 0;
    bool balanced_ = false;
};

}  // namespace polymargin
