#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "linear/measure.hpp"
#include "linear/rows.hpp"
#include "linear/weights.hpp"
#include "problem/multiclass.hpp"
#include "solver/coefficients.hpp"
#include "solver/linear_state.hpp"
#include "solver/shuffler.hpp"
#include "solver/status.hpp"
#include "support/control.hpp"

namespace polymargin {

struct SequentialSettings {
    Index max_visits = -1;  ///< of examples; -1: no limit
    std::uint64_t seed = 0;
    bool shuffling = true;  ///< a random order anew in each loop; if not, the given one
    bool shrinking = true;  ///< loops over the examples whose coefficients are between their limits, Keerthi et al. 2.1
    bool cooling = true;    ///< these loops go on to a tolerance that falls step by step, Keerthi et al. 2.1
    bool newton = true;     ///< with few features, Newton steps when the gap is small
    Index newton_from = 2048;  ///< examples; fewer are no work for loops either, unless C is large
    /// Shrunk loops end when they have computed as much as so many full ones, Keerthi et al. 2.1,
    double shrunk_loops = 5.0;
    /// or have come to this share of the violation that the last full one met: their cooling.
    double cooling_share = 0.1;
    /// An example that promises less than this share of the worst is left as it is: with many classes a step costs more
    /// than a look.
    double negligible = 0.01;
    /// Full loops that may pass without the guess of the gap being halved: rounding in the weights may fool it.
    int max_idle = 30;
};

/// The sequential dual method for linear machines (Keerthi et al. 2 and 3): one example after the other gets the row of
/// coefficients that is best while all others stay, and the weights follow at once. No kernel value is ever computed.
///
/// Loops over all examples alternate with loops over those whose coefficients are between their limits. What an example
/// would cost in the primal is known when it is visited, so a full loop ends with a good guess of the duality gap.
///
/// The order is random anew in each loop, a block of neighbours after the other: the examples are expected in an order
/// that is random already, and neighbours are together in memory.
///
/// With a bias the scores are `w_m . x + b_m`, `b_m = weight sum_i B_im + shift_m`.
template <RowLoss Loss, class Real>
class SequentialDual {
  public:
    SequentialDual(const Loss& loss, std::span<const Index> labels, std::span<const double> cost_bounds, Index classes,
                   const LinearRows<Real>& rows, const SequentialSettings& settings, Control& control)
        : loss_(loss),
          labels_(labels),
          cost_bounds_(cost_bounds),
          classes_(classes),
          rows_(rows),
          settings_(settings),
          control_(control),
          weights_(rows.features(), classes),
          coefficients_(rows.size()),
          shuffle_(settings.seed),
          all_(rows.size()),
          scores_(weights_.width()),
          bias_row_(weights_.width(), Real(0)),
          grow_(weights_.width(), kInfinity),
          fall_(weights_.width(), -kInfinity),
          change_(weights_.width(), Real(0)),
          bias_(classes, 0.0),
          shift_(classes, 0.0),
          sums_(classes, 0.0) {
        std::iota(all_.begin(), all_.end(), std::uint32_t{0});
        for (Index m = 0; m < classes; ++m) set_limits(m, 0.0, false, 1.0);
    }

    /// Begin with these rows (as many numbers as classes for each example named); all others are zero.
    void start_from(std::span<const Index> support, std::span<const double> rows);
    /// `b_m = weight sum_i B_im + shift_m` from now on; an empty shift is zero.
    void set_bias(double weight, std::span<const double> shift);
    /// Take weights that were computed elsewhere, more exactly, from the coefficients: features x classes.
    void set_weights(std::span<const double> weights);

    /// Go on until the guess of the relative gap is at most `gap`, or it is time to look: to compute the weights anew,
    /// or because all examples were visited `loops` times.
    Status run(double gap, double loops = std::numeric_limits<double>::infinity());

    [[nodiscard]] const Coefficients& coefficients() const { return coefficients_; }
    /// Give them away; the solver must be started from others before it runs again.
    [[nodiscard]] Coefficients take_coefficients() { return std::exchange(coefficients_, Coefficients(0)); }
    [[nodiscard]] Index visits() const { return visits_; }
    /// Visits that others have made count too.
    void count(Index visits) { visits_ += visits; }
    [[nodiscard]] std::span<const double> sums() const { return sums_; }
    [[nodiscard]] std::span<const double> bias() const { return bias_; }
    /// The guesses of the last full loop.
    [[nodiscard]] double guessed_gap() const { return guessed_gap_; }
    [[nodiscard]] double violation() const { return violation_; }

  private:
    using Entry = Coefficients::Entry;
    static constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
    /// A stop request is looked for so often.
    static constexpr Index kCheckEvery = 64;

    [[nodiscard]] Example example(Index i) const { return {labels_[i], cost_bounds_[i]}; }
    [[nodiscard]] bool at_limit() const { return settings_.max_visits >= 0 && visits_ >= settings_.max_visits; }
    [[nodiscard]] bool may_go_on() const { return !at_limit() && !control_.stop_requested(); }
    [[nodiscard]] Status reason_to_stop() const {
        return control_.stop_requested() ? stop_reason(control_) : Status::max_iterations;
    }

    /// Visit all examples; false if it was ended early. Sets the guesses and the examples of the shrunk loops.
    bool full_loop();
    /// Visit the active examples until none violates by more than `tolerance` or it takes too long.
    bool shrunk_loops(double tolerance);
    /// Visit some examples, in a random order, with all their classes or those that they use; the largest violation
    /// met. After each visit its example, and whether its row changed, go to `after`. Negative if it was ended early.
    template <class After>
    double visit_all(std::span<const std::uint32_t> examples, bool used_only, After&& after);
    /// Compute the scores of an example; what it promises, given the others.
    double visit(Index i);
    double promise_of_scores(Index i, const Example& example);
    /// The same for the classes that it uses and its own, which are then loaded: with many classes that is much less.
    double visit_used(Index i);
    void load_row(Index i);
    void load_gradient(const Example& example);
    /// Make the row that is loaded the best one.
    void improve(Index i);
    /// Of the row that is loaded.
    [[nodiscard]] bool at_vertex(Index i) const {
        return loss_.at_vertex(row_, {place_of(labels_[i]), cost_bounds_[i]});
    }
    /// Where a class is among those that are loaded, -1 if it is not.
    [[nodiscard]] Index place_of(Index m) const {
        if (all_loaded_) return m;
        const auto found = std::ranges::find(used_, m);
        return found == used_.end() ? -1 : found - used_.begin();
    }
    void prepare(std::size_t t) const;
    /// Note whether a coefficient may grow or fall.
    void set_limits(Index m, double b, bool own, double bound) {
        grow_[m] = loss_.may_grow(b, own, bound) ? Real(0) : kInfinity;
        fall_[m] = loss_.may_fall(b, own, bound) ? Real(0) : -kInfinity;
    }

    const Loss& loss_;
    std::span<const Index> labels_;
    std::span<const double> cost_bounds_;
    Index classes_;
    const LinearRows<Real>& rows_;
    SequentialSettings settings_;
    Control& control_;
    Weights<Real> weights_;
    Coefficients coefficients_;
    Shuffler shuffle_;
    std::vector<std::uint32_t> all_, active_, loop_;  // active_: whose coefficients are between their limits; ascending
    std::vector<Real> scores_, bias_row_;
    std::vector<Real> grow_, fall_;  // 0 where a coefficient of the row may grow (fall), else +inf (-inf)
    std::vector<Real> change_;
    std::vector<Index> used_, changed_;            // the classes that are loaded, and which of them a step changed
    std::vector<double> gradient_, row_, before_;  // for each of them
    bool all_loaded_ = false;
    std::vector<Entry> entries_;
    double weight_ = 0.0;
    std::vector<double> bias_, shift_, sums_;
    double square_ = 0.0;      // of all weights
    double linear_ = 0.0;      // sum_im (o_im + shift_m) B_im
    double conjugates_ = 0.0;  // sum_i q_i(B_i)
    double guessed_gap_ = std::numeric_limits<double>::infinity();
    double violation_ = std::numeric_limits<double>::infinity();
    Index visits_ = 0;
};

}  // namespace polymargin

#include "solver/sequential_dual_impl.hpp"
