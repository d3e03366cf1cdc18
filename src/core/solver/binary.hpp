#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "kernel/gram.hpp"
#include "problem/binary.hpp"
#include "problem/cost_path.hpp"
#include "problem/folds.hpp"
#include "solver/polish.hpp"
#include "solver/shared_start.hpp"
#include "solver/smo.hpp"
#include "solver/status.hpp"
#include "support/blas.hpp"
#include "support/control.hpp"

namespace polymargin {

struct BinarySettings {
    double tolerance = 1e-3;           ///< epsilon of Hsu & Lin (22)
    double gap = 0.0;                  ///< stop at this relative duality gap instead; 0: at the violation
    Index max_iterations = -1;         ///< SMO steps for one problem; -1: no limit
    Index working_set = 512;           ///< most variables optimised together
    Index entrants = 64;               ///< most variables that enter the working set in a round
    Index entrants_of_long_rows = 64;  ///< the same, for problems of more than `long_row` examples
    /// A problem of so few is its own working set from the start: rounds cost more than steps there.
    Index whole_set = 128;
    /// The same for paths of costs, which load the kernel once for all of them. (Paths of 5 costs with five folds at
    /// gamma 1: 35 instead of 63 ms on 1,484 rows of ten classes, 39 instead of 60 on 2,250 of four.)
    Index whole_set_of_path = 1536;
    /// The same where all rows are there. (Each class against all others, sums of 27 fits: 1,000 overlapping rows in 10
    /// classes 1.09 s and with 1,024 examples 1.67; vehicle 256 and 214 ms; 251 rows in 15 classes 48 ms, and 69 with
    /// 128.)
    Index whole_set_of_rows = 512;
    /// The matrix of a class is computed if its partners, each counted at most as often as the class itself, have this
    /// share of its examples. (5 classes, one with 90 % of 3,830, C = 1: 18 to 21 ms instead of 43 to 46.)
    double share_of_rows = 0.25;
    /// Where all rows are there, up to `long_row` examples, more enter at once, one for so many examples: that takes
    /// fewer rounds, each of which reads the rows of all that moved. Longer rows leave the cache between their load and
    /// the gradient. (Each class against all others, working sets of 1,024 and many entrants against 512 and 64, one
    /// thread: satimage .063 and .074 s, usps .203 and .199, letter 1.60 and 1.45.)
    bool rows_are_there = false;
    Index examples_for_entrant = 16, most_entrants = 256;
    Index working_set_of_whole = 1024;
    /// Problems of up to so many examples become their own working set once more variables are free than it holds, or
    /// most: rounds would load the same ones again and again. (Each class against all others, C = 10^4: segment .10 s
    /// instead of .19, satimage .12 instead of .19; ten unequal classes .040 instead of .052.)
    Index most_in_one_piece = 4096;
    Index in_flight = 4;         ///< most problems solved side by side
    Index long_row = 8192;       ///< from this many examples on, kernel rows are what a problem costs
    Index few_features = 64;     ///< rows of so few cost little however few are computed together
    Index rows_in_flight = 128;  ///< that there must be memory for, for each problem solved side by side
    /// Most problems that are solved at the same time when each has kernel rows of its own: what they need is bounded.
    Index most_apart = 16;
    /// A working set is solved to this share of the violation it came with: further would be wasted on a part of the
    /// problem. The second is for all costs of a path but the first: the working set has most examples that matter
    /// then.
    double inner_share = 0.1, inner_share_of_path = 0.01;
    /// A path of costs begins at an even point instead of zero if, of the scores of so many examples there, others give
    /// this share of what the example itself gives at most. (The first of them at gamma 10: 4 instead of 54 ms.)
    Index examples_of_start = 16;
    double share_of_others = 0.5;
    /// A hard margin below this share of the largest example is taken for none: see `inseparable`.
    double smallest_margin = 1e-4;
    GapSettings closing;
    bool shares_start = false;  ///< have all problems all examples, and may they begin together?
    SharedStartSettings sharing;
    PolishRule polishing;
    SmoSettings smo;
    const Blas* polish = nullptr;       ///< if given, and the store has the whole matrix, refine the answer to rounding
    const Blas* finish = nullptr;       ///< likewise, refine answers whose gap is open
    const Blas* jump = nullptr;         ///< if given, solve for all free variables of a working set that takes long
    const Folds* folds = nullptr;       ///< if given, solve each problem again without each fold
    std::span<const CostPath> paths{};  ///< if given, solve each problem for each of them, one cost after the other
};

struct BinaryResult {
    std::vector<Index> support;  ///< examples with non-zero coefficient, in the engine's numbering, ascending
    std::vector<double> beta;    ///< their signed coefficients
    double intercept = 0.0;
    Objectives objectives;
    double violation = 0.0;
    Index iterations = 0;
    Status status = Status::converged;  ///< of the problem or, if it converged, of the first fold that did not
    std::vector<double> held_out;       ///< with folds: each example's decision value by the machine without its fold
};

/// Where the solution starts: signed coefficients of some examples, feasible for the problem.
struct BinaryStart {
    std::vector<Index> support;
    std::vector<double> beta;
};

/// Solve many binary problems on one store of kernel rows by two-level decomposition.
///
/// The problems advance side by side, a round at a time. In a round each problem chooses a working set (its free
/// variables and the worst violators), the store computes all kernel rows that any of them lacks, and each problem
/// solves its working set by SMO on a dense block that fits the cache and brings the gradient of all its examples up to
/// date. A problem that ends makes room for the next. Nothing in this order depends on the number of threads.
///
/// `cost_bounds` holds C_i in the engine's numbering and `starts` is empty or has one entry for each problem. With
/// folds, a problem that is solved goes on to the problems that leave a fold out: most of the rows that they need are
/// there. With paths of costs, whose bounds then count, it goes on to the next cost, and there is a result for each
/// path, cost and problem, those of the first path and its first cost first.
template <class Real>
std::vector<BinaryResult> solve_binary(std::span<const BinaryProblem> problems, std::span<const double> cost_bounds,
                                       GramStore<Real>& store, const BinarySettings& settings, Control& control,
                                       std::span<const BinaryStart> starts = {});

}  // namespace polymargin
