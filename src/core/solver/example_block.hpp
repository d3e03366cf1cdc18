#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "solver/block_settings.hpp"
#include "solver/face.hpp"
#include "support/blas.hpp"
#include "support/buffer.hpp"
#include "support/control.hpp"
#include "support/least_squares.hpp"

namespace polymargin {

/// The dense problem of some examples of an joint machine: their kernel, gradients and rows of coefficients.
///
/// An example can be improved when some class may give to another whose gradient is lower. With `highest` the largest
/// gradient among its classes that may fall and `lowest` the smallest among those that may grow, `highest - lowest`
/// says how much is to be gained. Where coefficients move alone, each has a partner that is free and has gradient zero.
/// Of each example a bound of it is kept from above: a step changes few classes, so only their gradients are looked at,
/// and the largest bound is made exact when it is its example's turn.
///
/// Where the kernel of two examples is much the same, steps of one alone undo what those of the other did. So a step
/// may be an *exchange*: with `d = e_a - e_b`, row s moves by `l d` and row t by `-l d`, the length being exact,
///
///     l = ((g_sb - g_sa) + (g_ta - g_tb)) / (2 (K_ss + K_tt - 2 K_st)),
///
/// and t the example that gains most by it, as the second variable of a pair is chosen in SMO.
template <class Real>
class ExampleBlock {
  public:
    ExampleBlock(Index capacity, Index classes, const BlockSettings& settings = {});

    [[nodiscard]] Real* kernel(Index s) { return kernel_.data() + s * stride_; }
    [[nodiscard]] const Real* kernel(Index s) const { return kernel_.data() + s * stride_; }
    /// The coefficients of the example in slot s.
    [[nodiscard]] std::span<double> row(Index s) {
        return {rows_.data() + s * classes_, static_cast<std::size_t>(classes_)};
    }
    /// `weight` is added to every kernel value: the part of a bias. It is kept apart, because adding it to a float
    /// would cost the last digits of the kernel.
    void resize(Index size, double weight);
    /// What all solutions took so far, in operations of a matrix product.
    [[nodiscard]] double work() const { return work_; }
    /// Fill a slot: the example, its gradients by `gradient(m)`, its row already being there.
    template <MulticlassLoss Loss, class Gradient>
    void load(const Loss& loss, Index s, const Example& example, Gradient&& gradient) {
        examples_[s] = example;
        for (Index m = 0; m < classes_; ++m) {
            const double g = start_.data()[m * stride_ + s] = gradient(m);
            gradient_.data()[m * stride_ + s] = static_cast<Real>(g);
            start_rows_[s * classes_ + m] = rows_[s * classes_ + m];
        }
        set_limits(loss, s);
    }

    /// Solve until no example promises more than `tolerance`, or `limit` steps were taken; their number, or -1 if a
    /// step has no end. Steps on one example after the other are slow when examples are much alike: when they take
    /// long, the linear conditions of all free coefficients are solved in between. It ends early when the `work` comes
    /// to so much.
    template <MulticlassLoss Loss>
    Index solve(const Loss& loss, double tolerance, Index limit, const Blas* blas, const Control* control = nullptr,
                double last_work = std::numeric_limits<double>::infinity()) {
        partner_ = Loss::kRowsSumToZero ? std::numeric_limits<Real>::max() : Real(0);
        means_count_ = !kScoresSumToZero<Loss>;
        stepping_ = beside_ = jumping_ = {};
        const Index steps = solve_by_both(loss, tolerance, limit, blas, control, last_work);
        judge_jumps();
        return steps;
    }

  private:
    /// Class `gains` of an example grows by what `loses` gives, and `with` does the opposite.
    struct Exchange {
        Index with = -1, gains = -1, loses = -1;
        double slope = 0.0, curvature = 0.0;  ///< of the objective along it, which falls
        double alone = 0.0;                   ///< what the example gains at most without the other
    };

    /// What a part of the work of a solution brought.
    struct Effort {
        double gained = 0.0, work = 0.0;

        void operator+=(const Effort& more) {
            gained += more.gained;
            work += more.work;
        }
    };
    /// Rows and their gradient.
    struct Point {
        std::vector<double> rows;
        std::vector<Real> gradient;
    };

    static constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

    [[nodiscard]] bool unbounded() const {
        return std::any_of(examples_.begin(), examples_.begin() + size_,
                           [](const Example& example) { return std::isinf(example.cost_bound); });
    }

    [[nodiscard]] Point point() const { return {rows_, {gradient_.data(), gradient_.data() + classes_ * stride_}}; }
    /// What was done since then.
    [[nodiscard]] Effort effort_since(const Point& before, double work_before) const {
        return {gain(before), work_ - work_before};
    }
    /// Jumps may have more or less of the work of the next block, by what they brought in this one.
    void judge_jumps() {
        if (jumping_.work == 0.0) {
            jump_share_ = std::min(settings_.jump_share, settings_.more_jumps * jump_share_);
        } else if (jumping_.gained * beside_.work < settings_.jump_worth * beside_.gained * jumping_.work) {
            jump_share_ *= settings_.fewer_jumps;
        } else {
            jump_share_ = settings_.jump_share;
        }
    }

    template <MulticlassLoss Loss>
    Index solve_by_both(const Loss& loss, double tolerance, Index limit, const Blas* blas, const Control* control,
                        double last_work) {
        // Where nothing bounds a jump, those who call have to look in between whether there is an end at all.
        const Index first = settings_.steps_before_jump * size_, stretch = unbounded() ? first : size_;
        Index steps = 0;
        const auto ended = [&] { return (control != nullptr && control->stop_requested()) || work_ >= last_work; };
        while (true) {
            const Index most = std::min(limit - steps, stretch);
            const Point before = point();
            const double work_before = work_;
            const Index taken = take_steps(loss, tolerance, most);
            if (taken < 0) return -1;
            steps += taken;
            if (taken < most || steps >= limit || work_ >= last_work) return steps;
            const Effort latest = effort_since(before, work_before);
            stepping_ += latest;
            if (ended()) return steps;
            if (steps < first) continue;
            const double jumped = jumping_.work;
            while (blas != nullptr && !ended()) {
                const Face face = face_to_solve(loss, steps > settings_.slow_steps * size_);
                const double cost = jumping_.work + jump_cost(std::ssize(face));
                if (face.empty() || cost > jump_share_ * stepping_.work) break;
                // One that a bound cuts short leaves that coefficient there; the next one is without it.
                const double share = jump_and_count(loss, face, *blas);
                if (share < 0.0) blas = nullptr;  // once it fails, steps alone must do
                if (!(share < 1.0)) break;
            }
            if (jumping_.work > jumped) beside_ += latest;
            if (ended()) return steps;
        }
    }

    template <MulticlassLoss Loss>
    double jump_and_count(const Loss& loss, const Face& face, const Blas& blas) {
        const Point before = point();
        const double work_before = work_;
        const double share = jump(loss, face, blas);
        jumping_ += effort_since(before, work_before);
        return share;
    }

    /// Exact steps on one example after the other, the one that promises most first, or on two.
    template <MulticlassLoss Loss>
    Index take_steps(const Loss& loss, double tolerance, Index limit) {
        measure_all();
        std::vector<double> gradient(classes_), row(classes_);
        for (Index steps = 0; steps < limit; ++steps) {
            const Index s = next(tolerance);
            if (s < 0) return steps;
            if constexpr (Loss::kRowsSumToZero && !Loss::kConjugate) {
                if (exchange(loss, s)) continue;
            }
            const auto before = this->row(s);
            std::copy(before.begin(), before.end(), row.begin());
            for (Index m = 0; m < classes_; ++m) gradient[m] = static_cast<double>(gradient_.data()[m * stride_ + s]);
            if (!loss.step(gradient, static_cast<double>(kernel(s)[s]) + weight_, examples_[s], row)) return -1;
            for (Index m = 0; m < classes_; ++m) row[m] -= std::exchange(before[m], row[m]);
            set_limits(loss, s);
            if (!means_count_) take_mean_away(row);
            for (Index m = 0; m < classes_; ++m) {
                if (row[m] != 0.0) add(s, m, static_cast<Real>(row[m]));
            }
            if constexpr (kSharedLimit<Loss>) set_limits(loss, s);
            for_conjugate_gradient(loss, row, examples_[s], [&](Index m, double q) { own_gradient(m, s) += q; });
            measure(s);
            mark_optimal(s);
        }
        return limit;
    }

    /// A step along what one class of an example gives to another while an example like it does the opposite: true if
    /// it promises more than a step of the example alone.
    template <MulticlassLoss Loss>
    bool exchange(const Loss& loss, Index s) {
        // Equal examples would exchange without end: steps of one find out that there is no hard margin.
        if (std::isinf(examples_[s].cost_bound)) return false;
        const Exchange best = best_exchange(s);
        if (best.with < 0) return false;
        double length = best.slope / best.curvature;
        const auto limit = [&](Index of, double by) {
            change_[best.gains] = by;
            change_[best.loses] = -by;
            length = std::min(length, loss.max_step(row(of), change_, examples_[of]));
        };
        limit(s, 1.0);
        limit(best.with, -1.0);
        change_[best.gains] = change_[best.loses] = 0.0;
        if (!(length * (best.slope - length * best.curvature / 2) > best.alone)) return false;
        const auto move = [&](Index of, double by) {
            row(of)[best.gains] += by;
            row(of)[best.loses] -= by;
            loss.make_feasible(examples_[of], row(of));
            set_limits(loss, of);
        };
        move(s, length);
        move(best.with, -length);
        add_difference(s, best.with, best.gains, static_cast<Real>(length));
        add_difference(s, best.with, best.loses, static_cast<Real>(-length));
        measure(s);
        measure(best.with);
        return true;
    }

    [[nodiscard]] double jump_cost(Index free) const {
        return static_cast<double>(free * free) * (static_cast<double>(free) / 3.0 + settings_.entry_cost);
    }

    /// Go to the optimum of the face that the rows are in, or as far as the feasible sets allow: what steps on one
    /// example after the other do slowly. The share of the way that it went, -1 if it is not possible.
    template <MulticlassLoss Loss>
    double jump(const Loss& loss, const Face& face, const Blas& blas) {
        const Index f = std::ssize(face);
        work_ += jump_cost(f);
        const auto kernel_of = [this](Index i, Index j) { return static_cast<double>(kernel(i)[j]) + weight_; };
        FaceSystem system(face, f, kernel_of,
                          [this](Index m, Index s) { return static_cast<double>(gradient_.data()[m * stride_ + s]); });
        system.template take_means_away<Loss>(face, f, classes_, kernel_of);
        system.add_conjugate(face, f, loss, classes_, [this](Index s) { return examples_[s]; });
        double largest = 0.0;
        for (Index a = 0; a < f; ++a) largest = std::max(largest, system.matrix[a * f + a]);
        const double ridge = largest * static_cast<double>(f) * std::numeric_limits<Real>::epsilon();
        for (Index a = 0; a < f; ++a) system.matrix[a * f + a] += ridge;
        const auto right = system.right;
        const auto solution = solve_definite(blas, std::move(system.matrix), std::move(system.right));
        if (solution.empty()) return -1.0;
        const double descent = std::inner_product(solution.begin(), solution.end(), right.begin(), 0.0);
        const auto changes = row_changes(face, solution, classes_);
        double share = 1.0;
        for (const auto& [s, change] : changes) share = std::min(share, loss.max_step(row(s), change, examples_[s]));
        // Where rows meet their bounds, going on with the others is often better than that all of them stop.
        const Point here = point();
        for (double length = 1.0; length > std::max(share, settings_.shortest); length *= settings_.shorter) {
            go(loss, changes, length);
            if (gain(here) > (share - share * share / 2) * descent) return share;
            rows_ = here.rows;
        }
        go(loss, changes, share);
        return share;
    }

    /// The face that the rows are in. If it is too large to be worth it, nothing or, when it takes long, the part that
    /// is farthest from its optimum.
    template <MulticlassLoss Loss>
    [[nodiscard]] Face face_to_solve(const Loss& loss, bool in_part) {
        Face face;
        for (Index s = 0; s < size_; ++s) {
            for (const Direction& d : loss.directions(row(s), examples_[s])) face.push_back({s, d});
        }
        if (std::ssize(face) <= settings_.most_free) return face;
        if (!in_part) return {};
        const auto slope = [this](const FreeDirection& d) {
            const auto at = [&](Index m) { return gradient_.data()[m * stride_ + d.example]; };
            return std::abs(static_cast<Real>(d.direction.slope(at)));
        };
        std::ranges::stable_sort(face, std::ranges::greater{}, slope);
        face.resize(settings_.most_free);
        return face;
    }

    /// Add the changes, times `length`, to the rows and bring each one back into its feasible set.
    template <MulticlassLoss Loss>
    void go(const Loss& loss, const std::map<Index, std::vector<double>>& changes, double length) {
        for (const auto& [s, change] : changes) {
            for (Index m = 0; m < classes_; ++m) row(s)[m] += length * change[m];
            loss.make_feasible(examples_[s], row(s));
            set_limits(loss, s);
        }
        refresh();
        if constexpr (kSharedLimit<Loss>) {
            for (const auto& [s, change] : changes) set_limits(loss, s);
        }
        if constexpr (Loss::kConjugate) {
            std::vector<double> change(classes_);
            for (Index s = 0; s < size_; ++s) {
                for (Index m = 0; m < classes_; ++m) change[m] = row(s)[m] - start_rows_[s * classes_ + m];
                for_conjugate_gradient(loss, change, examples_[s], [&](Index m, double q) { own_gradient(m, s) += q; });
            }
        }
    }
    /// Of one example, to which its conjugate term adds.
    [[nodiscard]] Real& own_gradient(Index m, Index s) { return gradient_.data()[m * stride_ + s]; }

    /// By how much the objective is less than at this point: exact, as it is quadratic.
    [[nodiscard]] double gain(const Point& before) const {
        double sum = 0.0;
        for (Index s = 0; s < size_; ++s) {
            for (Index m = 0; m < classes_; ++m) {
                const Index at = m * stride_ + s;
                const double both =
                    static_cast<double>(before.gradient[at]) + static_cast<double>(gradient_.data()[at]);
                sum -= both * (rows_[s * classes_ + m] - before.rows[s * classes_ + m]);
            }
        }
        return sum / 2;
    }

    template <MulticlassLoss Loss>
    void set_limits(const Loss& loss, Index s) {
        const Example& example = examples_[s];
        const double cost = shared_cost(loss, s);
        for (Index m = 0; m < classes_; ++m) {
            const bool own = m == example.label;
            const double b = rows_[s * classes_ + m];
            const auto gradient = static_cast<Real>(own ? cost : -cost);
            grow_.data()[m * stride_ + s] = loss.may_grow(b, own, example.cost_bound) ? gradient : kInfinity;
            fall_.data()[m * stride_ + s] = loss.may_fall(b, own, example.cost_bound) ? gradient : -kInfinity;
        }
    }
    /// What a limit that the coefficients of a row share adds to the gradient of each: as it was when this was called,
    /// which is no less than it promises later.
    template <MulticlassLoss Loss>
    [[nodiscard]] double shared_cost(const Loss& loss, Index s) {
        if constexpr (kSharedLimit<Loss>) {
            std::vector<double> gradient(classes_);
            for (Index m = 0; m < classes_; ++m) gradient[m] = static_cast<double>(gradient_.data()[m * stride_ + s]);
            return loss.multiplier(gradient, row(s), examples_[s]);
        } else {
            return 0.0;
        }
    }
    /// The size, padded to whole vectors: what the passes go over.
    [[nodiscard]] Index width() const;
    /// The example to step next, -1 if none promises more than `tolerance`.
    [[nodiscard]] Index next(double tolerance);
    void measure_all();
    /// Make the bound of one example exact.
    void measure(Index s);
    /// After its step an example is optimal, whatever rounding says: its turn comes when others have moved.
    void mark_optimal(Index s) { lowest_.data()[s] = std::max(lowest_.data()[s], highest_.data()[s]); }
    void add(Index s, Index m, Real by);
    /// As `add` of the kernel of s, less that of t.
    void add_difference(Index s, Index t, Index m, Real by);
    /// The best one for s; with nobody if a step of s alone promises more.
    [[nodiscard]] Exchange best_exchange(Index s);
    /// Compute the gradients anew, in double, from those that were loaded.
    void refresh();

    Index classes_;
    BlockSettings settings_;
    Index stride_;
    Index size_ = 0;
    double weight_ = 0.0;
    double work_ = 0.0;
    double jump_share_ = settings_.jump_share;         // of the work of steps, at present
    Effort stepping_, beside_, jumping_;               // in the present solution; of the steps, those before jumps
    bool means_count_ = true;                          // not where the scores of an example sum to zero
    Real partner_ = std::numeric_limits<Real>::max();  // extremes start at -partner_ and partner_
    Buffer<Real> kernel_;
    /// Class-major; where the coefficient may grow (fall) 0, or what a shared limit costs it, else +inf (-inf).
    Buffer<Real> gradient_, grow_, fall_;
    Buffer<Real> highest_, lowest_;
    Buffer<Real> diagonal_;       // of the kernel
    std::vector<double> change_;  // of a row: zeros in between
    std::vector<double> rows_;    // example-major
    Buffer<double> start_;        // gradients and rows as they were loaded
    std::vector<double> start_rows_;
    std::vector<Example> examples_;
};

}  // namespace polymargin
