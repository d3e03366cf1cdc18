#pragma once

#include <span>
#include <vector>

#include "solver/smo.hpp"
#include "support/blas.hpp"
#include "support/control.hpp"
#include "support/definite_factor.hpp"

namespace polymargin {

/// What steps on two variables at a time do slowly when examples are much alike: go to the optimum of all free
/// variables of a block, the others staying at their bounds, by solving
///
///     (K_ab - K_ap - K_pb + K_pp) s_b = f_p - f_a,    s_p = - sum_b s_b
///
/// for the free variables a, b other than one of them, p. A step that meets a bound ends there, and the next one goes
/// on without that variable. The share of the step that was taken is the share by which the right side shrinks, so
/// steps in a row need no row of the kernel; the gradient follows at their end. The factor of the system follows the
/// few variables that met a bound or left one. With `control`, a stop ends a row of steps, and no factorisation begins
/// after it.
template <class Real>
class SmoJump {
  public:
    enum class Outcome { arrived, blocked, impossible };

    SmoJump(SmoBlock<Real>& block, const Blas& blas, const SmoSettings& settings = {}, const Control* control = nullptr)
        : block_(block), settings_(settings), control_(control), factor_(blas) {}

    /// Go, over at most so many bounds. Impossible, and nothing moves: too few variables are free, or so many that a
    /// system of them is not worth it, or one has no bound and no ridge, or the kernel is not positive definite on
    /// them.
    Outcome operator()(int most);

    /// Multiplications that a jump takes now if it needs a new factor, about.
    [[nodiscard]] double price();
    /// Those that the last call took, and its steps.
    [[nodiscard]] double cost() const { return cost_; }
    [[nodiscard]] int steps() const { return steps_; }

  private:
    [[nodiscard]] bool stopped() const { return control_ != nullptr && control_->stop_requested(); }
    [[nodiscard]] bool find_free();
    [[nodiscard]] bool factorise();
    [[nodiscard]] bool follow();
    [[nodiscard]] double entry(Index a, Index b) const;
    Outcome go(int most);
    Outcome step();
    void solve();
    [[nodiscard]] Index move();
    void leave(Index variable);
    [[nodiscard]] bool settle();

    SmoBlock<Real>& block_;
    SmoSettings settings_;
    const Control* control_;
    std::vector<Index> free_;
    std::vector<double> before_;  // their coefficients
    DefiniteFactor factor_;
    std::vector<Index> order_;  // the variables of the factor: those that are free, but p
    Index pivot_ = -1;          // p
    double ridge_ = 0.0;
    double cost_ = 0.0;
    int steps_ = 0;
    std::vector<double> right_;  // side of the system
    std::vector<double> step_;   // of the variables of the factor and then of p
};

}  // namespace polymargin
