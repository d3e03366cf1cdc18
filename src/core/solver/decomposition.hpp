#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "kernel/restricted_store.hpp"
#include "problem/multiclass.hpp"
#include "solver/accumulate.hpp"
#include "solver/example_block.hpp"
#include "solver/smallest.hpp"
#include "solver/status.hpp"
#include "solver/violations.hpp"
#include "solver/working_set.hpp"
#include "support/buffer.hpp"
#include "support/control.hpp"

namespace polymargin {

struct DecompositionSettings {
    double tolerance = 1e-3;  ///< epsilon of Hsu & Lin (21), or of its counterpart for the loss
    double gap = 0.0;  ///< stop as well when the relative duality gap is at most this; 0: never, nor with a free bias
    bool gap_counts = false;                                    ///< go on beyond the tolerance until the gap is reached
    Index max_iterations = -1;                                  ///< exact steps; -1: no limit
    double max_work = std::numeric_limits<double>::infinity();  ///< operations, about: a limit as that on steps
    Index working_set = 512;                                    ///< most examples optimised together
    Index entrants = 64;                                        ///< most examples that enter the working set in a round
    Index shrink_from = 2048;                                   ///< smaller problems are not shrunk
    /// Where the whole matrix is at hand rows cost nothing more: large working sets, quickly filled, save rounds.
    Index whole_working_set = 768, whole_entrants = 256;
    /// A block is solved to this share of the violation it came with, by at most so many steps for each example.
    double inner_share = 0.2;
    Index steps_per_example = 100;
    /// Shrinking: an example that was optimal for so many rounds may rest, the others must be at most this share of
    /// all, and they are solved to this share of the violation.
    Index rounds_without_violation = 16;
    double active_share = 0.7, shrunk_share = 0.02;
    /// Shrinking does not pay any more when the violation is at most so many times the tolerance.
    double near_tolerance = 8.0;
    /// A hard margin below this, relative to the length of the examples, is taken for none.
    double smallest_margin = 1e-4;
    BlockSettings block = {};
    const Blas* blas = nullptr;  ///< if given, blocks that steps solve slowly are solved by factorisation
};

/// How the scores depend on the bias: `s_im = sum_j (K_ij + weight) B_jm + shift_m`.
struct Bias {
    double weight = 0.0;
    std::vector<double> shift;  ///< empty: zero
};

/// Block decomposition for a joint machine (Hsu & Lin III and IV, with working sets of many examples).
///
/// In a round the examples that violate most enter the working set, the store computes their kernel rows, the block of
/// the working set is solved by exact steps on one example or two after the other, and the gradient of all examples is
/// brought up to date. Nothing in this order depends on the number of threads, which share the rows and the gradient.
///
/// *Shrinking*: examples that have been optimal at a vertex of their feasible sets for a while seldom move again. When
/// they are many, the others are solved as a problem of their own, and only what comes out of it reaches all examples.
///
/// The state stays between calls of `run`: the next one may have another bias or another tolerance.
template <MulticlassLoss Loss, class Real>
class Decomposition {
  public:
    /// `labels` and `bounds` are in the store's numbering and stay with the caller.
    Decomposition(const Loss& loss, std::span<const Index> labels, std::span<const double> cost_bounds, Index classes,
                  GramStore<Real>& store, const DecompositionSettings& settings, Control& control);

    /// Begin with these rows (as many numbers as classes for each example named) instead of zero.
    void start_from(std::span<const Index> support, std::span<const double> rows);
    void set_bias(const Bias& bias);
    /// Go on until the violation is at most `tolerance`, or something else ends it; at most `most_steps` further steps,
    /// and about `most_work` more `work`.
    Status run(double tolerance, Index most_steps = std::numeric_limits<Index>::max(),
               double most_work = std::numeric_limits<double>::infinity());

    [[nodiscard]] Index size() const { return std::ssize(labels_); }
    [[nodiscard]] Index classes() const { return classes_; }
    [[nodiscard]] Index iterations() const { return iterations_; }
    /// What all rounds took so far, in operations of a matrix product: much the same on any machine.
    [[nodiscard]] double work() const { return other_work_ + block_.work(); }
    /// How often some examples were solved for alone.
    [[nodiscard]] Index shrinkings() const { return shrinkings_; }
    [[nodiscard]] double violation() const { return violation_; }
    [[nodiscard]] ClassMajor<const double> beta() const { return beta_view(); }
    [[nodiscard]] ClassMajor<const double> gradient() const { return gradient_view(); }
    [[nodiscard]] std::span<const Index> labels() const { return labels_; }
    [[nodiscard]] Example example(Index i) const { return {labels_[i], cost_bounds_[i]}; }
    [[nodiscard]] const Bias& bias() const { return bias_; }
    /// sum_i B_im
    [[nodiscard]] std::vector<double> column_sums() const;
    [[nodiscard]] MulticlassObjectives objectives() const;
    [[nodiscard]] const Loss& loss() const { return loss_; }
    /// The example that violates most.
    [[nodiscard]] Index worst() const { return std::ranges::max_element(violations_) - violations_.begin(); }
    /// K_ij + weight; the store must have the whole matrix.
    [[nodiscard]] double kernel(Index i, Index j) const {
        return static_cast<double>(table_->row(i)[j]) + bias_.weight;
    }
    /// The whole state, to come back to.
    struct Snapshot {
        std::vector<double> gradient, beta;
        Bias bias;
    };
    [[nodiscard]] Snapshot snapshot() const;
    void restore(const Snapshot& snapshot);
    /// Kernel rows of all examples; the store must have the whole matrix.
    [[nodiscard]] std::vector<const Real*> kernel_rows() const {
        std::vector<const Real*> rows(size());
        for (Index i = 0; i < size(); ++i) rows[i] = table_->row(i);
        return rows;
    }
    /// Change rows from outside and bring the gradient up to date: `changes` has a row for each example named. False,
    /// and not everything changed, if a stop was requested and kernel rows are missing.
    bool change_rows(std::span<const Index> which, std::span<const double> changes);

  private:
    /// Columns whose gradient is updated together: the kernel values of a working set and as many columns fit L2.
    static constexpr Index kStrip = 256;

    struct Change {
        std::vector<const Real*> rows;
        std::vector<double> by;
        double sum = 0.0;

        void add(const Real* row, double amount) {
            if (amount == 0.0) return;
            rows.push_back(row);
            by.push_back(amount);
            sum += amount;
        }
    };
    /// By which kernel rows the gradient of each class changes.
    struct Changes {
        std::vector<Change> of_classes;
        Change mean;  ///< over the classes: what does not reach scores that sum to zero

        explicit Changes(Index classes) : of_classes(classes) {}
        void add(const Real* row, std::span<const double> amounts) {
            for (std::size_t m = 0; m < amounts.size(); ++m) of_classes[m].add(row, amounts[m]);
            if constexpr (kScoresSumToZero<Loss>) {
                const double total = std::accumulate(amounts.begin(), amounts.end(), 0.0);
                mean.add(row, total / static_cast<double>(amounts.size()));
            }
        }
    };
    [[nodiscard]] ClassMajor<double> gradient_view() const {
        return {const_cast<double*>(gradient_.data()), classes_, stride_};
    }
    [[nodiscard]] ClassMajor<double> beta_view() const {
        return {const_cast<double*>(beta_.data()), classes_, stride_};
    }
    void copy_row(ClassMajor<const double> from, Index i, std::span<double> row) const {
        for (Index m = 0; m < classes_; ++m) row[m] = from.at(m, i);
    }

    /// s_i, from the gradient.
    void copy_scores(Index i, std::span<double> scores) const;
    /// The gradient of the conjugate term follows the row of its example.
    void follow_conjugate(Index i, std::span<const double> change);
    [[nodiscard]] bool fetch(std::span<const Index> examples);
    void load_block();
    void load_columns(std::span<const Index> slots, std::span<const char> fresh, std::span<const Index> ordered);
    /// Bring back what the block changed; false if nothing did.
    [[nodiscard]] bool store_block();
    void update(const Changes& changes);
    void add_change(const Change& change, double shift, Index begin, std::span<double> out) const;
    void measure();
    /// Examples that may have to move soon.
    [[nodiscard]] std::vector<Index> active() const;
    [[nodiscard]] bool shrinking_pays(std::span<const Index> active, double tolerance) const;
    /// Solve for these examples alone; false if that led nowhere.
    [[nodiscard]] bool solve_active(std::span<const Index> active, double tolerance, Index most_steps,
                                    double most_work);
    /// Copy the state of some examples of a larger problem.
    void adopt(const Decomposition& from, std::span<const Index> members);
    [[nodiscard]] bool at_vertex(Index i) const;
    [[nodiscard]] bool inseparable() const;

    const Loss& loss_;
    std::span<const Index> labels_;
    std::span<const double> cost_bounds_;
    Index classes_;
    Index stride_;
    GramStore<Real>& store_;
    DecompositionSettings settings_;
    Control& control_;
    std::shared_ptr<RowTable<Real>> table_;
    WorkingSet working_;
    Bias bias_;
    Buffer<double> gradient_, beta_;  // class-major
    std::vector<double> violations_;
    std::vector<Index> last_violated_;  // the round
    Index rounds_ = 0;
    ExampleBlock<Real> block_;
    bool hard_ = false;
    bool shrinking_ = false;
    double violation_ = std::numeric_limits<double>::infinity();
    Index iterations_ = 0;
    Index shrinkings_ = 0;
    double other_work_ = 0.0;  // beside that of blocks
};

}  // namespace polymargin

#include "solver/decomposition_impl.hpp"
#include "solver/decomposition_shrinking_impl.hpp"
