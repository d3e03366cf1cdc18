#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <type_traits>

#include "problem/bias.hpp"
#include "solver/exponentiated_gradient.hpp"
#include "solver/linear_state.hpp"
#include "solver/multipliers.hpp"
#include "solver/proximal_newton.hpp"
#include "solver/sequential_dual.hpp"

namespace polymargin {

/// How linear machines are solved, beyond what the solvers have settings of their own for.
struct LinearSettings {
    /// Up to this many coefficients are solved for in double from the start: it costs next to nothing.
    Index small = 1 << 14;
    /// Gaps that single precision can close.
    double single_gap = 1e-5;
    /// Single precision is for numbers (C, C |x|^2, |x|^2) between these: all sums stay far from its ends.
    double least_number = 1e-12, most_number = 1e12;
    /// The sequential method is the fastest as far as this gap, or for so many loops; then Newton steps are, where they
    /// are possible.
    double near_gap = 0.1, near_loops = 50.0;
    /// Its scores are rounded, and a free bias may still move: Newton's method is asked so often, for a gap that is
    /// finer each time.
    int newton_attempts = 4;
    double newton_finer = 0.3;
    /// Most classes of a separable machine that are solved as one: a visit does not cost much more for so many than for
    /// one.
    Index classes_in_group = 32;
    /// Rounds that a gap may stay as it is, but for `unchanged`; in double, below `rounding` alone.
    int max_idle = 50;
    double unchanged = 0.999, rounding = 1e-12;
    /// The gap that the solver's own guess is asked for, when the true one is not reached: smaller each time, not below
    /// this share.
    double finer = 0.9, finest_share = 0.1;
    /// Free bias: the gap of the first inner problem; then this share of what is left; less, while that does not halve
    /// the gap, because what an inner problem leaves open comes back as sums, of the order of its root.
    double inner_gap = 0.1, inner_share = 0.1, inner_finer = 0.2, finest_inner_gap = 1e-14;
    /// But for a start not less than this share of the gap that is asked for: the rest is for what is left of the sums.
    double last_share = 0.7;
    /// Its weight at first, as a share of the largest eigenvalue of X'X / n, for which the power method takes so many
    /// steps. (Seconds with 0.1, 0.3, 1 and 3: reuters8 0.23, 0.15, 0.25, 0.67; dna 0.89, 0.21, 0.13, 0.14. One class
    /// against all on made word counts, loops with 0.15, 0.3, 0.5 and 1: 89, 170, 280 and more than 300.)
    double bias_share = 0.3;
    int curvature_steps = 3;
    /// But half of it where the best bias is computed for the weights: it need not come from the sums, and a smaller
    /// weight is easier on the inner problems.
    double exact_bias_share = 0.5;
    /// It grows while a step leaves half of the sums, up to about twice that eigenvalue; beyond that only while they do
    /// not change, within a hundredth.
    MultiplierSettings multipliers{
        .max_steps = -1, .slow = {0.5}, .growth = 2.0, .most_weight = 7.0, .stuck = {1.0 / 1.01, 1.0 / 0.99}};
    /// Where the violation counts: the share of the gap that is asked for next, and the least.
    double finer_for_violation = 0.1, finest_gap = 1e-14;
    NewtonSettings newton = {};
    ExponentiatedGradientSettings exponentiated_gradient = {};
};

/// A linear machine, or the part of a machine that belongs to some of its classes.
template <RowLoss Loss>
struct LinearTask {
    const Loss& loss;
    LinearData problem;
    BiasKind bias;
    double gap;  ///< the relative duality gap that is asked for
    SequentialSettings settings;
    const LinearSettings& tuning;
    std::span<const Index> start_support;
    std::span<const double> start_rows;
    std::span<const double> start_bias;

    /// Of a bias that is part of the weights.
    [[nodiscard]] double bias_weight() const { return bias == BiasKind::regularized ? 1.0 : 0.0; }
};

struct LinearSolution {
    Coefficients coefficients{0};
    LinearState state;
    Index visits = 0;
    Status status = Status::converged;
};

/// What methods need besides a task and its rows.
struct LinearTools {
    const Blas& blas;
    Control& control;
    Workers workers;  ///< thorough: the certificate is for the point where the solver was stopped
};

/// Whether a gap can still fall: not when it has not for a while and rounding may be the reason.
template <class Real>
class GapProgress {
  public:
    explicit GapProgress(const LinearSettings& settings) : settings_(settings) {}

    bool operator()(double gap) {
        idle_ = gap < settings_.unchanged * best_ ? 0 : idle_ + 1;
        best_ = std::min(best_, gap);
        return idle_ < settings_.max_idle || (std::is_same_v<Real, double> && gap > settings_.rounding);
    }

  private:
    const LinearSettings& settings_;
    double best_ = std::numeric_limits<double>::infinity();
    int idle_ = 0;
};

}  // namespace polymargin
