#include "solver/shared_start.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "solver/kernel_product.hpp"
#include "support/dot.hpp"

namespace polymargin {
namespace {

/// One problem under way. Its direction is to be multiplied by the kernel before it can advance.
class Column {
  public:
    Column(const BinaryProblem& problem, std::span<const double> cost_bounds, const Goal& goal,
           const SharedStartSettings& settings)
        : runs_(runs_of(problem)),
          cost_bounds_(cost_bounds),
          wanted_(goal),
          settings_(settings),
          lower_(cost_bounds.size(), 0.0),
          upper_(cost_bounds.size(), 0.0),
          on_face_(cost_bounds.size(), 0),
          residual_(cost_bounds.size(), 0.0),
          direction_(cost_bounds.size(), 0.0) {
        for (const Run& run : runs_) {
            for (Index i = 0; i < run.size; ++i) {
                const double bound = cost_bounds[run.global + i];
                (run.sign > 0 ? upper_ : lower_)[run.local + i] = run.sign * bound;
            }
        }
        state_.beta.resize(cost_bounds.size());
        state_.f.resize(cost_bounds.size());
    }

    /// Begin at the best multiple of the even point. `scores` are those of the point itself, whose two sides have
    /// coefficients that sum to one.
    void begin(std::span<const double> scores, double positive, double negative) {
        double linear = 0.0, square = 0.0, scale = std::numeric_limits<double>::infinity();
        for (const Run& run : runs_) {
            const double b = run.sign > 0 ? positive : negative;
            for (Index t = run.local; t < run.local + run.size; ++t) {
                linear += run.sign * b;
                square += b * scores[t];
                scale = std::min(scale, (upper_[t] - lower_[t]) / std::abs(b));
            }
        }
        if (square > 0.0) scale = std::min(scale, linear / square);
        for (const Run& run : runs_) {
            for (Index t = run.local; t < run.local + run.size; ++t) {
                const double b = scale * (run.sign > 0 ? positive : negative);
                state_.beta[t] = std::clamp(b, lower_[t], upper_[t]);
                state_.f[t] = scale * scores[t] - run.sign;
            }
        }
        choose_face();
    }

    [[nodiscard]] bool ended() const { return ended_; }
    [[nodiscard]] std::span<const double> direction() const { return direction_; }

    /// Take the step, given the product of the kernel with the direction.
    void advance(const double* product) {
        ++products_;
        if (corrects_) {
            for (Index t = 0; t < size(); ++t) state_.f[t] += product[t];
            corrects_ = false;
            return look(true);
        }
        const double curvature = dot_in_lanes(direction_.data(), product, size());
        if (!(curvature > 0.0)) return end();
        const double length = square_ / curvature;
        for (Index t = 0; t < size(); ++t) {
            state_.beta[t] += length * direction_[t];
            state_.f[t] += length * product[t];
        }
        const double before = find_residual();
        if (products_ == 1 + settings_.trial && square_ > settings_.progress * settings_.progress * first_square_) {
            return end();
        }
        if (square_ <= next_look_) return look(false, before);
        turn(square_ / before);
    }

    [[nodiscard]] SharedPoint take() {
        if (!is_feasible() || corrects_ || !(violation(runs_, state_, cost_bounds_).size() <= settings_.handover)) {
            return {};
        }
        return {std::move(state_), products_};
    }

  private:
    [[nodiscard]] Index size() const { return std::ssize(direction_); }
    void end() { ended_ = true; }

    [[nodiscard]] bool is_feasible() const {
        for (Index t = 0; t < size(); ++t) {
            if (state_.beta[t] < lower_[t] || state_.beta[t] > upper_[t]) return false;
        }
        return true;
    }

    /// The residual on the face; the square of the last one.
    double find_residual() {
        double sum = 0.0;
        Index count = 0;
        for (Index t = 0; t < size(); ++t) {
            sum += on_face_[t] ? state_.f[t] : 0.0;
            count += on_face_[t];
        }
        const double mean = sum / static_cast<double>(std::max<Index>(1, count)), before = square_;
        for (Index t = 0; t < size(); ++t) residual_[t] = on_face_[t] ? mean - state_.f[t] : 0.0;
        square_ = dot_in_lanes(residual_.data(), residual_.data(), size());
        return before;
    }

    void turn(double share) {
        for (Index t = 0; t < size(); ++t) direction_[t] = residual_[t] + share * direction_[t];
    }

    /// Look at the bounds, and whether this is the end.
    void look(bool corrected, double before = 0.0) {
        if (!is_feasible()) return project();
        if (!(violation(runs_, state_, cost_bounds_).size() > wanted_.violation) &&
            objectives(runs_, state_, cost_bounds_, intercept(runs_, state_, cost_bounds_)).gap() <= wanted_.gap) {
            return end();
        }
        const bool same = !choose_members();
        if (corrected || !same) return begin_face();
        next_look_ = settings_.look * settings_.look * square_;
        turn(square_ / before);
    }

    void choose_face() {
        choose_members();
        begin_face();
        first_square_ = square_;
    }

    void begin_face() {
        find_residual();
        next_look_ = settings_.look * settings_.look * square_;
        std::ranges::copy(residual_, direction_.begin());
        if (!(square_ > 0.0)) end();
    }

    /// The free variables, and those that want to leave their bounds; whether they are others than before.
    bool choose_members() {
        const double level = -intercept(runs_, state_, cost_bounds_);
        bool changed = false;
        for (Index t = 0; t < size(); ++t) {
            const double b = state_.beta[t], f = state_.f[t];
            const bool may_grow = b<upper_[t], may_fall = b> lower_[t];
            const char now = (may_grow && may_fall) || (may_grow && f < level) || (may_fall && f > level);
            changed = changed || now != on_face_[t];
            on_face_[t] = now;
        }
        return changed;
    }

    /// The nearest point of the box whose sum is zero; the way there is the direction.
    void project() {
        double least = std::numeric_limits<double>::infinity(), most = -least;
        for (Index t = 0; t < size(); ++t) {
            least = std::min(least, state_.beta[t] - upper_[t]);
            most = std::max(most, state_.beta[t] - lower_[t]);
        }
        const auto at = [&](Index t, double shift) {
            return on_face_[t] ? std::clamp(state_.beta[t] - shift, lower_[t], upper_[t]) : state_.beta[t];
        };
        for (int halving = 0; halving < 100 && least < most; ++halving) {
            const double middle = (least + most) / 2;
            double sum = 0.0;
            for (Index t = 0; t < size(); ++t) sum += at(t, middle);
            (sum > 0.0 ? least : most) = middle;
            if (middle == least && middle == most) break;
        }
        for (Index t = 0; t < size(); ++t) {
            const double there = at(t, least);
            direction_[t] = there - state_.beta[t];
            state_.beta[t] = there;
        }
        corrects_ = true;
        if (++projections_ > settings_.most_projections) end();
    }

    std::vector<Run> runs_;
    std::span<const double> cost_bounds_;
    Goal wanted_;
    const SharedStartSettings& settings_;
    BinaryState state_;
    std::vector<double> lower_, upper_;
    std::vector<char> on_face_;
    std::vector<double> residual_, direction_;
    double square_ = 0.0, first_square_ = 0.0, next_look_ = 0.0;  // of the residual
    bool corrects_ = false, ended_ = false;
    Index products_ = 0, projections_ = 0;
};

/// The even points of all problems, and the scores of an example at each of them.
class EvenPoints {
  public:
    explicit EvenPoints(std::span<const BinaryProblem> problems) : problems_(problems) {
        for (const BinaryProblem& problem : problems) {
            double sides[2] = {};
            for (const SignedRange& r : problem.ranges) {
                cuts_.insert(cuts_.end(), {r.begin, r.end});
                sides[r.sign > 0] += static_cast<double>(r.end - r.begin);
            }
            positive_.push_back(1.0 / sides[1]);
            negative_.push_back(-1.0 / sides[0]);
        }
        std::ranges::sort(cuts_);
        cuts_.erase(std::ranges::unique(cuts_).begin(), cuts_.end());
    }

    [[nodiscard]] double positive(Index problem) const { return positive_[problem]; }
    [[nodiscard]] double negative(Index problem) const { return negative_[problem]; }

    /// The score at every point, from the example's row of the kernel.
    template <class Real>
    void scores(const Real* row, std::span<double> out) const {
        std::vector<double> sums(cuts_.size(), 0.0);  // up to each cut
        for (std::size_t s = 1; s < cuts_.size(); ++s) {
            sums[s] = sums[s - 1] + sum_of(row + cuts_[s - 1], cuts_[s] - cuts_[s - 1]);
        }
        const auto up_to = [&](Index i) { return sums[std::ranges::lower_bound(cuts_, i) - cuts_.begin()]; };
        for (std::size_t p = 0; p < problems_.size(); ++p) {
            out[p] = 0.0;
            for (const SignedRange& r : problems_[p].ranges) {
                out[p] += (r.sign > 0 ? positive_ : negative_)[p] * (up_to(r.end) - up_to(r.begin));
            }
        }
    }
    /// What the example gives itself of it.
    [[nodiscard]] double own(Index problem, Index example, double diagonal) const {
        for (const SignedRange& r : problems_[problem].ranges) {
            if (r.range().contains(example)) return (r.sign > 0 ? positive_ : negative_)[problem] * diagonal;
        }
        return 0.0;
    }

  private:
    template <class Real>
    static double sum_of(const Real* values, Index count) {
        constexpr Index lanes = 16;
        double sums[lanes] = {};
        Index i = 0;
        for (; i + lanes <= count; i += lanes) {
            for (Index l = 0; l < lanes; ++l) sums[l] += static_cast<double>(values[i + l]);
        }
        for (; i < count; ++i) sums[0] += static_cast<double>(values[i]);
        return std::accumulate(sums, sums + lanes, 0.0);
    }

    std::span<const BinaryProblem> problems_;
    std::vector<Index> cuts_;
    std::vector<double> positive_, negative_;
};

/// Whether the scores of some examples at the even points are mostly their own doing.
template <class Real>
bool is_narrow(const EvenPoints& points, Index problems, const RowTable<Real>& table,
               const SharedStartSettings& settings) {
    const Index n = table.rows().size(), count = std::min(settings.examples, n);
    double own = 0.0, others = 0.0;
    std::vector<double> scores(problems);
    for (Index s = 0; s < count; ++s) {
        const Index t = s * n / count;
        points.scores(table.row(t), scores);
        for (Index p = 0; p < problems; ++p) {
            const double alone = points.own(p, t, static_cast<double>(table.row(t)[t]));
            own += std::abs(alone);
            others += std::abs(scores[p] - alone);
        }
    }
    return others <= settings.share_of_others * own;
}

/// All problems at the best multiples of their even points.
template <class Real>
std::vector<std::unique_ptr<Column>> begin_at_even_points(std::span<const BinaryProblem> problems,
                                                          std::span<const double> cost_bounds, const EvenPoints& points,
                                                          const RowTable<Real>& table, const Goal& goal,
                                                          const SharedStartSettings& settings, ThreadPool& pool) {
    const Index n = table.rows().size(), k = std::ssize(problems);
    std::vector<std::vector<double>> scores(k, std::vector<double>(n));
    constexpr Index part = 64;
    pool.for_each((n + part - 1) / part, [&](Index strip) {
        std::vector<double> of_example(k);
        for (Index t = strip * part; t < std::min(n, (strip + 1) * part); ++t) {
            points.scores(table.row(t), of_example);
            for (Index p = 0; p < k; ++p) scores[p][t] = of_example[p];
        }
    });
    std::vector<std::unique_ptr<Column>> columns(k);
    pool.for_each(k, [&](Index p) {
        columns[p] = std::make_unique<Column>(problems[p], cost_bounds, goal, settings);
        columns[p]->begin(scores[p], points.positive(p), points.negative(p));
    });
    return columns;
}

/// Advance all of them, a product at a time, until they have ended.
template <class Real>
void advance_together(std::span<const std::unique_ptr<Column>> columns, const KernelProduct<Real>& kernel,
                      Index most_products, ThreadPool& pool, Control& control) {
    const Index n = kernel.size();
    Buffer<double> directions(std::ssize(columns) * n), products(std::ssize(columns) * n);
    Index taken = 0;
    for (Index turn = 0; turn < most_products; ++turn) {
        std::vector<Column*> active;
        for (const auto& column : columns) {
            if (!column->ended()) active.push_back(column.get());
        }
        const Index count = std::ssize(active);
        for (Index a = 0; a < count; ++a) std::ranges::copy(active[a]->direction(), directions.data() + a * n);
        if (count > 0) kernel.apply({directions.data(), count, n}, {products.data(), count, n});
        if (count == 0 || control.stop_requested()) return;
        pool.for_each(count, [&](Index a) { active[a]->advance(products.data() + a * n); });
        taken += count;
        control.report({.done = 0, .total = std::ssize(columns), .iterations = taken});
    }
}

}  // namespace

template <class Real>
std::vector<SharedPoint> shared_start(std::span<const BinaryProblem> problems, std::span<const double> cost_bounds,
                                      GramStore<Real>& store, const Goal& goal, const SharedStartSettings& settings,
                                      Control& control) {
    const Index n = store.size();
    const auto table = store.shared({0, n});
    const EvenPoints points(problems);
    if (!is_narrow(points, std::ssize(problems), *table, settings)) return {};
    const auto columns = begin_at_even_points(problems, cost_bounds, points, *table, goal, settings, store.pool());
    std::vector<const Real*> rows(n);
    for (Index t = 0; t < n; ++t) rows[t] = table->row(t);
    const KernelProduct<Real> kernel(std::move(rows), 0.0, store.pool(), control);
    advance_together(columns, kernel, settings.most_products, store.pool(), control);
    std::vector<SharedPoint> found;
    for (const auto& column : columns) found.push_back(column->take());
    return found;
}

template std::vector<SharedPoint> shared_start<float>(std::span<const BinaryProblem>, std::span<const double>,
                                                      GramStore<float>&, const Goal&, const SharedStartSettings&,
                                                      Control&);
template std::vector<SharedPoint> shared_start<double>(std::span<const BinaryProblem>, std::span<const double>,
                                                       GramStore<double>&, const Goal&, const SharedStartSettings&,
                                                       Control&);

}  // namespace polymargin
