#pragma once

#include "support/types.hpp"

namespace polymargin {

/// How a block of examples is solved: steps on one or two of them, and jumps to the optimum of the face they are in.
struct BlockSettings {
    /// Steps for each example before the free coefficients are solved for; after the first time one is enough.
    Index steps_before_jump = 4;
    /// Jumps may take this share of the work that steps take: so a block takes at most about twice the better of both.
    double jump_share = 1.0;
    /// That share is made so much smaller when, for the same work, jumps gained less than this part of what the steps
    /// just before them did: those before gain most of what a block brings. It becomes larger again, a little with each
    /// block that has none. (Where bounds cut all of them short, as with a simplex for each row and overlapping
    /// classes, they gained a thousandth and took half of the time.)
    double jump_worth = 0.1, fewer_jumps = 0.25, more_jumps = 1.25;
    /// Steps for each example after which a part of a face that is too large is solved for: sooner it cost more than it
    /// saved on satimage.
    Index slow_steps = 16;
    /// Jumps that go on where single rows meet their bounds: shorter each time, down to this. Hard problems (large C,
    /// wide kernels) took a tenth of the time with them.
    double shorter = 0.25, shortest = 1e-9;
    Index most_free = 768;  ///< a larger face is not worth factorising: the cost grows with the cube
    double close = 0.5;     ///< a promise that is at most so much too large is taken for exact
    /// What it takes, in operations of a matrix product: to bring one gradient of all examples up to date and see
    /// whose is extreme, and to choose the next example, for each of them; for each entry of a system that is solved,
    /// and that of a sum of kernel rows. (A step takes three such passes and a choice, of 768 examples 0.8 us.)
    double pass_cost = 5.0, choice_cost = 2.0, entry_cost = 30.0, sum_cost = 6.0;
};

}  // namespace polymargin
