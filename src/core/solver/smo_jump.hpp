#pragma once

#include <span>
#include <vector>

#include "solver/smo.hpp"
#include "support/blas.hpp"
#include "support/definite_factor.hpp"

namespace polymargin {

/// What steps on two variables at a time do slowly when examples are much alike: go to the optimum of all free
/// variables of a block, the others staying at their bounds, by solving
///
///     (K_ab - K_ap - K_pb + K_pp) s_b = f_p - f_a,    s_p = - sum_b s_b
///
/// for the free variables a, b other than one of them, p. Its factor follows the few variables that met a bound or left
/// one since the last jump.
template <class Real>
class SmoJump {
  public:
    enum class Outcome { arrived, blocked, impossible };

    SmoJump(SmoBlock<Real>& block, const Blas& blas, const SmoSettings& settings = {})
        : block_(block), settings_(settings), factor_(blas) {}

    /// Go, or as far as the first bound, where that variable then is. Impossible: too few variables are free, or so
    /// many that a system of them is not worth it, or one has no bound, or the kernel is not positive definite on them.
    Outcome operator()();

    /// Multiplications that a jump takes now if it needs a new factor, about.
    [[nodiscard]] double price();
    /// Those that the last one took.
    [[nodiscard]] double cost() const { return cost_; }

  private:
    [[nodiscard]] bool find_free();
    [[nodiscard]] bool factorise();
    [[nodiscard]] bool follow();
    [[nodiscard]] double entry(Index a, Index b) const;
    void solve();
    [[nodiscard]] double length_to_optimum();
    Outcome go(double length);

    SmoBlock<Real>& block_;
    SmoSettings settings_;
    std::vector<Index> free_;
    DefiniteFactor factor_;
    std::vector<Index> order_;  // the variables of the factor: those that were free, but p
    Index pivot_ = -1;          // p
    double ridge_ = 0.0;
    double cost_ = 0.0;
    std::vector<double> step_;    // of the variables of the factor and then of p
    std::vector<double> change_;  // that it makes to the gradient
};

}  // namespace polymargin
