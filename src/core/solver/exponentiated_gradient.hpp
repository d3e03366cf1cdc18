#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "linear/rows.hpp"
#include "linear/weights.hpp"
#include "problem/multiclass.hpp"
#include "solver/coefficients.hpp"
#include "solver/shuffler.hpp"
#include "solver/status.hpp"
#include "support/control.hpp"

namespace polymargin {

struct ExponentiatedGradientSettings {
    Index max_visits = -1;  ///< of examples; -1: no limit
    std::uint64_t seed = 0;
    double first_odds = 10.0;    ///< log of those of the own class at the start, where all coefficients are nearly 0
    double first_rate = 0.5;     ///< in units of 1 / (C_i |x_i|^2)
    double faster = 1.05;        ///< the rate after a step that helped
    int most_halvings = 20;      ///< of a rate, until a step helps
    double lowest_odds = -50.0;  ///< relative to the highest: nothing to a sum, and a way back
};

/// The exponentiated gradient method (Collins et al. 2008, Keerthi et al. 2.3) for losses whose rows are `B_i = C_i
/// (e_y - p_i)` with p_i on the simplex: the worst wrong class, or none, with probability p_im.
///
/// An example is drawn at random, and `p_im` becomes proportional to `p_im exp(eta_i g_im)`. The rate eta_i grows a
/// little with every step that helps and is halved until one does. No p is ever zero, so that every example is a
/// support vector: they stop at e^-50 of the largest, which is nothing to a sum, but odds that went on falling would
/// take as long to come back, and end in infinities.
template <SimplexLoss Loss, class Real>
class ExponentiatedGradient {
  public:
    ExponentiatedGradient(const Loss& loss, std::span<const Index> labels, std::span<const double> cost_bounds,
                          Index classes, const LinearRows<Real>& rows, const ExponentiatedGradientSettings& settings,
                          Control& control)
        : loss_(loss),
          labels_(labels),
          cost_bounds_(cost_bounds),
          classes_(classes),
          rows_(rows),
          settings_(settings),
          draw_(settings.seed),
          control_(control),
          weights_(rows.features(), classes),
          odds_(rows.size() * classes, 0.0),
          rates_(rows.size()),
          scores_(weights_.width()),
          change_(weights_.width(), Real(0)),
          gradient_(classes),
          before_(classes),
          after_(classes),
          bias_(classes, 0.0),
          sums_(classes, 0.0) {}

    /// `weight` is that of a bias that is part of the weights. The start is near p_i = e_y, where all coefficients are
    /// 0.
    void start(double weight) {
        weight_ = weight;
        for (Index i = 0; i < rows_.size(); ++i) {
            odds_[i * classes_ + labels_[i]] = settings_.first_odds;
            const double curvature = rows_.norm(i) + weight;
            rates_[i] = curvature > 0.0 ? settings_.first_rate / (cost_bounds_[i] * curvature) : 1.0;
            std::ranges::fill(before_, 0.0);
            probabilities(i, 0.0, after_);
            for (Index m = 0; m < classes_; ++m) after_[m] = cost_bounds_[i] * ((m == labels_[i]) - after_[m]);
            move(i);
        }
    }

    /// As many visits as there are examples, again and again, until the guess of the relative gap is at most `gap`.
    Status run(double gap) {
        const Index n = rows_.size();
        while (true) {
            double losses = 0.0;
            for (Index t = 0; t < n; ++t) {
                if (t % kCheckEvery == 0 && control_.stop_requested()) return stop_reason(control_);
                if (settings_.max_visits >= 0 && visits_ >= settings_.max_visits) return Status::max_iterations;
                losses += visit(static_cast<Index>(draw_.below(static_cast<std::size_t>(n))));
            }
            double square = square_;
            for (const double s : sums_) square += weight_ * s * s;
            const double primal = 0.5 * square + losses, dual = -0.5 * square - linear_;
            const double guess = std::abs(primal - dual) / std::max({std::abs(primal), std::abs(dual), 1e-300});
            control_.report({.done = 0, .total = 1, .iterations = visits_, .gap = guess});
            if (guess <= gap) return Status::converged;
        }
    }

    [[nodiscard]] Index visits() const { return visits_; }
    [[nodiscard]] Coefficients coefficients() {
        Coefficients result(rows_.size());
        std::vector<Coefficients::Entry> row(classes_);
        for (Index i = 0; i < rows_.size(); ++i) {
            probabilities(i, 0.0, after_);
            double given = 0.0;
            for (Index m = 0; m < classes_; ++m) {
                if (m != labels_[i]) given += after_[m];
            }
            given = std::min(given, 1.0);  // rounding may say otherwise when nothing is left for the own class
            for (Index m = 0; m < classes_; ++m) {
                row[m] = {static_cast<std::int32_t>(m), cost_bounds_[i] * (m == labels_[i] ? given : -after_[m])};
            }
            result.set(i, row);
        }
        return result;
    }

  private:
    static constexpr Index kCheckEvery = 64;

    /// p_i after a step of this length, by the odds: every exponent is at most 0.
    void probabilities(Index i, double rate, std::vector<double>& out) const {
        const double* odds = odds_.data() + i * classes_;
        double highest = -std::numeric_limits<double>::infinity(), sum = 0.0;
        for (Index m = 0; m < classes_; ++m) highest = std::max(highest, out[m] = odds[m] + rate * gradient_[m]);
        for (Index m = 0; m < classes_; ++m)
            sum += out[m] = std::exp(std::max(out[m] - highest, settings_.lowest_odds));
        for (Index m = 0; m < classes_; ++m) out[m] /= sum;
    }
    /// The odds after a step of this length, relative to the highest.
    void step(Index i, double rate) {
        const std::span odds(odds_.data() + i * classes_, static_cast<std::size_t>(classes_));
        for (Index m = 0; m < classes_; ++m) odds[m] += rate * gradient_[m];
        const double highest = *std::ranges::max_element(odds);
        for (double& o : odds) o = std::max(o - highest, settings_.lowest_odds);
    }
    /// How much the dual objective loses when p_i moves from `before_` to `after_`. The changes add up to zero, so
    /// gradients may be taken relative to that of the likeliest class, whose own change is mostly rounding.
    [[nodiscard]] double loss_of_dual(double bound, double curvature) const {
        const double base = gradient_[std::ranges::max_element(before_) - before_.begin()];
        double loss = 0.0;
        for (Index m = 0; m < classes_; ++m) {
            const double by = bound * (before_[m] - after_[m]);
            loss += by * (gradient_[m] - base + 0.5 * curvature * by);
        }
        return loss;
    }
    /// Visit an example; what it costs in the primal.
    double visit(Index i) {
        ++visits_;
        const double bound = cost_bounds_[i], curvature = rows_.norm(i) + weight_;
        weights_.products(rows_.row(i), scores_.data());
        std::vector<double>& scores = gradient_;
        for (Index m = 0; m < classes_; ++m) scores[m] = static_cast<double>(scores_[m]) + bias_[m];
        const double cost = bound * loss_.loss(scores, labels_[i]);
        const auto offsets = loss_.offsets(labels_[i]);
        for (Index m = 0; m < classes_; ++m) gradient_[m] += offsets[m];
        probabilities(i, 0.0, before_);
        for (int halving = 0; halving <= settings_.most_halvings; ++halving, rates_[i] *= 0.5) {
            probabilities(i, rates_[i], after_);
            const double loss = loss_of_dual(bound, curvature);
            if (loss > 0.0) continue;
            step(i, rates_[i]);
            if (loss < 0.0)
                rates_[i] *= settings_.faster;  // a step that changes nothing does not speak for a longer one
            for (Index m = 0; m < classes_; ++m) after_[m] = bound * (before_[m] - after_[m]);
            move(i);
            break;
        }
        return cost;
    }
    /// Change the coefficients of an example by `after_`.
    void move(Index i) {
        weights_.products(rows_.row(i), scores_.data());
        const auto offsets = loss_.offsets(labels_[i]);
        for (Index m = 0; m < classes_; ++m) {
            const double by = after_[m];
            change_[m] = static_cast<Real>(by);
            linear_ += by * offsets[m];
            square_ += by * (2.0 * static_cast<double>(scores_[m]) + by * rows_.norm(i));
            sums_[m] += by;
            bias_[m] += weight_ * by;
        }
        weights_.add(rows_.row(i), change_.data());
    }

    const Loss& loss_;
    std::span<const Index> labels_;
    std::span<const double> cost_bounds_;
    Index classes_;
    const LinearRows<Real>& rows_;
    ExponentiatedGradientSettings settings_;
    Shuffler draw_;
    Control& control_;
    Weights<Real> weights_;
    std::vector<double> odds_;  // log p_im + const, a row for each example
    std::vector<double> rates_;
    std::vector<Real> scores_, change_;
    std::vector<double> gradient_, before_, after_, bias_, sums_;
    double weight_ = 0.0;
    double square_ = 0.0;  // of all weights
    double linear_ = 0.0;  // sum_im o_im B_im
    Index visits_ = 0;
};

}  // namespace polymargin
