#pragma once

// The member functions of `ProximalNewton` that pass over the examples; included by its header alone.

#include <algorithm>

namespace polymargin {

template <NewtonLoss Loss, class Real>
template <class Work>
void ProximalNewton<Loss, Real>::in_parts(Index count, bool thorough, Work&& work) {
    pool_.for_each(kParts, [&](Index p) {
        Share& share = shares_[p];
        share.losses = share.linear = 0.0;
        share.pending = share.visits = 0;
        std::ranges::fill(share.weights, 0.0);
        std::fill_n(share.recent.row(0), rows_.features() * width_, Real(0));
        const Index end = count * (p + 1) / kParts;
        for (Index first = count * p / kParts; first < end && (thorough || !stopped()); first += Tile::kMost) {
            control_.throw_if_abandoned();
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
auto ProximalNewton<Loss, Real>::respond(Share& share, Range tile, const Real* scores, const Real* centre)
    -> AnswerSums {
    share.examples.clear();
    share.curvatures.clear();
    for (Index i = tile.begin; i < tile.end; ++i) {
        share.examples.push_back(example(i));
        share.curvatures.push_back(static_cast<Real>(curvature(i)));
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
void ProximalNewton<Loss, Real>::set_middle(Share& share, Range tile) const {
    for (Index i = tile.begin; i < tile.end; ++i) {
        proximal_newton::set_middle(loss_, example(i), classes_, share.centre.data() + (i - tile.begin) * width_);
    }
}

template <NewtonLoss Loss, class Real>
auto ProximalNewton<Loss, Real>::respond(Share& share, Range tile) -> AnswerSums {
    products(Tile(rows_, tile.begin, tile.size()), share.scores.data());
    if (!middle_) return respond(share, tile, share.scores.data(), centre_.data() + tile.begin * width_);
    set_middle(share, tile);
    return respond(share, tile, share.scores.data(), share.centre.data());
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
    in_parts(active_, false, [&](Share& share, Range tile) {
        const AnswerSums sums = respond(share, tile);
        share.losses += sums.losses;
        share.linear += sums.linear;
        std::ranges::copy(share.faces, faces_.data() + tile.begin);
        add(share, Tile(rows_, tile.begin, tile.size()), share.answers.data());
    });
    return collected();
}

}  // namespace polymargin
