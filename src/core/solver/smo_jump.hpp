#pragma once

#include <vector>

#include "solver/smo.hpp"
#include "support/blas.hpp"

namespace polymargin {

/// What steps on two variables at a time do slowly when examples are much alike: go to the optimum of all free
/// variables of a block, the others staying at their bounds, by solving
///
///     (K_ab - K_ap - K_pb + K_pp) s_b = f_p - f_a,    s_p = - sum_b s_b
///
/// for the free variables a, b other than one of them, p.
template <class Real>
class SmoJump {
  public:
    enum class Outcome { arrived, blocked, impossible };

    SmoJump(SmoBlock<Real>& block, const Blas& blas, const SmoSettings& settings = {})
        : block_(block), blas_(blas), settings_(settings) {}

    /// Go, or as far as the first bound, where that variable then is. Impossible: too few variables are free, or so
    /// many that a system of them is not worth it, or one has no bound, or the kernel is not positive definite on them.
    Outcome operator()();

    /// Multiplications that the last one took, about.
    [[nodiscard]] double cost() const {
        const auto m = static_cast<double>(free_.size());
        return m * m * m / 6 + m * static_cast<double>(block_.size);
    }

    /// The same of the next one.
    [[nodiscard]] double expected_cost() {
        find_free();
        return cost();
    }

  private:
    bool find_free();

    [[nodiscard]] bool find_step();
    [[nodiscard]] double length_to_optimum();
    Outcome go(double length);

    SmoBlock<Real>& block_;
    const Blas& blas_;
    SmoSettings settings_;
    std::vector<Index> free_;
    std::vector<double> step_;    // of the free variables
    std::vector<double> change_;  // that it makes to the gradient
};

}  // namespace polymargin
