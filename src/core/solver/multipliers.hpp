#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "solver/status.hpp"
#include "support/types.hpp"

namespace polymargin {

/// What a step left of the sums, as a share of what the one before left: above `least`, at most `most`.
struct RemainingShare {
    double least, most = std::numeric_limits<double>::infinity();

    /// `last` may be zero, and `most` infinite: no limit whatever the last.
    [[nodiscard]] bool contains(double left, double last) const { return left > least * last && !(left > most * last); }
};

struct MultiplierSettings {
    Index max_steps = 200;     ///< on the bias; -1: no limit, the problem says when to end
    RemainingShare slow{0.5};  ///< a step that leaves so much asks for a larger weight,
    double growth = 2.0;       ///< so many times as large
    /// In units of a kernel value: with a much larger weight a step on one example can hardly move for the sums.
    double most_weight = 16.0;
    /// Unless the sums hardly change at all: then b is on its way to the next place where a coefficient moves, and
    /// hurries.
    RemainingShare stuck{0.99};
};

/// A problem whose bias can be part of the weights: `b_m = weight sum_i B_im + shift_m`.
template <class Problem>
concept BiasedProblem = requires(Problem& problem, double number, const std::vector<double>& shift, Status status) {
    /// Solve it, from where it is, for a weight, a shift and what the last step left of the sums (infinite at first),
    /// which says how exactly.
    { problem.solve(number, shift, number) } -> std::same_as<Status>;
    /// sum_i B_im
    { problem.sums() } -> std::convertible_to<std::vector<double>>;
    /// b_m
    { problem.bias() } -> std::convertible_to<std::vector<double>>;
    /// After a step, with the bias, what is left of the sums and how the step ended: how the whole ends, or nothing if
    /// it goes on.
    { problem.judge(shift, number, status) } -> std::same_as<std::optional<Status>>;
    /// After too many steps.
    { problem.give_up(shift) } -> std::same_as<Status>;
};

struct MultiplierResult {
    Status status = Status::converged;
    Index steps = 0;
    std::vector<double> bias;
};

/// Solve a problem whose bias is not regularised, `sum_i B_im = 0` for every class m, by the method of multipliers,
/// which for the primal is a series of proximal steps on b: each is a problem with a bias that is part of the weights
/// and the scores shifted by the current b, started where the last one ended; then b moves by `weight sum_i B_im`.
///
/// `scale` is the size of a kernel value, in whose units the sums and the weight are; `shift` is where b starts.
template <BiasedProblem Problem>
MultiplierResult solve_by_multipliers(Problem& problem, double scale, std::vector<double> shift,
                                      const MultiplierSettings& settings) {
    double weight = scale, last = std::numeric_limits<double>::infinity();
    for (Index step = 1; settings.max_steps < 0 || step <= settings.max_steps; ++step) {
        const Status status = problem.solve(weight, shift, last);
        shift = problem.bias();
        double left = 0.0;
        for (const double s : std::vector<double>(problem.sums())) left = std::max(left, scale * std::abs(s));
        if (const auto end = problem.judge(shift, left, status)) return {*end, step, std::move(shift)};
        if (settings.slow.contains(left, last)) weight *= settings.growth;
        if (!settings.stuck.contains(left, last)) weight = std::min(weight, settings.most_weight * scale);
        last = left;
    }
    return {problem.give_up(shift), settings.max_steps, std::move(shift)};
}

}  // namespace polymargin
