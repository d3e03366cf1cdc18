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
      blas_(blas),
      pool_(pool),
      control_(control),
      blocks_(rows, classes, bias_, blas, pool, control),
      loaded_(rows.features(), classes),
      width_(loaded_.width()),
      loaded_bias_(width_, Real(0)),
      loaded_shift_(width_, Real(0)),
      centre_(std::max<Index>(1, rows.size() * width_)),
      faces_(std::max<Index>(1, rows.size())),
      shift_(classes, 0.0) {
    for (Index p = 0; p < kParts; ++p) {
        shares_.push_back({.recent = Weights<Real>(rows.features(), classes),
                           .weights = Vector(size_ * width_),
                           .scores = Buffer<Real>(Tile::kMost * width_),
                           .answers = Buffer<Real>(Tile::kMost * width_),
                           .rows = Buffer<Real>(rows.dense() ? Tile::kMost * rows.features() : 1)});
    }
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
    const Index each = Weights<Real>(0, classes).width() * static_cast<Index>(3 * sizeof(Real));
    return rows.features() <= settings.most_features && classes <= proximal_newton::kMostClasses &&
           rows.size() >= settings.rows_per_feature * rows.features() &&
           rows.size() * each <= settings.most_memory * rows.bytes();
}

template <NewtonLoss Loss, class Real>
template <class Work>
void ProximalNewton<Loss, Real>::in_parts(Index count, Work&& work) {
    pool_.for_each(kParts, [&](Index p) {
        Share& share = shares_[p];
        share.losses = share.linear = 0.0;
        share.pending = share.visits = 0;
        std::ranges::fill(share.weights, 0.0);
        std::fill_n(share.recent.row(0), rows_.features() * width_, Real(0));
        const Index end = count * (p + 1) / kParts;
        for (Index first = count * p / kParts; first < end && !stopped(); first += Tile::kMost) {
            work(share, Range{first, std::min(end, first + Tile::kMost)});
        }
        flush(share);
    });
    for (const Share& share : shares_) visits_ += share.visits;
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::add(Share& share, const Tile& tile, const Real* by) const {
    tile.add_to(share.recent, blas_, by);
    share.visits += tile.size();
    if (bias_ > 0.0) {
        double* sums = share.weights.data() + (size_ - 1) * width_;
        for (Index t = 0; t < tile.size(); ++t) {
            for (Index m = 0; m < width_; ++m) sums[m] += bias_ * static_cast<double>(by[t * width_ + m]);
        }
    }
    share.pending += tile.size();
    if (share.pending >= proximal_newton::kShort) flush(share);
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
void ProximalNewton<Loss, Real>::load(const Vector& weights, bool shifted) {
    Real* to = loaded_.row(0);
    for (Index t = 0; t < rows_.features() * width_; ++t) to[t] = static_cast<Real>(weights[t]);
    for (Index m = 0; m < classes_; ++m) {
        const double bias = bias_ > 0.0 ? bias_ * weights[(size_ - 1) * width_ + m] : 0.0;
        loaded_bias_[m] = static_cast<Real>(shifted ? bias + shift_[m] : bias);
    }
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::products(const Tile& tile, Real* out) const {
    tile.products(loaded_, blas_, out);
    for (Index t = 0; bias_ > 0.0 && t < tile.size(); ++t) {  // a free bias has a weight too
        for (Index m = 0; m < width_; ++m) out[t * width_ + m] += loaded_bias_[m];
    }
}

template <NewtonLoss Loss, class Real>
auto ProximalNewton<Loss, Real>::respond(Share& share, Range tile, const Real* scores, const Real* centre,
                                         double sharpness) -> AnswerSums {
    share.examples.clear();
    share.curvatures.clear();
    for (Index i = tile.begin; i < tile.end; ++i) {
        share.examples.push_back(example(i));
        share.curvatures.push_back(static_cast<Real>(sharpness * curvature(i)));
    }
    share.faces.resize(tile.size());
    return proximal_newton::answer(loss_, proximal_newton::AnswerTile<Real>{.count = tile.size(),
                                                                            .classes = classes_,
                                                                            .width = width_,
                                                                            .scores = scores,
                                                                            .centre = centre,
                                                                            .shift = loaded_shift_.data(),
                                                                            .examples = share.examples.data(),
                                                                            .curvatures = share.curvatures.data(),
                                                                            .answers = share.answers.data(),
                                                                            .faces = share.faces.data()});
}

template <NewtonLoss Loss, class Real>
auto ProximalNewton<Loss, Real>::respond(Share& share, Range tile) -> AnswerSums {
    products(Tile(rows_, tile.begin, tile.size()), share.scores.data());
    return respond(share, tile, share.scores.data(), centre_.data() + tile.begin * width_);
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
    load(weights_, true);
    in_parts(active_, [&](Share& share, Range tile) {
        const AnswerSums sums = respond(share, tile);
        share.losses += sums.losses;
        share.linear += sums.linear;
        std::ranges::copy(share.faces, faces_.data() + tile.begin);
        add(share, Tile(rows_, tile.begin, tile.size()), share.answers.data());
    });
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
        const double open = gap_of(now_), left = unsolved();
        control_.report({.done = 0, .total = 1, .iterations = visits_, .gap = open});
        if (open <= gap) return Inner::certified;
        if (max_visits_ >= 0 && visits_ >= max_visits_) return Inner::stopped;
        if (left <= inner_share_ * std::max(0.0, open - left)) return Inner::solved;
        if (steps_ == settings_.most_steps || !find_direction()) return Inner::slow;
        // Of a sample the weights count, which are near long before the two points meet.
        if (active_ < rows_.size() && promised() <= settings_.sample_promise * primal_of(now_)) {
            return open - left <= gap ? Inner::certified : Inner::solved;
        }
        const double length = step();
        if (stopped()) return Inner::stopped;
        if (!(length > 0.0)) return Inner::slow;
        adapt_damping(length);
    }
}

template <NewtonLoss Loss, class Real>
double ProximalNewton<Loss, Real>::accept_dual(Inner inner) {
    using namespace proximal_newton;
    double length = 1.0;
    Vector change = now_.weights;
    if (inner != Inner::certified) {
        // The dual is a parabola on the way from A to B.
        if (base_.empty()) sum_centre();
        add_to(change, -1.0, base_);
        const double slope = base_linear_ - now_.linear - dot(base_, change), square = dot(change, change);
        length = square > 0.0 ? std::clamp(slope / square, 0.0, 1.0) : slope > 0.0 ? 1.0 : 0.0;
    }
    load(weights_, true);
    in_parts(active_, [&](Share& share, Range tile) {
        (void)respond(share, tile);
        Real* centre = centre_.data() + tile.begin * width_;
        const Real* rows = share.answers.data();
        const auto part = static_cast<Real>(length);
        for (Index t = 0; t < tile.size() * width_; ++t) {
            centre[t] = length < 1.0 ? centre[t] + part * (rows[t] - centre[t]) : rows[t];
        }
    });
    if (length < 1.0) {
        add_to(base_, length, change);
        base_linear_ += length * (now_.linear - base_linear_);
    } else {
        base_ = now_.weights;
        base_linear_ = now_.linear;
    }
    return length;
}

template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::move_bias() {
    if (!free_) return;
    for (Index m = 0; m < classes_; ++m) {
        double& moved = weights_[(size_ - 1) * width_ + m];
        shift_[m] += bias_ * moved;
        loaded_shift_[m] = static_cast<Real>(shift_[m]);
        base_linear_ += moved * base_[(size_ - 1) * width_ + m];
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
    double best = std::numeric_limits<double>::infinity();
    for (int idle = 0; idle < settings_.max_idle; ++idle) {
        if (stopped()) return stop_reason(control_);
        const Inner inner = solve_inner(gap);
        if (stopped()) return stop_reason(control_);
        const double open = gap_of(now_), length = accept_dual(inner);
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

/// Feasible but for rounding, and for what a sample's examples stand for.
template <NewtonLoss Loss, class Real>
void ProximalNewton<Loss, Real>::load_coefficients(Index i, std::span<double> row) const {
    for (Index m = 0; m < classes_; ++m) row[m] = static_cast<double>(centre_.data()[i * width_ + m]) / scale_;
    loss_.make_feasible({labels_[i], cost_bounds_[i]}, row);
}

template <NewtonLoss Loss, class Real>
Coefficients ProximalNewton<Loss, Real>::coefficients() const {
    // The threads do it twice: to count, and to write to places that are known then.
    const Workers workers{.pool = &pool_, .control = &control_, .thorough = true};
    const auto in_rows = [&](auto&& each) {
        workers.for_parts(centred_, [&](Range part) {
            Vector row(classes_);
            for (Index i = part.begin; i < part.end; ++i) {
                load_coefficients(i, row);
                each(i, row);
            }
        });
    };
    std::vector<std::int32_t> counts(rows_.size(), 0);
    in_rows([&](Index i, const Vector& row) { counts[i] = std::ranges::count_if(row, [](double b) { return b != 0.0; }); });
    Coefficients result(counts);
    in_rows([&](Index i, const Vector& row) {
        auto entry = result.entries(i).begin();
        for (Index m = 0; m < classes_; ++m) {
            if (row[m] != 0.0) *entry++ = {static_cast<std::int32_t>(m), row[m]};
        }
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
