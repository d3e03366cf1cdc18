#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "solver/decomposition.hpp"
#include "solver/face.hpp"
#include "support/least_squares.hpp"

namespace polymargin {

struct PolishSettings {
    /// A tolerance as small as this asks for an exact answer.
    double exact_tolerance = 1e-5;
    /// So few examples always have one: rows given twice are then a weight of two to the last digits.
    Index few_examples = 64;
    /// Free directions; more are left as they are: the cost of a step grows with the cube.
    Index max_free = 256;
    int max_steps = 64;       ///< a good start needs a few, a bad one is not worth more
    double rounding = 1e-13;  ///< a violation this small, relative to the gradient, is rounding
    /// Before it the solver goes on to this share of the tolerance, for so many times the steps it took and a few more:
    /// coefficients are then mostly at the right bounds.
    double tolerance_share = 1e-4;
    Index more_steps = 4, few_steps = 1000;
    double more_work = 1.0;  ///< nor for more than so many times the work it took
};

/// Turn a nearly optimal point of a joint problem into one that is optimal to rounding, by an active-set method
/// like that for the binary problem: solve the linear conditions of all directions that are free,
///
///     sum_(j; e) d'(K_ij + [i = j] Q_i) e p_(j; e) + d'v = -d'G_i,
///
/// directly, go there as far as the feasible sets allow and repeat; at the optimum of the face, take an exact step on
/// the worst example. With a free bias `v` is the change of the shift and the sums of the columns stay what they are;
/// otherwise there is no v. The point is kept only if the violation fell. Problems with many free directions are
/// left as they are.
template <MulticlassLoss Loss, class Real>
class JointPolisher {
  public:
    JointPolisher(Decomposition<Loss, Real>& problem, const Blas& blas, bool free_bias,
                  const PolishSettings& settings = {})
        : problem_(problem), blas_(blas), free_bias_(free_bias), settings_(settings) {}

    void run() {
        const double before = problem_.violation();
        const auto saved = problem_.snapshot();
        for (int step = 0; step < settings_.max_steps; ++step) {
            const auto face = free_directions();
            if (std::ssize(face) > settings_.max_free) break;
            if (!face.empty() && !move(face)) continue;  // a coefficient met its bound: solve again without it
            if (!step_worst()) break;
        }
        // Not "no worse": with an indefinite kernel the linear conditions may describe a saddle.
        if (!(problem_.violation() <= before)) problem_.restore(saved);
    }

  private:
    [[nodiscard]] std::vector<double> row(Index i) const {
        std::vector<double> values(problem_.classes());
        for (Index m = 0; m < problem_.classes(); ++m) values[m] = problem_.beta().at(m, i);
        return values;
    }

    [[nodiscard]] Face free_directions() const {
        Face face;
        for (Index i = 0; i < problem_.size() && std::ssize(face) <= settings_.max_free; ++i) {
            for (const Direction& d : problem_.loss().directions(row(i), problem_.example(i))) face.push_back({i, d});
        }
        return face;
    }

    /// Go to the optimum of the face, as far as possible; true if that is the whole way.
    bool move(const Face& face) {
        const Index f = std::ssize(face), k = problem_.classes(), size = f + (free_bias_ ? k : 0);
        const auto kernel = [this](Index i, Index j) { return problem_.kernel(i, j); };
        FaceSystem system(face, size, kernel, [this](Index m, Index i) { return problem_.gradient().at(m, i); });
        system.template take_means_away<Loss>(face, size, k, kernel);
        system.add_conjugate(face, size, problem_.loss(), k, [this](Index i) { return problem_.example(i); });
        std::vector<double> direction(k);
        for (Index a = 0; a < f && free_bias_; ++a) {
            std::ranges::fill(direction, 0.0);
            face[a].direction.add_to(direction, 1.0);
            if constexpr (kScoresSumToZero<Loss>) take_mean_away(direction);
            for (Index m = 0; m < k; ++m) {
                system.matrix[(f + m) * size + a] = system.matrix[a * size + f + m] = direction[m];
            }
        }
        const auto solution = least_squares(blas_, std::move(system.matrix), std::move(system.right));
        const auto changes = row_changes(face, solution, k);
        double share = 1.0;
        for (const auto& [i, change] : changes) {
            share = std::min(share, problem_.loss().max_step(row(i), change, problem_.example(i)));
        }
        std::vector<Index> which;
        std::vector<double> values;
        for (const auto& [i, change] : changes) {
            const auto old = row(i);
            auto now = old;
            for (Index m = 0; m < k; ++m) now[m] += share * change[m];
            problem_.loss().make_feasible(problem_.example(i), now);
            which.push_back(i);
            for (Index m = 0; m < k; ++m) values.push_back(now[m] - old[m]);
        }
        if (!problem_.change_rows(which, values)) return true;
        if (free_bias_) {
            Bias bias = problem_.bias();
            for (Index m = 0; m < k; ++m) bias.shift[m] += share * solution[f + m];
            if constexpr (kScoresSumToZero<Loss>) take_mean_away(bias.shift);
            problem_.set_bias(bias);
        }
        return share >= 1.0;
    }

    /// An exact step on the worst example; false if there is none worth it. It would change the sums of the columns,
    /// which a free bias fixes: then the face alone is polished.
    bool step_worst() {
        if (free_bias_) return false;
        double scale = 1.0;
        for (Index m = 0; m < problem_.classes(); ++m) {
            const double* g = problem_.gradient().row(m);
            for (Index i = 0; i < problem_.size(); ++i) scale = std::max(scale, std::abs(g[i]));
        }
        if (!(problem_.violation() > settings_.rounding * scale)) return false;
        const Index i = problem_.worst();
        std::vector<double> gradient(problem_.classes());
        for (Index m = 0; m < problem_.classes(); ++m) gradient[m] = problem_.gradient().at(m, i);
        const auto old = row(i);
        auto now = old;
        if (!problem_.loss().step(gradient, problem_.kernel(i, i), problem_.example(i), now)) return false;
        for (std::size_t m = 0; m < now.size(); ++m) now[m] -= old[m];
        const Index which[] = {i};
        return problem_.change_rows(which, now);
    }

    Decomposition<Loss, Real>& problem_;
    const Blas& blas_;
    bool free_bias_;
    PolishSettings settings_;
};

}  // namespace polymargin
