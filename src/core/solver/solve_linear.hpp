#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "solver/linear_bounded.hpp"
#include "solver/linear_free_bias.hpp"
#include "solver/linear_newton.hpp"
#include "solver/linear_task.hpp"

namespace polymargin {

/// The largest eigenvalue of `X'X / n`, nearly, by steps of the power method from the longest row.
template <class Real>
double largest_curvature(const LinearRows<Real>& rows, int steps, const Control& control) {
    std::vector<double> direction(rows.features(), 0.0), next;
    const auto for_row = [&](Index i, auto&& visit) {
        const Row<Real> x = rows.row(i);
        for (Index p = 0; p < x.count; ++p) {
            visit(x.columns == nullptr ? p : static_cast<Index>(x.columns[p]), static_cast<double>(x.values[p]));
        }
    };
    Index longest = 0;
    for (Index i = 1; i < rows.size(); ++i) longest = rows.norm(i) > rows.norm(longest) ? i : longest;
    if (rows.size() > 0) for_row(longest, [&](Index f, double v) { direction[f] = v; });
    double curvature = 0.0;
    for (int step = 0; step < steps; ++step) {
        const double length = std::sqrt(std::inner_product(direction.begin(), direction.end(), direction.begin(), 0.0));
        if (!(length > 0.0)) return 0.0;
        for (double& v : direction) v /= length;  // of any size: it must not overflow
        next.assign(direction.size(), 0.0);
        Workers{.control = &control}.for_parts(rows.size(), [&](Range part) {
            for (Index i = part.begin; i < part.end; ++i) {
                double product = 0.0;
                for_row(i, [&](Index f, double v) { product += v * direction[f]; });
                for_row(i, [&](Index f, double v) { next[f] += v * product; });
            }
        });
        std::swap(direction, next);
        curvature = std::sqrt(std::inner_product(direction.begin(), direction.end(), direction.begin(), 0.0));
    }
    return curvature / static_cast<double>(std::max<Index>(1, rows.size()));
}

/// The sequential dual method, with Newton steps at the end where they are possible, for one linear machine.
template <RowLoss Loss, class Real>
class LinearSolver {
  public:
    LinearSolver(const LinearTask<Loss>& task, LinearRows<Real>& rows, const LinearTools& tools)
        : task_(task), rows_(rows), tools_(tools), free_(task.bias == BiasKind::free) {}

    LinearSolution run() {
        LinearSolution solution = run_to_the_end();
        // Whoever is out of time gets a better point of the primal than the weights of coefficients left half done.
        if (solution.status != Status::converged && solver_ && keeps_mean() && tools_.control.out_of_time()) {
            take_mean(solution);
        }
        return solution;
    }

  private:
    LinearSolution run_to_the_end() {
        if (!task_.start_support.empty()) start(task_.start_support, task_.start_rows);
        if (free_) shift_ = starting_bias();
        // On samples the sequential method may never be needed.
        if (!begins_with_samples(task_, rows_)) set_bias();
        if constexpr (NewtonLoss<Loss>) {
            if (newton_suits<Loss>(task_.settings, rows_, task_.problem.classes, task_.tuning.newton)) {
                const double weight = free_ ? mean_norm() : task_.bias_weight();
                LinearSolution solution =
                    begins_with_samples(task_, rows_)
                        ? finish_by_newton<Loss, Real>(task_, std::nullopt, 0, rows_, weight, shift_, tools_)
                        : solve_by_newton(task_, sequential(), rows_, weight, shift_, tools_);
                return solution.status == Status::precision ? solve_the_rest(std::move(solution)) : solution;
            }
        }
        return run_sequential();
    }

    /// Where Newton steps follow: weights are a point of their own there.
    [[nodiscard]] bool keeps_mean() const {
        return newton_suits<Loss>(task_.settings, rows_, task_.problem.classes, task_.tuning.newton);
    }
    /// Of the weights in the last loops, if it is better.
    void take_mean(LinearSolution& solution) {
        const PrimalPoint mean = sequential().mean_point();
        LinearState state =
            evaluate(task_.loss, task_.problem, solution.coefficients, task_.bias_weight(), {}, tools_.workers, &mean);
        if (state.objectives.primal < solution.state.objectives.primal) {
            state.objectives.dual = solution.state.objectives.dual;
            solution.state = std::move(state);
        }
    }

    SequentialDual<Loss, Real>& sequential() {
        const LinearData& problem = task_.problem;
        if (!solver_) {
            SequentialSettings settings = task_.settings;
            settings.mean = keeps_mean();
            solver_.emplace(task_.loss, problem.labels, problem.cost_bounds, problem.classes, rows_, settings,
                            tools_.control, tools_.workers.pool);
        }
        return *solver_;
    }

    LinearSolution run_sequential() {
        if (free_) {
            return LinearFreeBias<Loss, Real>(task_, sequential(), tools_.workers)
                .run(bias_scale_.value_or(1.0), shift_);
        }
        return solve_bounded<Real>(task_, sequential(), tools_.workers,
                                   [&](const LinearState& state) { sequential().set_weights(state.weights); });
    }

    /// Go on in small steps where Newton's led no further; the better of the two answers.
    LinearSolution solve_the_rest(LinearSolution before) {
        restart(before.coefficients);
        sequential().count(before.visits - sequential().visits());
        set_bias();
        LinearSolution after = run_sequential();
        if (after.status == Status::converged || after.state.gap() <= before.state.gap()) return after;
        before.status = after.status;
        before.visits = after.visits;
        return before;
    }

    /// Begin with some coefficients and their weights.
    void start(std::span<const Index> support, std::span<const double> rows) {
        sequential().start_from(support, rows);
        LinearState state;
        sum_up(task_.loss, task_.problem, sequential().coefficients(), state, tools_.workers);
        sequential().set_weights(state.weights);
    }
    void restart(const Coefficients& coefficients) {
        const Index k = task_.problem.classes;
        std::vector<Index> support;
        std::vector<double> rows;
        for (Index i = 0; i < coefficients.rows(); ++i) {
            if (coefficients.row(i).empty()) continue;
            support.push_back(i);
            rows.resize(rows.size() + k, 0.0);
            for (const auto& [m, b] : coefficients.row(i)) *(rows.end() - k + m) = b;
        }
        start(support, rows);
    }

    /// A free bias to start from: that of a warm start, given for the examples as they are, for the examples without
    /// their centre.
    [[nodiscard]] std::vector<double> starting_bias() {
        const Index k = task_.problem.classes;
        if (task_.start_bias.empty()) return std::vector<double>(k, 0.0);
        std::vector<double> bias(task_.start_bias.begin(), task_.start_bias.end());
        LinearState state;
        sum_up(task_.loss, task_.problem, sequential().coefficients(), state, tools_.workers);
        for (Index f = 0; f < std::ssize(task_.problem.centre); ++f) {
            for (Index m = 0; m < k; ++m) bias[m] += task_.problem.centre[f] * state.weights[f * k + m];
        }
        if constexpr (kScoresSumToZero<Loss>) take_mean_away(bias);
        return bias;
    }

    /// Of the squared lengths of the rows, 1 if there is nothing but zeros: the weight of a free bias in Newton's
    /// steps. Of those that have been read, or of the first sample.
    double mean_norm() {
        if (rows_.ready() == 0) {
            const auto sizes = ProximalNewton<Loss, Real>::samples(rows_, task_.tuning.newton);
            rows_.read_to(sizes.front(), {.pool = tools_.workers.pool, .control = &tools_.control, .thorough = true});
        }
        const Index count = rows_.ready();
        double mean = 0.0;
        for (Index i = 0; i < count; ++i) mean += rows_.norm(i) / static_cast<double>(count);
        return mean > 0.0 ? mean : 1.0;
    }

    /// Give the sequential method its bias, and a free one its weight: the direction in which all coefficients of a
    /// class grow is not to be stiffer than the stiffest that the examples have, for one example after the other hardly
    /// moves along it, and not much softer, for the sums take long then.
    void set_bias() {
        if (free_ && !bias_scale_ && !tools_.control.stop_requested()) {
            const double stiffest = largest_curvature(rows_, task_.tuning.curvature_steps, tools_.control);
            bias_scale_ = stiffest > 0.0 ? task_.tuning.bias_share * stiffest : 1.0;
            if constexpr (ShiftableLoss<Loss>) *bias_scale_ *= task_.tuning.exact_bias_share;
        }
        sequential().set_bias(free_ ? bias_scale_.value_or(1.0) : task_.bias_weight(), shift_);
    }

    const LinearTask<Loss>& task_;
    LinearRows<Real>& rows_;
    const LinearTools& tools_;
    std::optional<SequentialDual<Loss, Real>> solver_;  // once it is needed
    bool free_;
    std::vector<double> shift_;         // empty unless the bias is free
    std::optional<double> bias_scale_;  // once it is known
};

}  // namespace polymargin
