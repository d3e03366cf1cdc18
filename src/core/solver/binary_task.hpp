#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernel/gram.hpp"
#include "problem/binary.hpp"
#include "solver/binary.hpp"
#include "solver/smo.hpp"
#include "solver/working_set.hpp"

namespace polymargin {

template <class Real>
using Table = std::shared_ptr<RowTable<Real>>;

/// One binary problem under way: a point of its dual, its gradient, and the working set with its dense block. Where
/// there are folds, the problem is solved in stages: with all examples, then without each fold. A path of costs has a
/// stage for each of them.
template <class Real>
class BinaryTask {
  public:
    /// `segments` are those of `segments_of`. `path` may be null: then there is one stage, with the bounds
    /// `cost_bounds`.
    BinaryTask(const BinaryProblem& problem, std::span<const Range> segments, std::span<const double> cost_bounds,
               const CostPath* path, const BinarySettings& settings, Index capacity, SmoBlock<Real> block,
               const Control& control);

    /// `open(rows, columns)` gives the table of two segments.
    template <class Open>
    void open_tables(Open&& open) {
        for (const Range rows : segments_) {
            tables_.emplace_back();
            for (const Range columns : segments_) tables_.back().push_back(open(rows, columns));
        }
    }
    /// Free the rows that no other problem reads.
    void close_tables(GramStore<Real>& store);
    /// Begin with a feasible point instead of zero.
    void start_from(const BinaryStart& start);
    /// Begin at a feasible point whose gradient is known, which took so many steps.
    void begin_at(BinaryState state, Index steps);
    /// Begin a path of costs with a point that is close to the solution, if there is one.
    void start_evenly();

    [[nodiscard]] bool finished() const { return finished_; }
    [[nodiscard]] double violation_size() const { return violation_; }
    [[nodiscard]] Index iterations() const { return past_iterations_ + iterations_; }

    /// Choose the next working set, go on to the next stage, or finish.
    void choose();
    /// Call `request(table, rows)` for the rows of the working set.
    void request_rows(const std::function<void(const Table<Real>&, std::span<const Index>)>& request) const;
    /// Whether the rows of the working set are there.
    [[nodiscard]] bool has_rows() const;
    /// Solve the working set and update the gradient; the rows must be there.
    void advance();

    /// End here. Folds that are not solved keep the values of the machine with all examples.
    void stop(Status reason);
    /// One, or one for each cost.
    std::vector<BinaryResult> take_results() { return std::move(results_); }
    SmoBlock<Real> take_block() { return std::move(block_); }

  private:
    /// Where a kernel row has the value of an example: in the table of a segment, at this place.
    struct Column {
        std::size_t segment;
        Index place;
    };

    [[nodiscard]] Index local_of(Index global) const {
        const auto s = std::ranges::find_if(segments_, [&](Range r) { return r.contains(global); });
        if (s == segments_.end())
            throw std::invalid_argument("a start names an example that the problem does not have");
        return offsets_[s - segments_.begin()] + global - s->begin;
    }
    [[nodiscard]] std::size_t segment_of(Index local) const {
        std::size_t s = offsets_.size() - 1;
        while (offsets_[s] > local) --s;
        return s;
    }
    [[nodiscard]] Index global_of(Index local) const {
        const std::size_t s = segment_of(local);
        return segments_[s].begin + local - offsets_[s];
    }
    [[nodiscard]] const Run& run_of(Index local) const {
        return *std::prev(std::ranges::upper_bound(runs_, local, {}, &Run::local));
    }

    [[nodiscard]] bool is_free(Index local) const {
        const Run& run = run_of(local);
        const double size = std::abs(state_.beta[local]);
        return size > 0.0 && size < cost_bounds_[run.global + local - run.local];
    }
    /// Whether the working set is the problem.
    [[nodiscard]] bool has_all() const {
        return problem_.size() <= working_.capacity() && (in_one_piece_ || problem_.size() <= settings_.whole_set);
    }
    [[nodiscard]] double ridge_of(Index local) const { return problem_.squared ? ridge_[local] : 0.0; }
    /// f without the ridge, which is not part of scores.
    [[nodiscard]] double plain_gradient(Index local) const {
        return state_.f[local] - ridge_of(local) * state_.beta[local];
    }
    [[nodiscard]] bool outgrows_working_set() const;
    void take_all();
    [[nodiscard]] std::size_t pending_batch() const {
        return std::min(pending_.size(), static_cast<std::size_t>(working_.capacity()));
    }

    [[nodiscard]] std::optional<Status> reason_to_end();
    [[nodiscard]] Objectives worth(double intercept) const;
    [[nodiscard]] double gap() const;
    [[nodiscard]] bool meets_rule() const;
    [[nodiscard]] bool closes_gap();
    [[nodiscard]] Index polishing_solves() const;
    [[nodiscard]] bool demands_more();
    void undo_closing();
    void set_costs(std::span<const double> costs);
    void begin_stage(std::span<const double> cost_bounds);
    void begin_anew();
    [[nodiscard]] bool raise_costs();
    void scale_to(std::span<const double> cost_bounds, double growth);
    [[nodiscard]] bool is_good_start(std::span<const double> beta, std::span<const Index> taking_part) const;
    void keep_for_all_costs(Status status);
    void end_stage(Status reason);
    void keep_solution(Status status);
    void keep_held_out(Status status);
    void note_unsolved(Status status);
    [[nodiscard]] bool hold_out_next_fold();
    [[nodiscard]] bool inseparable() const;
    [[nodiscard]] Index entrants() const;
    [[nodiscard]] std::vector<Index> spread(Index count) const;
    [[nodiscard]] std::vector<Index> worst(const Violation& v, Index count) const;
    void polish_solution(const Blas& blas, Index max_free, Index max_solves);
    void load_block();
    [[nodiscard]] const Real* fetch_row(Index t);
    void load_variable(Index slot, Index local, const Run& run);
    void load_diagonal();
    void load_ridge();
    void load_columns(std::span<const Index> slots);
    void add_to_gradient(std::span<const Index> locals, std::span<const double> change);

    const BinaryProblem& problem_;
    std::span<const Range> segments_;
    std::span<const double> costs_, cost_bounds_;  // C_i; the limits of the coefficients, which are the same for hinges
    std::vector<double> limits_, ridge_;           // of squared hinges, in the engine's and the problem's numbering
    const CostPath* path_;
    const BinarySettings& settings_;
    const Control& control_;
    std::vector<Run> runs_;
    double tolerance_ = 0.0;
    Index iteration_limit_ = -1;  // -1: none
    SmoBlock<Real> block_;
    std::vector<Index> offsets_;  // of the segments, in the problem's numbering
    std::vector<std::vector<Table<Real>>> tables_;
    BinaryState state_;
    WorkingSet working_;
    std::vector<Column> columns_;                    // of the members of the working set
    std::vector<std::pair<Index, double>> pending_;  // coefficients of a warm start not yet in the gradient
    Index fold_ = -1;                                // the one that is held out; -1: none
    Index cost_ = 0;                                 // of the path
    double violation_ = std::numeric_limits<double>::infinity();
    Index iterations_ = 0;  // of this stage
    Index past_iterations_ = 0;
    bool refining_ = false;      // is tol met, and the answer made better still for polishing?
    bool closing_ = false;       // is tol met, and the gap to be closed?
    BinaryState met_;            // the state that met tol, while the gap is closed
    bool hard_ = false;          // is a bound infinite?
    bool in_one_piece_ = false;  // has the working set become the problem?
    bool fresh_ = true;
    bool finished_ = false;
    std::vector<BinaryResult> results_;
};

}  // namespace polymargin
