#pragma once

#include <vector>

#include "machine/storage.hpp"
#include "problem/losses.hpp"
#include "solver/decomposition.hpp"

namespace polymargin {

enum class BiasKind {
    none,
    regularized,  ///< part of w: the kernel is K + 1, Hsu & Lin (9) and (24)
    free,         ///< as in Hsu & Lin (4) and (23)
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
};

/// Train a joint machine, one of several perhaps: the whole matrix is kept for the next one, rows are not.
/// Throws std::invalid_argument if it asks for more than the session was made exact enough for.
[[nodiscard]] JointReport train_joint(KernelSession& session, const JointProblem& problem, Control& control);

/// Everything that one machine needs.
struct JointRequest : TrainingData, JointProblem {};

/// Train one machine, in a session of its own.
[[nodiscard]] JointReport train_joint(const JointRequest& request, const Blas& blas, Control& control);

}  // namespace polymargin
