#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "linear/class_blocks.hpp"
#include "linear/rows.hpp"
#include "linear/tiles.hpp"
#include "linear/weights.hpp"
#include "problem/multiclass.hpp"
#include "solver/coefficients.hpp"
#include "solver/linear_state.hpp"
#include "solver/proximal_newton_answers.hpp"
#include "solver/status.hpp"
#include "support/blas.hpp"
#include "support/buffer.hpp"
#include "support/control.hpp"
#include "support/thread_pool.hpp"
#include "support/workers.hpp"

namespace polymargin {

/// Losses whose rows, on a face of their feasible set, answer to the scores by a projection: their classes exchange, or
/// each moves alone, and no conjugate term bends the way.
template <class Loss>
concept NewtonLoss = RowLoss<Loss> && !Loss::kConjugate && !kScoresSumToZero<Loss>;

struct NewtonSettings {
    /// tau at first, and how it falls while the inner problems stay easy: solved by so many steps.
    double first_share = 0.1, smaller_share = 0.33, least_share = 1e-6;
    int easy = 4;
    /// Of an inner problem; then the next point of the dual is tried from where it is, which is not worth much after
    /// the middle.
    int most_steps = 10, most_middle_steps = 50;
    /// An inner problem is solved when what is left of it is this share of the gap, or less if that led nowhere.
    double inner_share = 0.1, least_inner_share = 1e-6;
    /// Newton's equations are solved as well as this, with so many products at most: more if few examples are in them,
    /// and they cost no more than a pass over all.
    double residual = 0.2;
    Index least_products = 30, most_products = 200;
    /// The slope at the end of a step, relative to that at its begin; and how often it is looked at.
    double slope = 0.5;
    int most_looks = 12;
    /// Damping, as a share of the curvature that a feature has if its examples are as near to their hinges as all are:
    /// at first, when a step was much too long, and less than which is none. It came when steps overshot where the
    /// examples of a feature are all at their limits. While the middle is the centre a feature has as much as so many
    /// curved examples tell beside its own: without it few rows of rare features (covtype) are all that steps follow.
    double first_damping = 0.01, fresh_damping = 1e-3, least_damping = 1e-3, guess_worth = 3.0;
    /// Samples: the first has so many examples, and so many for each feature, at least; the next so many times as many.
    Index least_sample = 512, sample_per_feature = 64, growth = 4;
    /// The first is solved even if there is no time, so that there is an answer, if it has no more values than this:
    /// some milliseconds.
    Index patience = 1 << 19;
    /// A sample is solved to this gap: its optimum is as far from that of all. (0.01 and 0.1 were no faster.)
    double sample_gap = 0.03;
    /// Steps on a sample end when they promise no more than this share of the objective: nearer than it is to that of
    /// all, and long before the two points meet.
    double sample_promise = 1e-3;
    /// The widest band to begin with, in units of how far scores of zero are from their hinges, which it must reach.
    /// The next has a width that adds this share of the gap that is asked for, as far as that was seen, but is not
    /// narrower than this part of the one before.
    double widest_band = 3.0, band_share = 0.5, narrower = 0.1;
    int most_narrowings = 3;  ///< of the band around the middle; then the point of the dual is moved
    int max_idle = 6;         ///< points of the dual that may pass without the gap falling by a tenth
    /// Blocks of the Hessian cost their features squared for each example and cubed to factor: for few features, and
    /// many examples for each.
    Index most_features = 1024, rows_per_feature = 4;
    Index most_memory = 4;  ///< what is kept for all examples and classes, in units of the examples themselves
};

/// A proximal point method for linear machines with few features and many examples, by Newton steps on the weights.
///
/// From a point `A` of the dual it goes to the best one nearby,
///
///     max_B  D(B) - 1/2 sum_i c_i |B_i - A_i|^2,   c_i = tau |x_i|^2,
///
/// whose own dual is smooth in the weights: with `B_i(W)` the row that is best for example i given its scores, the
/// gradient is `W - sum_i x_i B_i(W)'`, and the Hessian `1 + sum_i P_i/c_i (x) x_i x_i'`, where `P_i` projects on the
/// face of the feasible set that `B_i(W)` is in. Only examples between their limits are in it. Newton steps need a
/// handful of passes over the examples, which threads share; where the sequential method needs hundreds of loops, at
/// the end, a few dozen of such steps do. (Li, Sun & Toh 2018 solve other machines in this way.)
///
/// `W` and `B` are points of the primal and of the dual; they meet at the optimum only. Between them
/// `1/2 |W - sum_i x_i B_i'|^2` is at most their gap.
///
/// It may grow its sample: with a part of the examples, which stand for all, the weights come near for a fraction of
/// the price, and of a pass over all examples only a few are left. The band of an example, `c_i C_i`, is how far its
/// scores may be from its hinge with a coefficient between its limits. While samples grow, A is the middle of each
/// feasible set: hinges are rounded off evenly, and what that adds to the gap falls with the square of the band, which
/// may become narrower at any time.
///
/// A bias that is part of the weights is one more feature. One that is free is the same with a shift, to which each
/// point of the dual adds what that feature's weights have become: a proximal point method there too.
template <NewtonLoss Loss, class Real>
class ProximalNewton {
  public:
    /// `weight` is that of a bias that is part of the weights: 1, or 0 if there is none. If the bias is `free` it is
    /// where the method starts.
    ProximalNewton(const Loss& loss, std::span<const Index> labels, std::span<const double> cost_bounds, Index classes,
                   LinearRows<Real>& rows, double weight, bool free, const NewtonSettings& settings, const Blas& blas,
                   ThreadPool& pool, Control& control);

    /// Whether the method is for such a problem: blocks of the Hessian are small and the examples many.
    [[nodiscard]] static bool suits(const LinearRows<Real>& rows, Index classes, const NewtonSettings& settings = {});

    /// Begin with these coefficients and, if the bias is free, with this one.
    void start(const Coefficients& coefficients, std::span<const double> bias);
    /// Go on until the relative gap, as far as the precision of the scores and a bias that is still moving show it, is
    /// at most `gap`. Not converged: a stop, too many visits in all, or nothing more to gain in this way.
    Status run(double gap, Index max_visits);
    /// The same from nothing, on samples that grow: the first examples, which must be in random order. What has not
    /// been read is read when it is needed: whoever is in a hurry has an answer before.
    Status grow(double gap, Index max_visits);
    /// The numbers of examples in the samples, the last of which is all.
    [[nodiscard]] static std::vector<Index> samples(const LinearRows<Real>& rows, const NewtonSettings& settings = {});

    [[nodiscard]] Coefficients coefficients();
    [[nodiscard]] PrimalPoint point() const { return point_of(weights_, shift_); }
    /// The point of the primal with the lowest objective that was seen, on the sample of that time.
    [[nodiscard]] PrimalPoint best_point() const {
        return best_.weights.empty() ? point() : point_of(best_.weights, best_.shift);
    }
    [[nodiscard]] Index visits() const { return visits_; }

  private:
    using Vector = std::vector<double>;  // features (and the bias) x width
    /// Sums over examples are formed in so many parts, whatever the number of threads.
    static constexpr Index kParts = 16;

    /// What the examples answer to the weights, besides their faces.
    struct Answer {
        Vector weights;  ///< sum_i x_i B_i'
        double losses = 0.0, linear = 0.0;
    };
    /// One part's share of it; sums of single precision are short.
    struct Share {
        Weights<Real> recent;
        Vector weights;
        Buffer<Real> scores;  // room for a tile
        std::vector<Real> centre;
        Buffer<Real> answers, rows;
        std::vector<std::uint32_t> numbers = {};
        std::vector<Example> examples = {};
        std::vector<Real> curvatures = {};
        std::vector<std::uint64_t> faces = {};
        double losses = 0.0, linear = 0.0;
        Index pending = 0, visits = 0;
    };
    using Tile = RowTile<Real>;
    using AnswerSums = proximal_newton::AnswerSums;
    struct Hessian {
        std::vector<CurvedRow> curved;
        Vector diagonal;
    };
    struct Best {
        Vector weights, shift;
        double primal = std::numeric_limits<double>::infinity();
    };
    enum class Inner { solved, certified, slow, stopped };

    /// Go on with the first so many examples, which stand for all.
    void take_first(Index count);
    void sum_centre();
    [[nodiscard]] double band() const;
    void set_band(double band);
    [[nodiscard]] double next_band(double gap) const;
    bool narrow(double gap);
    [[nodiscard]] double smoothed() const;
    void set_middle(Share& share, Range tile) const;
    Inner solve_inner(double gap);
    /// The point of the dual that was found becomes the next to start from, or the best one on the way to it.
    double accept_dual();
    /// A free bias takes over what the weights of its feature have become.
    void move_bias();
    template <class Each>
    void for_coefficients(Share& share, Range tile, double part, Each&& each);
    [[nodiscard]] double worthy_part() const;
    [[nodiscard]] double primal_of(const Answer& now) const;
    void keep_best();
    [[nodiscard]] PrimalPoint point_of(const Vector& weights, const Vector& shift) const;
    Answer answer();
    /// B_i(W) of neighbours, with these scores and centres.
    AnswerSums respond(Share& share, Range tile, const Real* scores, const Real* centre);
    /// The same for the weights that are loaded, and the centres that there are.
    AnswerSums respond(Share& share, Range tile);
    [[nodiscard]] Answer collected() const;
    [[nodiscard]] std::vector<CurvedRow> curved_rows() const;
    /// Where Newton's step leads; false if it is no way down.
    bool find_direction();
    [[nodiscard]] Hessian hessian() const;
    void factor_blocks(const Hessian& hessian);
    void multiply(const Hessian& hessian, const Vector& v, Vector& out);
    void divide_by_blocks(Vector& v) const;
    /// Go along the direction, to where the slope is small; how far. What that is worth is known then.
    double step();
    [[nodiscard]] double promised() const;
    [[nodiscard]] double slope() const;
    double move_along(double length);
    /// Steps that are much too long are damped from then on.
    void adapt_damping(double length);
    /// What the weights that are loaded say of some examples, with the bias.
    void products(const Tile& tile, Real* out) const;
    /// With its share of the cost of those that are left out.
    [[nodiscard]] Example example(Index i) const { return {labels_[i], scale_ * cost_bounds_[i]}; }
    /// |x_i|^2, but at least the mean.
    [[nodiscard]] double norm(Index i) const { return std::max(rows_.norm(i) + weight_, least_norm_); }
    [[nodiscard]] double curvature(Index i) const { return share_ * norm(i); }
    /// For products with examples; `shifted`: a free bias is more than its feature's weights.
    void load(const Vector& weights, bool shifted);
    /// sum_t x_t by_t'
    void add(Share& share, const Tile& tile, const Real* by) const;
    void flush(Share& share) const;
    [[nodiscard]] Vector sum_of(std::span<const Share> shares) const;
    /// Call `work(share, tile)` for ranges of neighbours; a stop ends it unless it is `thorough`.
    template <class Work>
    void in_parts(Index count, bool thorough, Work&& work);
    [[nodiscard]] double gap_of(const Answer& now) const;
    /// The part of it that the inner problem has left.
    [[nodiscard]] double unsolved() const;
    [[nodiscard]] bool stopped() const { return patient_ ? control_.cancelled() : control_.stop_requested(); }
    [[nodiscard]] bool spent_all() const { return max_visits_ >= 0 && visits_ >= max_visits_; }

    const Loss& loss_;
    std::span<const Index> labels_;
    std::span<const double> cost_bounds_;
    Index classes_, size_;
    LinearRows<Real>& rows_;
    double weight_, bias_;  // bias_: the value of the feature that stands for it
    bool free_;
    NewtonSettings settings_;
    const Blas& blas_;
    ThreadPool& pool_;
    Control& control_;
    ClassBlocks<Real> blocks_;
    Weights<Real> loaded_;
    Index width_;
    std::vector<Real> loaded_bias_, loaded_shift_;
    std::vector<Share> shares_;
    Buffer<Real> centre_;  // A, examples x width, unless it is the middle
    bool middle_ = false, certified_ = false, patient_ = false, pairs_;
    int narrowed_ = 0;
    Buffer<std::uint64_t> faces_;        // of each example, the classes that curve the scores
    Vector weights_, base_, direction_;  // base_: sum_i x_i A_i'; empty: not known
    Vector shift_;                       // of each class; zero unless the bias is free
    double base_linear_ = 0.0;
    double margin_ = 0.0;                                     // how far from their hinges scores of zero are
    Vector reach_;                                            // sum_i C_i x_i^2, by feature
    Vector bearers_;                                          // how many examples it is made of, if they were alike
    double spent_ = std::numeric_limits<double>::infinity();  // work on conjugate gradients with these blocks
    double damping_ = 0.0;                                    // in units of it
    bool overshot_ = false;                                   // before: the damping stays for a step
    Answer now_;
    Best best_;
    double share_ = 0.0;  // tau
    double inner_share_ = 0.0;
    double least_norm_ = 0.0, mean_cost_ = 0.0;
    Index active_ = 0;    // examples in use, the first ones
    Index centred_ = 0;   // those that have a point of the dual
    double scale_ = 1.0;  // all examples for each of them
    int steps_ = 0;       // of the inner problem
    Index visits_ = 0, max_visits_ = -1;
};

}  // namespace polymargin

#include "solver/proximal_newton_impl.hpp"
#include "solver/proximal_newton_pass_impl.hpp"
#include "solver/proximal_newton_sample_impl.hpp"
#include "solver/proximal_newton_step_impl.hpp"
