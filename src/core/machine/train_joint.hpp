#pragma once

#include <vector>

#include "machine/kernel_session.hpp"
#include "problem/bias.hpp"
#include "problem/losses.hpp"
#include "solver/decomposition.hpp"
#include "solver/free_bias.hpp"
#include "solver/joint_solver.hpp"
#include "solver/polish_joint.hpp"

namespace polymargin {

/// When a joint machine starts from a linear one, see `low_rank_start`.
struct LowRankSettings {
    Index least_examples = 256;  ///< fewer are solved quickly in any way
    /// The same where the whole matrix is at hand and the bias is not free: with steps on two examples at a time the
    /// start costs more than it saves (satimage, wide kernel, C=100: 0.08 s without, 0.49 with; vowel: 36 and 120 ms).
    Index least_of_whole = 8192;
    /// Features are few if they cost nothing, or if there are many examples for each; never more than so many, nor of
    /// few examples.
    Index cheap_features = 128, most_features = 512, many_examples = 10, few_examples = 4;
    /// Where kernel rows have to be computed, steps ask for few of them unless the kernel is very wide; a start needs
    /// those of all its support vectors. (Shuttle with a wide kernel took seconds with it.)
    Index few_features = 64;
    /// The part of the kernel that the features may leave out, and the gap of the machine on them: what is better
    /// belongs to the kernel itself.
    double left_out = 3e-4, gap = 1e-5;
    /// Loops over the examples, of Newton steps too, after which the start is taken as it is: where single precision
    /// does not come to the gap, loops went on for minutes.
    Index most_loops = 600;
};

/// A joint machine on one data set, and how far to train it.
struct JointProblem {
    AnyLoss loss;
    BiasKind bias = BiasKind::none;
    std::vector<double> cost_bounds;  ///< C_i, in the engine's numbering
    std::vector<Index> labels;        ///< class of each example, likewise
    Index classes = 0;
    std::vector<Index> start_support;  ///< a warm start: examples, ascending,
    std::vector<double> start_rows;    ///< their rows of coefficients,
    std::vector<double> start_bias;    ///< and the bias of each class, used when it is free
    bool refine = true;                ///< make the answer of a small problem exact to rounding
    DecompositionSettings settings;
    FreeBiasSettings free_bias;
    PolishSettings polish;
    GapSettings closing;
    LowRankSettings low_rank;
    TakeoverSettings takeover;
};

struct JointReport {
    std::vector<Index> support;     ///< examples with a non-zero coefficient, ascending
    std::vector<double> rows;       ///< their coefficients, a row of `classes` numbers each
    std::vector<double> intercept;  ///< of each class
    MulticlassObjectives objectives;
    double violation = 0.0;
    Index iterations = 0;
    Index bias_steps = 0;  ///< proximal steps on a free bias
    Status status = Status::converged;
    Index evaluations = 0;
    bool single_precision = false;
    bool whole_matrix = false;
    bool interior_point = false;  ///< whether that method took over
};

/// Train a joint machine, one of several perhaps: the whole matrix is kept for the next one, rows are not.
/// Throws std::invalid_argument if it asks for more than the session was made exact enough for.
[[nodiscard]] JointReport train_joint(KernelSession& session, const JointProblem& problem, Control& control);

/// Everything that one machine needs.
struct JointRequest : TrainingData, JointProblem {};

/// Train one machine, in a session of its own.
[[nodiscard]] JointReport train_joint(const JointRequest& request, const Blas& blas, Control& control);

}  // namespace polymargin
