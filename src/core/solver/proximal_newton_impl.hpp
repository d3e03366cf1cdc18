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
                                           std::span<const double> cost_bounds, Index classes, LinearRows<Real>& rows,
                                           double weight, bool free, const NewtonSettings& settings, const Blas& blas,
                                           ThreadPool& pool, Control& control)
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
      blas_(blas),
      pool_(pool),
      control_(control),
      blocks_(rows, classes, bias_, blas, pool, control),
      loaded_(rows.features(), classes),
      width_(loaded_.width()),
      loaded_bias_(width_, Real(0)),
      loaded_shift_(width_, Real(0)),
      centre_(std::max<Index>(1, rows.size() * width_)),
      pairs_(proximal_newton::are_pairs(loss)),
      faces_(std::max<Index>(1, rows.size())),
      shift_(classes, 0.0) {
    for (Index p = 0; p < kParts; ++p) {
        shares_.push_back({.recent = Weights<Real>(rows.features(), classes),
                           .weights = Vector(size_ * width_),
                           .scores = Buffer<Real>(Tile::kMost * width_),
                           .centre = std::vector<Real>(Tile::kMost * width_),
                           .answers = Buffer<Real>(Tile::kMost * width_),
                           .rows = Buffer<Real>(rows.dense() ? Tile::kMost * rows.features() : 1)});
    }
    for (Index y = 0; y < classes_; ++y) {
        const auto offsets = loss_.offsets(y);
        for (Index m = 0; m < classes_; ++m) margin_ = std::max(margin_, std::abs(static_cast<double>(offsets[m])));
    }
    reach_.assign(size_, 0.0);
    bearers_ = reach_;
}

template <NewtonLoss Loss, class Real>
bool ProximalNewton<Loss, Real>::suits(const LinearRows<Real>& rows, Index classes, const NewtonSettings& settings) {
    const Index each = Weights<Real>(0, classes).width() * static_cast<Index>(3 * sizeof(Real));
    return rows.features() <= settings.most_features && classes <= proximal_newton::kMostClasses &&
           rows.size() >= settings.rows_per_feature * rows.features() &&
           rows.size() * each <= settings.most_memory * rows.bytes();
}

template <NewtonLoss Loss, class Real>
std::vector<CurvedRow> ProximalNewton<Loss, Real>::curved_rows() const {
    const std::span faces(faces_.data(), static_cast<std::size_t>(active_));
    std::vector<CurvedRow> curved;
    curved.reserve(faces.size() - std::ranges::count(faces, std::uint64_t{0}));
    for (Index i = 0; i < active_; ++i) {
        if (faces[i] == 0) continue;
        curved.push_back({static_cast<std::uint32_t>(i), faces[i], 1.0 / curvature(i), pairs_ ? labels_[i] : -1});
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

/// What the smoothing of the hinges adds to the gap, relative: sum_i C_i l_i + (g_i)'B_i, which is never negative.
template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::smoothed() const {
    const double sum = now_.losses + now_.linear + proximal_newton::dot(weights_, now_.weights);
    return std::max(0.0, sum) / std::max(std::abs(primal_of(now_)), 1e-300);
}

template <NewtonLoss Loss, class Real>
auto ProximalNewton<Loss, Real>::solve_inner(double gap) -> Inner {
    using namespace proximal_newton;
    now_ = answer();
    steps_ = 0;
    while (true) {
        if (stopped()) return Inner::stopped;
        keep_best();
        const double open = gap_of(now_), smooth = smoothed();
        control_.report({.done = 0, .total = 1, .iterations = visits_, .gap = open});
        if (open <= gap) return Inner::certified;
        if (spent_all()) return Inner::stopped;
        bool solved = unsolved() <= inner_share_ * smooth;
        if (!solved) {
            const int most = middle_ ? settings_.most_middle_steps : settings_.most_steps;
            if (steps_ == most || !find_direction()) return Inner::slow;
            if (spent_all()) return Inner::stopped;  // with half a direction
            // Of a sample the weights count, which are near long before the two points meet.
            solved = active_ < rows_.size() && promised() <= settings_.sample_promise * primal_of(now_);
            if (solved && smooth <= gap) return Inner::certified;
        }
        if (solved) {
            if (!narrow(gap)) return Inner::solved;
            now_ = answer();
            steps_ = 0;
            continue;
        }
        const double length = step();
        if (stopped()) return Inner::stopped;
        if (!(length > 0.0)) return Inner::slow;
        adapt_damping(length);
        ++steps_;
    }
}

template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::accept_dual() {
    using namespace proximal_newton;
    if (base_.empty()) sum_centre();
    // The dual is a parabola on the way from A to B.
    Vector change = now_.weights;
    add_to(change, -1.0, base_);
    const double slope = base_linear_ - now_.linear - dot(base_, change), square = dot(change, change);
    const double length = square > 0.0 ? std::clamp(slope / square, 0.0, 1.0) : slope > 0.0 ? 1.0 : 0.0;
    load(weights_, true);
    in_parts(active_, false, [&](Share& share, Range tile) {
        (void)respond(share, tile);
        Real* to = centre_.data() + tile.begin * width_;
        const Real* from = middle_ ? share.centre.data() : to;
        const Real* rows = share.answers.data();
        const auto part = static_cast<Real>(length);
        for (Index t = 0; t < tile.size() * width_; ++t) {
            to[t] = length < 1.0 ? from[t] + part * (rows[t] - from[t]) : rows[t];
        }
    });
    if (middle_ && stopped()) return 0.0;  // not all centres are there
    middle_ = false;
    centred_ = active_;
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
        loaded_shift_[m] = static_cast<Real>(shift_[m]);
        if (!base_.empty()) base_linear_ += moved * base_[(size_ - 1) * width_ + m];
        moved = 0.0;
    }
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::start(const Coefficients& coefficients, std::span<const double> bias) {
    if (free_) std::ranges::copy(bias, shift_.begin());
    for (Index m = 0; m < classes_; ++m) loaded_shift_[m] = static_cast<Real>(shift_[m]);
    std::fill_n(centre_.data(), centre_.size(), 0.0);
    for (Index i = 0; i < coefficients.rows(); ++i) {
        for (const auto& [m, b] : coefficients.row(i)) centre_.data()[i * width_ + m] = static_cast<Real>(b);
    }
    take_first(rows_.size());
    middle_ = false;
    centred_ = active_;
    sum_centre();
    weights_ = base_;
    if (free_) std::fill_n(weights_.begin() + (size_ - 1) * width_, width_, 0.0);
    share_ = settings_.first_share;
    inner_share_ = settings_.inner_share;
    damping_ = settings_.first_damping;
}

template <NewtonLoss Loss, class Real>
Status ProximalNewton<Loss, Real>::run(double gap, Index max_visits) {
    using namespace proximal_newton;
    max_visits_ = max_visits;
    certified_ = false;
    double best = std::numeric_limits<double>::infinity();
    for (int idle = 0; idle < settings_.max_idle; ++idle) {
        if (stopped()) return stop_reason(control_);
        const Inner inner = solve_inner(gap);
        if (stopped()) return stop_reason(control_);
        certified_ = inner == Inner::certified;
        if (certified_) return Status::converged;
        // There is no point of the dual in what a sample leaves.
        if (middle_ && active_ < rows_.size() && inner != Inner::stopped) return Status::precision;
        const double open = gap_of(now_), length = accept_dual();
        move_bias();
        if (inner == Inner::stopped) return Status::max_iterations;
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

/// The rows of some neighbours, feasible but for rounding and for what a sample's examples stand for: what they answer
/// if that was certified, else a part of where they start from, or nothing.
template <NewtonLoss Loss, class Real>
template <class Each>
void ProximalNewton<Loss, Real>::for_coefficients(Share& share, Range tile, double part, Each&& each) {
    Vector row(classes_);
    if (certified_) (void)respond(share, tile);
    for (Index i = tile.begin; i < tile.end; ++i) {
        const Real* from = certified_ ? share.answers.data() + (i - tile.begin) * width_ : centre_.data() + i * width_;
        for (Index m = 0; m < classes_; ++m) row[m] = part * static_cast<double>(from[m]) / scale_;
        loss_.make_feasible({labels_[i], cost_bounds_[i]}, row);
        each(i, row);
    }
}

/// On the way from the middle a point of the dual may be worth less than none: then the part of it that is worth most.
template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::worthy_part() const {
    const double square = proximal_newton::dot(base_, base_) / scale_;
    return 0.5 * square + base_linear_ > 0.0 ? std::clamp(-base_linear_ / square, 0.0, 1.0) : 1.0;
}

/// Each part keeps what it finds until the places of all are known.
template <NewtonLoss Loss, class Real>
Coefficients ProximalNewton<Loss, Real>::coefficients() {
    const Index known = certified_ ? active_ : centred_;
    const double part = certified_ ? 1.0 : worthy_part();
    std::vector<std::int32_t> counts(rows_.size(), 0);
    std::vector<std::vector<Coefficients::Entry>> found(kParts);
    load(weights_, true);
    in_parts(known, true, [&](Share& share, Range tile) {
        auto& entries = found[&share - shares_.data()];
        for_coefficients(share, tile, part, [&](Index i, const Vector& row) {
            const std::size_t before = entries.size();
            for (Index m = 0; m < classes_; ++m) {
                if (row[m] != 0.0) entries.push_back({static_cast<std::int32_t>(m), row[m]});
            }
            counts[i] = static_cast<std::int32_t>(entries.size() - before);
        });
    });
    Coefficients result(counts);
    pool_.for_each(kParts, [&](Index p) {
        if (!found[p].empty()) std::ranges::copy(found[p], result.entries(known * p / kParts).data());
    });
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
