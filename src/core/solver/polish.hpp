#pragma once

#include <functional>
#include <span>

#include "problem/binary.hpp"
#include "support/blas.hpp"
#include "support/control.hpp"

namespace polymargin {

/// The kernel of one problem as polishing reads it, in the problem's own numbering and in double precision.
struct PolishKernel {
    /// The values of one variable with others, which ascend.
    std::function<void(Index, std::span<const Index> which, double* out)> values;
    /// Bring f up to date after the variables `which` moved by `change`.
    std::function<void(std::span<const Index> which, std::span<const double> change)> moved;
};

/// When an answer is made exact to rounding: always if somebody asked for it, else if that is a small share of a fit.
/// Costs are counted in multiplications of a factorisation, of which there are about two in a nanosecond.
struct PolishRule {
    /// A tolerance as small as this asks for an exact answer.
    double exact_tolerance = 1e-5;
    bool asked = false;  ///< by somebody: then it is made so whatever it costs
    double share = 0.1;  ///< of what a fit costs without
    /// What a fit costs beside its problems (the checks and the models of a fit of iris: 0.6 ms), and how many there
    /// are.
    double fixed = 1.5e6;
    Index problems = 1;
    double step = 2.0, step_overhead = 60.0;  ///< of SMO: for each variable, and beside them
    double overhead = 6e3;                    ///< of a system however small it is
    Index least = 4, most = 64;               ///< systems to solve: with fewer there is no exact answer, as a rule

    /// How many systems may be solved for an answer with so many free variables, of a problem of so many that took so
    /// many steps; 0 if too few would be.
    [[nodiscard]] Index solves(Index free, Index size, Index steps) const;
};

/// Free variables up to which polishing pays: the cost of a step grows with the cube.
inline constexpr Index kMostFree = 256;

/// Turn a nearly optimal state into one that is optimal to rounding, by an active-set method: hold the variables at
/// their bounds, solve the linear conditions of the free ones,
///
///     K_FF p + m 1 = -f_F,   1'p = 0,
///
/// directly (one of them eliminated, by Cholesky's method; where equal examples make the rest singular, by least
/// squares of minimum norm), go there as far as the bounds allow, fix what met a bound and repeat; at the optimum of
/// the free variables, release the worst violator by one step of SMO. When the worst violators are free, the rest is
/// rounding: the system is solved once more, for what the first solution left, and that is the end. The state is kept
/// only if the violation fell. Problems with more than `max_free` free variables are left as they are, and after
/// `max_solves` systems it is enough: a warm start needs a few, a bad one is not worth more. With
/// `control`, a stop ends it early.
void polish(std::span<const Run> runs, std::span<const double> cost_bounds, BinaryState& state,
            const PolishKernel& kernel, const Blas& blas, Index max_free = kMostFree, Index max_solves = 64,
            const Control* control = nullptr);

}  // namespace polymargin
