#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "linear/rows.hpp"
#include "linear/source.hpp"
#include "linear/weights.hpp"
#include "problem/multiclass.hpp"
#include "solver/coefficients.hpp"
#include "solver/example_visitor.hpp"
#include "solver/linear_state.hpp"
#include "solver/shuffler.hpp"
#include "solver/status.hpp"
#include "support/control.hpp"
#include "support/thread_pool.hpp"

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
    /// Examples are visited in batches, all of a batch from the same point, then all their steps are made: by as many
    /// threads as there are. At most so many,
    Index most_in_batch = 256;
    /// so large a share of the examples,
    double batch_share = 1.0 / 64.0;
    /// and so many multiplications: a stop is looked for after each batch.
    double batch_work = 1 << 22;
    /// Threads are woken for so many, about ten microseconds each; where a batch would have less there is none.
    double worth_waking = 1 << 16;
    /// Steps made together overshoot where examples are alike. The curvature along all of them over that of each for
    /// itself tells by how much, and so do this many examples of a batch:
    Index probes = 16;
    /// batches grow below the first, shrink above the second, to one example after the other until the loop ends, and
    /// above 2, where the objective might not improve, the steps are shortened.
    double coupling_to_grow = 1.2, coupling_to_shrink = 1.5;
    /// Full loops that may pass without the guess of the gap being halved: rounding in the weights may fool it.
    int max_idle = 30;
    /// Whether the mean of the weights is kept. They are added to it after so many parts of a loop, but not so often
    /// that it is more than this share of the multiplications.
    bool mean = false;
    double means_in_loop = 16.0, mean_share = 0.02;
};

/// The sequential dual method for linear machines (Keerthi et al. 2 and 3): one example after the other gets the row of
/// coefficients that is best while all others stay, and the weights follow at once. No kernel value is ever computed.
///
/// Loops over all examples alternate with loops over those whose coefficients are between their limits. What an example
/// would cost in the primal is known when it is visited, so a full loop ends with a good guess of the duality gap.
///
/// Some examples are visited at once, each as if it were alone, and then all their steps are made: threads share both,
/// and what comes of it does not depend on how many they are. Few rows of text have much in common, so a batch of some
/// hundred takes no more visits than one after the other; where examples are alike batches become small.
///
/// The order is random anew in each loop, a block of neighbours after the other: the examples are expected in an order
/// that is random already, and neighbours are together in memory.
///
/// With a bias the scores are `w_m . x + b_m`, `b_m = weight sum_i B_im + shift_m`.
template <RowLoss Loss, class Real>
class SequentialDual {
  public:
    SequentialDual(const Loss& loss, std::span<const Index> labels, std::span<const double> cost_bounds, Index classes,
                   const LinearRows<Real>& rows, const SequentialSettings& settings, Control& control,
                   ThreadPool* pool = nullptr)
        : settings_(settings),
          control_(control),
          pool_(pool),
          weights_(rows.features(), classes),
          coefficients_(rows.size()),
          bias_row_(weights_.width(), Real(0)),
          point_{loss, labels, cost_bounds, classes, rows, weights_, coefficients_, bias_row_, weight_},
          shuffle_(settings.seed),
          all_(rows.size()),
          bias_(classes, 0.0),
          shift_(classes, 0.0),
          sums_(classes, 0.0),
          rooms_(rows.parts(), Room{{}, std::vector<Real>(weights_.width(), Real(0))}),
          most_in_batch_(largest_batch()) {
        std::iota(all_.begin(), all_.end(), std::uint32_t{0});
        visits_made_.resize(most_in_batch_);
        for (Index c = 0; c * kChunk < most_in_batch_; ++c) visitors_.emplace_back(point_);
    }
    SequentialDual(const SequentialDual&) = delete;
    SequentialDual& operator=(const SequentialDual&) = delete;

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
    /// The mean, if it is kept, of the weights and of the bias in the last half of the visits, or more of them: long
    /// before the end a better point of the primal than the weights of the coefficients, which follow the last examples
    /// seen.
    [[nodiscard]] PrimalPoint mean_point() const;
    /// The guesses of the last full loop.
    [[nodiscard]] double guessed_gap() const { return guessed_gap_; }
    [[nodiscard]] double violation() const { return violation_; }

  private:
    using Entry = Coefficients::Entry;
    /// What a thread needs to change weights: the classes, and by how much.
    struct Room {
        std::vector<Index> classes;
        std::vector<Real> change;
    };
    /// A stop request is looked for so often.
    static constexpr Index kCheckEvery = 64;
    /// Visits that are handed to a thread at once.
    static constexpr Index kChunk = 16;

    [[nodiscard]] bool at_limit() const { return settings_.max_visits >= 0 && visits_ >= settings_.max_visits; }
    [[nodiscard]] bool may_go_on() const { return !at_limit() && !control_.stop_requested(); }
    [[nodiscard]] Status reason_to_stop() const {
        return control_.stop_requested() ? stop_reason(control_) : Status::max_iterations;
    }
    /// Multiplications of a visit, on average.
    [[nodiscard]] double work_of_visit(bool used_only) const {
        constexpr double used = 4.0;  // classes, their own one and those that examples are confused with
        const auto n = static_cast<double>(std::max<Index>(1, point_.rows.size()));
        return static_cast<double>(point_.rows.entries()) / n *
               (used_only ? used : static_cast<double>(weights_.width()));
    }
    /// Whether so many visits are worth to wake threads for.
    [[nodiscard]] bool shared(Index visits) const {
        return pool_ != nullptr && pool_->threads() > 1 &&
               static_cast<double>(visits) * work_ >= settings_.worth_waking;
    }
    [[nodiscard]] Index largest_batch() const {
        if (Loss::kConjugate || kScoresSumToZero<Loss>) return 1;
        const double most = std::min({static_cast<double>(settings_.most_in_batch),
                                      settings_.batch_share * static_cast<double>(point_.rows.size()),
                                      settings_.batch_work / std::max(1.0, work_of_visit(false))});
        return std::max<Index>(1, static_cast<Index>(most));
    }

    /// Visit all examples; false if it was ended early. Sets the guesses and the examples of the shrunk loops.
    bool full_loop();
    /// Visit the active examples until none violates by more than `tolerance` or it takes too long.
    bool shrunk_loops(double tolerance);
    /// Visit some examples, in a random order, with all their classes or those that they use; the largest violation
    /// met. Each example and its visit go to `after`. Negative if it was ended early.
    template <class After>
    double visit_all(std::span<const std::uint32_t> examples, VisitKind kind, After&& after);
    /// Visit the examples of the loop from the t-th on, all from the same point.
    void visit_batch(std::size_t t, Index count, const VisitKind& kind);
    void begin_batches(bool used_only);
    /// Make the steps that were found, and choose how large the next batch is.
    void apply_batch(std::size_t t, Index count);
    void apply_steps(std::size_t t, Index count);
    void note(Index i, const Visit<Real>& visit);
    void add_to_weights(const Row<Real>& x, const Visit<Real>& visit, Room& room);
    /// The curvature along all steps of a batch over the sum of that along each of them.
    [[nodiscard]] double coupling(std::size_t t, Index count);
    /// Go back to a share of the steps of a batch.
    void shorten(std::size_t t, Index count, double share);
    void prepare(std::size_t t) const;
    /// Add the weights to the mean if it is time to, and begin a new one when twice as many have been added as before.
    void note_mean();
    [[nodiscard]] double squared_weights() const;

    SequentialSettings settings_;
    Control& control_;
    ThreadPool* pool_;
    Weights<Real> weights_;
    Coefficients coefficients_;
    std::vector<Real> bias_row_;
    LinearPoint<Loss, Real> point_;
    std::vector<ExampleVisitor<Loss, Real>> visitors_;
    std::vector<Visit<Real>> visits_made_;  // of a batch
    Shuffler shuffle_;
    std::vector<std::uint32_t> all_, active_, loop_;  // active_: whose coefficients are between their limits; ascending
    std::vector<Entry> entries_;
    double weight_ = 0.0;
    std::vector<double> bias_, shift_, sums_;
    double linear_ = 0.0;      // sum_im (o_im + shift_m) B_im
    double conjugates_ = 0.0;  // sum_i q_i(B_i)
    double guessed_gap_ = std::numeric_limits<double>::infinity();
    double violation_ = std::numeric_limits<double>::infinity();
    Index visits_ = 0;
    std::vector<Room> rooms_;  // for each part of the rows
    Index most_in_batch_, least_in_batch_ = 2, batch_ = 1;
    double work_ = 0.0;  // multiplications of a visit
    /// Sums of weights (features x classes, padded) and biases at some moments.
    struct Mean {
        std::vector<double> weights, bias;
        Index moments = 0;
    };
    Mean mean_, mean_before_;  // of this half, and of the one before
    Index noted_ = 0;          // visits then
};

}  // namespace polymargin

#include "solver/sequential_dual_impl.hpp"
