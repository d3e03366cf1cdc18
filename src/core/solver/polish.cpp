#include "solver/polish.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "support/least_squares.hpp"

namespace polymargin {
namespace {

/// A violation this small, relative to the gradient, is rounding.
constexpr double kRounding = 1e-13;
/// Cholesky's method is trusted with pivots that are at least this share of their diagonal element.
constexpr double kLeastPivot = 1e-9;

class Polisher {
  public:
    Polisher(std::span<const Run> runs, std::span<const double> cost_bounds, BinaryState& state,
             const PolishKernel& kernel, const Blas& blas)
        : state_(state), kernel_(kernel), blas_(blas), lower_(state.beta.size()), upper_(state.beta.size()) {
        for (const Run& run : runs) {
            for (Index i = 0; i < run.size; ++i) {
                const double bound = cost_bounds[run.global + i];
                lower_[run.local + i] = run.sign > 0 ? 0.0 : -bound;
                upper_[run.local + i] = run.sign > 0 ? bound : 0.0;
            }
        }
    }

    [[nodiscard]] std::vector<Index> free() const {
        std::vector<Index> f;
        for (Index t = 0; t < size(); ++t) {
            if (is_free(t)) f.push_back(t);
        }
        return f;
    }

    void run(Index max_free, Index max_solves, const Control* control) {
        for (Index solve = 0; solve < max_solves; ++solve) {
            if (control != nullptr && control->stop_requested()) return;
            const std::vector<Index> f = free();
            if (static_cast<Index>(f.size()) > max_free) return;
            if (!f.empty() && !move_to(f, target(f))) continue;  // a variable met its bound: solve again without it
            if (!release_worst()) return;
        }
    }

  private:
    [[nodiscard]] Index size() const { return static_cast<Index>(state_.beta.size()); }
    [[nodiscard]] bool is_free(Index t) const { return state_.beta[t] > lower_[t] && state_.beta[t] < upper_[t]; }
    [[nodiscard]] double value(Index i, Index j) const {
        double k = 0.0;
        kernel_.values(i, std::span(&j, 1), &k);
        return k;
    }

    /// The step p of the free variables to their optimum.
    [[nodiscard]] std::vector<double> target(std::span<const Index> f) const {
        const std::size_t m = f.size();
        std::vector<double> kernel(m * m);
        for (std::size_t r = 0; r < m; ++r) kernel_.values(f[r], f, kernel.data() + r * m);
        std::vector<double> p = eliminated(f, kernel);
        return p.empty() ? bordered(f, kernel) : p;
    }

    /// The same with the last variable eliminated, which moves against the sum of the others; empty if the system is
    /// nearly singular.
    [[nodiscard]] std::vector<double> eliminated(std::span<const Index> f, std::span<const double> kernel) const {
        const std::size_t m = f.size(), rest = m - 1;
        const double* last = kernel.data() + rest * m;
        std::vector<double> a(rest * rest), b(rest);
        for (std::size_t c = 0; c < rest; ++c) {
            const double* row = kernel.data() + c * m;
            for (std::size_t r = c; r < rest; ++r) a[c * rest + r] = row[r] - row[rest] - last[r] + last[rest];
            b[c] = state_.f[f[rest]] - state_.f[f[c]];
        }
        b = solve_definite(blas_, std::move(a), std::move(b), kLeastPivot);
        if (std::ssize(b) < static_cast<Index>(rest)) return {};
        b.push_back(-std::accumulate(b.begin(), b.end(), 0.0));
        return b;
    }

    /// The same with the multiplier of the constraint as an unknown.
    [[nodiscard]] std::vector<double> bordered(std::span<const Index> f, std::span<const double> kernel) const {
        const std::size_t m = f.size() + 1;
        std::vector<double> a(m * m, 1.0), b(m, 0.0);
        for (std::size_t r = 0; r + 1 < m; ++r) {
            std::copy_n(kernel.begin() + r * (m - 1), m - 1, a.begin() + r * m);
            b[r] = -state_.f[f[r]];
        }
        a.back() = 0.0;
        b = least_squares(blas_, std::move(a), std::move(b));
        b.pop_back();
        return b;
    }

    /// Go along `p` as far as the bounds allow; true if that is the whole way.
    bool move_to(std::span<const Index> f, std::span<const double> p) {
        double share = 1.0;
        Index blocking = -1;
        for (std::size_t i = 0; i < f.size(); ++i) {
            const double distance = p[i] > 0 ? upper_[f[i]] - state_.beta[f[i]] : state_.beta[f[i]] - lower_[f[i]];
            if (std::abs(p[i]) * share > distance) {
                share = distance / std::abs(p[i]);
                blocking = f[i];
            }
        }
        std::vector<double> change(f.size());
        for (std::size_t i = 0; i < f.size(); ++i) {
            const double old = state_.beta[f[i]];
            double now = std::clamp(old + share * p[i], lower_[f[i]], upper_[f[i]]);
            if (f[i] == blocking) now = p[i] > 0 ? upper_[f[i]] : lower_[f[i]];
            state_.beta[f[i]] = now;
            change[i] = now - old;
        }
        kernel_.moved(f, change);
        return blocking < 0;
    }

    /// One step of SMO on the most violating pair, if it is not free anyway; false if there is none worth it.
    bool release_worst() {
        Index i = -1, j = -1;
        double scale = 1.0;
        for (Index t = 0; t < size(); ++t) {
            scale = std::max(scale, std::abs(state_.f[t]));
            if (state_.beta[t] < upper_[t] && (i < 0 || state_.f[t] < state_.f[i])) i = t;
            if (state_.beta[t] > lower_[t] && (j < 0 || state_.f[t] > state_.f[j])) j = t;
        }
        if (i < 0 || j < 0 || !(state_.f[j] - state_.f[i] > kRounding * scale)) return false;
        if (is_free(i) && is_free(j)) {
            if (std::exchange(solved_again_, true)) return false;
            return true;
        }
        solved_again_ = false;
        const double curvature = value(i, i) + value(j, j) - 2 * value(i, j);
        const double max_step_i = upper_[i] - state_.beta[i], max_step_j = state_.beta[j] - lower_[j];
        const double step =
            std::min({(state_.f[j] - state_.f[i]) / std::max(curvature, 1e-12), max_step_i, max_step_j});
        state_.beta[i] = step == max_step_i ? upper_[i] : state_.beta[i] + step;
        state_.beta[j] = step == max_step_j ? lower_[j] : state_.beta[j] - step;
        const Index which[] = {i, j};
        const double change[] = {step, -step};
        kernel_.moved(which, change);
        return true;
    }

    BinaryState& state_;
    const PolishKernel& kernel_;
    const Blas& blas_;
    std::vector<double> lower_, upper_;
    bool solved_again_ = false;
};

}  // namespace

Index PolishRule::solves(Index free, Index size, Index steps) const {
    const auto m = static_cast<double>(free), n = static_cast<double>(size);
    const double taken = static_cast<double>(steps) * (step * n + step_overhead);
    const double one = overhead + m * m * m / 6 + m * (m + n);
    const auto affordable = static_cast<Index>(share * (taken + fixed / static_cast<double>(problems)) / one);
    return affordable < least ? 0 : std::min(affordable, most);
}

void polish(std::span<const Run> runs, std::span<const double> cost_bounds, BinaryState& state,
            const PolishKernel& kernel, const Blas& blas, Index max_free, Index max_solves, const Control* control) {
    const double before = violation(runs, state, cost_bounds).size();
    const BinaryState saved = state;
    Polisher(runs, cost_bounds, state, kernel, blas).run(max_free, max_solves, control);
    // Not "no worse": with an indefinite kernel the linear conditions may describe a saddle.
    if (!(violation(runs, state, cost_bounds).size() <= before)) state = saved;
}

}  // namespace polymargin
