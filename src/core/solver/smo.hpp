#pragma once

#include <functional>
#include <vector>

#include "support/blas.hpp"
#include "support/buffer.hpp"
#include "support/control.hpp"

namespace polymargin {

/// A small dense binary problem: the working set of the decomposition. Arrays are padded to whole vectors with
/// variables that can neither grow nor fall. The gradient has the precision of the kernel here; outside, it is kept in
/// double and brought up to date from the steps taken.
template <class Real>
struct SmoBlock {
    Index size = 0;    ///< variables
    Index width = 0;   ///< `size` padded: what the passes go over
    Index stride = 0;  ///< from row to row of the kernel
    Buffer<Real> kernel;
    /// The rows of the kernel: in `kernel`, or elsewhere with zeros up to `width`, or null until `fetch` brings them.
    std::vector<const Real*> rows;
    std::function<const Real*(Index)> fetch;
    Buffer<Real> diagonal;      ///< with the ridge
    std::vector<double> ridge;  ///< of each variable, which its row does not have; empty: none
    Buffer<double> beta, lower, upper;
    Buffer<Real> f;
    Buffer<Real> up, low;  ///< 0 where the variable may grow (fall), else +inf (-inf)

    /// Set the number of variables, at most `capacity` (the same at every call); the kernel of those that were there
    /// stays.
    void resize(Index count, Index capacity);
    /// The same, but the rows of the kernel are brought when they are needed.
    void resize_empty(Index count, Index capacity, std::function<const Real*(Index)> how);

    [[nodiscard]] const Real* row(Index t) {
        const Real*& values = rows[t];
        if (values == nullptr) values = fetch(t);
        return values;
    }
    /// The number of the kernel with its ridge that belongs to two variables.
    [[nodiscard]] double value(Index a, Index b) {
        return static_cast<double>(row(a)[b]) + (a == b && !ridge.empty() ? ridge[a] : 0.0);
    }
    /// Where a row of `kernel` begins.
    [[nodiscard]] Real* own_row(Index t) { return kernel.data() + t * stride; }

  private:
    void resize_state(Index count, Index capacity);
};

struct SmoResult {
    Index iterations = 0;
    double violation = 0.0;
    bool unbounded = false;  ///< an unbounded variable could grow for ever: the hard margin does not exist
};

/// When steps on two variables give way to jumps, and what jumps may cost.
struct SmoSettings {
    /// Steps for each variable before the first jump: a search of vehicle took 1.36 s with one, 1.46 s with four.
    Index steps_before_jump = 1;
    /// What steps must have cost before the first jump, as a share of what it costs: steps alone may soon be done, and
    /// if not, they and the jump take at most twice what the jump alone would.
    double share_before_jump = 1.0;
    int first_jumps = 4, most_jumps = 64;  ///< in a row, each blocked by a bound, at first and at most
    Index step_cost = 4;  ///< of a step for each variable, if a multiplication of a factorisation takes 1
    /// Of a variable that a factor loses or gains, if a new factor takes 1 for each of its variables.
    Index change_cost = 6;
    Index most_free = 768;  ///< a larger system is not worth it: its cost grows with the cube
    /// Steps are taken without a look for a stop until they have gone over so many variables in all, which takes 30 ms.
    Index between_polls = 50'000'000;
    /// A kernel that is singular on the free variables is guarded by a ridge, the larger, the more often rounding won.
    int attempts = 3;
    double larger_ridge = 1e3;
};

/// Sequential minimal optimisation with second-order choice of the second variable (Fan, Chen and Lin 2005), on a block
/// whose kernel is at hand, until the violation is at most `tolerance` or `max_iterations` steps were taken. One pass
/// over the block updates the gradient and finds the first variable of the next step, a second pass finds its partner.
/// With `blas`, when that takes long, jumps (`SmoJump`) are tried in between. With `control`, a stop ends it early, at
/// a better point than it began with.
template <class Real>
SmoResult smo(SmoBlock<Real>& block, double tolerance, Index max_iterations, const Blas* blas = nullptr,
              const SmoSettings& settings = {}, const Control* control = nullptr);

}  // namespace polymargin
