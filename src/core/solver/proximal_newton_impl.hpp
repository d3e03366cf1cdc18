#pragma once

// The member functions of `ProximalNewton`; included by its header alone.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace polymargin {

namespace proximal_newton {

/// Sums of single precision are taken over by double after so many rows.
constexpr Index kShort = 1024;
/// The classes of a face are the bits of a number.
constexpr Index kMostClasses = 64;

inline double dot(std::span<const double> a, std::span<const double> b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// to += by from
inline void add_to(std::vector<double>& to, double by, const std::vector<double>& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += by * from[i];
}

}  // namespace proximal_newton

template <NewtonLoss Loss, class Real>
ProximalNewton<Loss, Real>::ProximalNewton(const Loss& loss, std::span<const Index> labels,
                                           std::span<const double> cost_bounds, Index classes,
                                           const LinearRows<Real>& rows, double weight, bool free,
                                           const NewtonSettings& settings, const Blas& blas, ThreadPool& pool,
                                           Control& control)
    : loss_(loss),
      labels_(labels),
      cost_bounds_(cost_bounds),
      classes_(classes),
      size_(rows.features() + (weight > 0.0 ? 1 : 0)),
      rows_(rows),
      weight_(weight),
      bias_(std::sqrt(weight)),
      free_(free),
      settings_(settings),
      pool_(pool),
      control_(control),
      blocks_(rows, classes, bias_, blas, pool, control),
      loaded_(rows.features(), classes),
      loaded_bias_(loaded_.width(), Real(0)),
      width_(loaded_.width()),
      centre_(std::max<Index>(1, rows.size() * classes)),
      scores_(std::max<Index>(1, rows.size() * classes)),
      slopes_(std::max<Index>(1, rows.size() * classes)),
      faces_(std::max<Index>(1, rows.size())),
      shift_(classes, 0.0) {
    for (Index p = 0; p < kParts; ++p)
        shares_.push_back({.recent = Weights<Real>(rows.features(), classes), .weights = Vector(size_ * width_)});
    for (Index i = 0; i < rows.size(); ++i) {
        least_norm_ += rows.norm(i) + weight;
        mean_cost_ += cost_bounds[i];
    }
    least_norm_ /= static_cast<double>(std::max<Index>(1, rows.size()));
    mean_cost_ /= static_cast<double>(std::max<Index>(1, rows.size()));
    take_first(rows.size());
}

template <NewtonLoss Loss, class Real>
bool ProximalNewton<Loss, Real>::suits(const LinearRows<Real>& rows, Index classes, const NewtonSettings& settings) {
    const Index each = classes * static_cast<Index>(sizeof(double) + 2 * sizeof(Real));
    return rows.features() <= settings.most_features && classes <= proximal_newton::kMostClasses &&
           rows.size() >= settings.rows_per_feature * rows.features() &&
           rows.size() * each <= settings.most_memory * rows.bytes();
}

template <NewtonLoss Loss, class Real>
template <class Work>
void ProximalNewton<Loss, Real>::in_parts(Index count, Work&& work) {
    pool_.for_each(kParts, [&](Index p) {
        Share& share = shares_[p];
        share.losses = share.linear = share.slope = 0.0;
        share.pending = share.rows = 0;
        std::ranges::fill(share.weights, 0.0);
        std::fill_n(share.recent.row(0), rows_.features() * width_, Real(0));
        for (Index t = count * p / kParts; t < count * (p + 1) / kParts; ++t) {
            if (t % proximal_newton::kShort == 0 && stopped()) return;
            work(share, t);
        }
        flush(share);
    });
    for (const Share& share : shares_) visits_ += share.rows;
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::add(Share& share, Index i, std::span<const Real> by) const {
    share.recent.add(rows_.row(i), by.data());
    ++share.rows;
    if (bias_ > 0.0) {
        for (Index m = 0; m < classes_; ++m)
            share.weights[(size_ - 1) * width_ + m] += bias_ * static_cast<double>(by[m]);
    }
    if (++share.pending == proximal_newton::kShort) flush(share);
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::flush(Share& share) const {
    if (share.pending == 0) return;
    Real* recent = share.recent.row(0);
    for (Index t = 0; t < rows_.features() * width_; ++t) {
        share.weights[t] += static_cast<double>(recent[t]);
        recent[t] = Real(0);
    }
    share.pending = 0;
}

template <NewtonLoss Loss, class Real>
auto ProximalNewton<Loss, Real>::sum_of(std::span<const Share> shares) const -> Vector {
    Vector sum(size_ * width_, 0.0);
    for (const Share& share : shares) proximal_newton::add_to(sum, 1.0, share.weights);
    return sum;
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::load(const Vector& weights) {
    Real* to = loaded_.row(0);
    for (Index t = 0; t < rows_.features() * width_; ++t) to[t] = static_cast<Real>(weights[t]);
    for (Index m = 0; bias_ > 0.0 && m < classes_; ++m) {
        loaded_bias_[m] = static_cast<Real>(bias_ * weights[(size_ - 1) * width_ + m]);
    }
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::multiply(const Vector& weights, Buffer<Real>& scores) {
    load(weights);
    in_parts(active_, [&](Share& share, Index i) {
        Real products[2 * proximal_newton::kMostClasses];
        loaded_.products(rows_.row(i), products);
        ++share.rows;
        for (Index m = 0; m < classes_; ++m) scores.data()[i * classes_ + m] = products[m] + loaded_bias_[m];
    });
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::respond(Index i, std::span<double> scores, std::span<double> row) const {
    const Example example = this->example(i);
    load_centre(i, row);
    const auto offsets = loss_.offsets(example.label);
    for (Index m = 0; m < classes_; ++m) scores[m] += offsets[m];
    // Most rows are where they belong, at a vertex.
    const auto [highest, lowest, own] = extremes_of(loss_, scores, row, example);
    if (promise_of<Loss>(highest, lowest) > 0.0) (void)loss_.step(scores, curvature(i), example, row);
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::answer_of(Share& share, Index i) {
    double scores[proximal_newton::kMostClasses], row[proximal_newton::kMostClasses];
    Real by[2 * proximal_newton::kMostClasses] = {};
    const Example example = this->example(i);
    const std::span<double> s(scores, classes_), b(row, classes_);
    for (Index m = 0; m < classes_; ++m) scores[m] = static_cast<double>(scores_.data()[i * classes_ + m]);
    share.losses += example.cost_bound * loss_.loss(s, example.label);
    respond(i, s, b);
    std::uint64_t face = 0;
    bool used = false;
    const auto offsets = loss_.offsets(example.label);
    for (Index m = 0; m < classes_; ++m) {
        const bool own = m == example.label;
        by[m] = static_cast<Real>(row[m]);
        used = used || row[m] != 0.0;
        share.linear += (offsets[m] + shift_[m]) * row[m];
        const bool between =
            loss_.may_grow(row[m], own, example.cost_bound) && loss_.may_fall(row[m], own, example.cost_bound);
        face |= static_cast<std::uint64_t>(between) << m;
    }
    if (used) add(share, i, {by, static_cast<std::size_t>(width_)});
    // Alone in its row a class has nobody to exchange with.
    faces_.data()[i] = Loss::kRowsSumToZero && std::has_single_bit(face) ? 0 : face;
}

template <NewtonLoss Loss, class Real>
auto ProximalNewton<Loss, Real>::collected() const -> Answer {
    Answer result;
    result.weights = sum_of(shares_);
    for (const Share& share : shares_) {
        result.losses += share.losses;
        result.linear += share.linear;
    }
    return result;
}

template <NewtonLoss Loss, class Real>
auto ProximalNewton<Loss, Real>::answer() -> Answer {
    in_parts(active_, [&](Share& share, Index i) { answer_of(share, i); });
    return collected();
}

template <NewtonLoss Loss, class Real>
std::vector<CurvedRow> ProximalNewton<Loss, Real>::curved_rows() const {
    const std::span faces(faces_.data(), static_cast<std::size_t>(active_));
    std::vector<CurvedRow> curved;
    curved.reserve(faces.size() - std::ranges::count(faces, std::uint64_t{0}));
    for (Index i = 0; i < active_; ++i) {
        if (faces[i] != 0) curved.push_back({static_cast<std::uint32_t>(i), faces[i], 1.0 / curvature(i)});
    }
    return curved;
}

/// A free bias that is still moving counts.
template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::primal_of(const Answer& now) const {
    return 0.5 * proximal_newton::dot(weights_, weights_) + now.losses;
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::keep_best() {
    const double primal = primal_of(now_);
    if (primal < best_.primal) best_ = {weights_, shift_, primal};
}

template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::gap_of(const Answer& now) const {
    using proximal_newton::dot;
    const double primal = primal_of(now);
    const double dual = -0.5 * dot(now.weights, now.weights) - now.linear;
    return (primal - dual) / std::max({std::abs(primal), std::abs(dual), 1e-300});
}

/// |W - sum x B'|^2 / 2, relative
template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::unsolved() const {
    Vector difference = weights_;
    proximal_newton::add_to(difference, -1.0, now_.weights);
    return 0.5 * proximal_newton::dot(difference, difference) / std::max(std::abs(primal_of(now_)), 1e-300);
}

template <NewtonLoss Loss, class Real>
auto ProximalNewton<Loss, Real>::solve_inner(double gap) -> Inner {
    using namespace proximal_newton;
    now_ = answer();
    for (steps_ = 0;; ++steps_) {
        if (stopped()) return Inner::stopped;
        keep_best();
        const double open = gap_of(now_);
        control_.report({.done = 0, .total = 1, .iterations = visits_, .gap = open});
        if (open <= gap) return Inner::certified;
        if (max_visits_ >= 0 && visits_ >= max_visits_) return Inner::stopped;
        const double left = unsolved();
        if (left <= inner_share_ * std::max(0.0, open - left)) return Inner::solved;
        if (steps_ == settings_.most_steps || !find_direction()) return Inner::slow;
        const double length = step();
        if (stopped()) return Inner::stopped;
        if (!(length > 0.0)) return Inner::slow;
        adapt_damping(length);
    }
}

template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::accept_dual() {
    using namespace proximal_newton;
    // The dual is a parabola on the way from A to B.
    Vector change = now_.weights;
    add_to(change, -1.0, base_);
    const double slope = base_linear_ - now_.linear - dot(base_, change), square = dot(change, change);
    const double length = square > 0.0 ? std::clamp(slope / square, 0.0, 1.0) : slope > 0.0 ? 1.0 : 0.0;
    in_parts(active_, [&](Share&, Index i) {
        double scores[kMostClasses], row[kMostClasses];
        for (Index m = 0; m < classes_; ++m) scores[m] = static_cast<double>(scores_.data()[i * classes_ + m]);
        respond(i, {scores, static_cast<std::size_t>(classes_)}, {row, static_cast<std::size_t>(classes_)});
        double* centre = centre_.data() + i * classes_;
        for (Index m = 0; m < classes_; ++m)
            centre[m] = length < 1.0 ? centre[m] + length * (row[m] - centre[m]) : row[m];
    });
    add_to(base_, length, change);
    base_linear_ += length * (now_.linear - base_linear_);
    return length;
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::move_bias() {
    if (!free_) return;
    for (Index m = 0; m < classes_; ++m) {
        double& moved = weights_[(size_ - 1) * width_ + m];
        shift_[m] += bias_ * moved;
        base_linear_ += moved * base_[(size_ - 1) * width_ + m];
        moved = 0.0;
    }
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::start(const Coefficients& coefficients, std::span<const double> bias) {
    if (free_) std::ranges::copy(bias, shift_.begin());
    std::fill_n(centre_.data(), centre_.size(), 0.0);
    for (Index i = 0; i < coefficients.rows(); ++i) {
        for (const auto& [m, b] : coefficients.row(i)) centre_.data()[i * classes_ + m] = b;
    }
    take_first(rows_.size());
    sum_centre();
    weights_ = base_;
    if (free_) std::fill_n(weights_.begin() + (size_ - 1) * width_, width_, 0.0);
    share_ = settings_.first_share;
    inner_share_ = settings_.inner_share;
    damping_ = settings_.first_damping;
}

/// Of the weights and the shift, anew: along many steps rounding adds up.
template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::compute_scores() {
    multiply(weights_, scores_);
    for (Index t = 0; free_ && t < active_ * classes_; ++t) {
        scores_.data()[t] += static_cast<Real>(shift_[t % classes_]);
    }
}

template <NewtonLoss Loss, class Real>
Status ProximalNewton<Loss, Real>::run(double gap, Index max_visits) {
    using namespace proximal_newton;
    max_visits_ = max_visits;
    compute_scores();
    double best = std::numeric_limits<double>::infinity();
    for (int idle = 0; idle < settings_.max_idle; ++idle) {
        if (stopped()) return stop_reason(control_);
        const Inner inner = solve_inner(gap);
        if (stopped()) return stop_reason(control_);
        const double open = gap_of(now_), length = accept_dual();
        move_bias();
        if (inner == Inner::stopped) return Status::max_iterations;
        if (inner == Inner::certified) return Status::converged;
        if (open < 0.9 * best) idle = -1;
        best = std::min(best, open);
        if (inner == Inner::solved && steps_ <= settings_.easy)
            share_ = std::max(settings_.least_share, settings_.smaller_share * share_);
        if (inner == Inner::slow && length < 1.0) share_ *= 2.0;
        if (inner == Inner::solved) {
            inner_share_ =
                length < 1.0 ? std::max(settings_.least_inner_share, 0.1 * inner_share_) : settings_.inner_share;
        }
    }
    return Status::precision;
}

template <NewtonLoss Loss, class Real>
Coefficients ProximalNewton<Loss, Real>::coefficients() const {
    Coefficients result(rows_.size());
    std::vector<Coefficients::Entry> entries;
    Vector row(classes_);
    for (Index i = 0; i < active_; ++i) {
        load_centre(i, row);  // feasible but for rounding
        for (double& b : row) b /= scale_;
        loss_.make_feasible({labels_[i], cost_bounds_[i]}, row);
        entries.clear();
        for (Index m = 0; m < classes_; ++m) {
            if (row[m] != 0.0) entries.push_back({static_cast<std::int32_t>(m), row[m]});
        }
        result.set(i, entries);
    }
    return result;
}

template <NewtonLoss Loss, class Real>
PrimalPoint ProximalNewton<Loss, Real>::point_of(const Vector& weights, const Vector& shift) const {
    PrimalPoint point{Vector(rows_.features() * classes_), Vector(classes_, 0.0)};
    const auto original = rows_.original_features();
    for (Index f = 0; f < rows_.features(); ++f) {
        std::copy_n(weights.begin() + f * width_, classes_, point.weights.begin() + original[f] * classes_);
    }
    for (Index m = 0; bias_ > 0.0 && m < classes_; ++m) {
        point.bias[m] = shift[m] + bias_ * weights[(size_ - 1) * width_ + m];
    }
    return point;
}

}  // namespace polymargin
