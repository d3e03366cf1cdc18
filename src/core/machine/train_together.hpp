#pragma once

#include <variant>
#include <vector>

#include "machine/kernel_session.hpp"
#include "problem/crammer_singer.hpp"
#include "problem/weston_watkins.hpp"
#include "solver/decomposition.hpp"

namespace polymargin {

/// The losses there are. A new one is a file of its own and a name here.
using AnyLoss = std::variant<WestonWatkins, CrammerSinger>;

enum class BiasKind {
    none,
    regularized,  ///< part of w: the kernel is K + 1, H&L (9) and (24)
    free,         ///< as in H&L (4) and (23)
};

/// An all-together machine on one data set, and how far to train it.
struct TogetherProblem {
    AnyLoss loss;
    BiasKind bias = BiasKind::none;
    std::vector<double> upper;  ///< C_i, in the engine's numbering
    std::vector<Index> labels;  ///< class of each example, likewise
    Index classes = 0;
    std::vector<Index> start_support;  ///< a warm start: examples, ascending,
    std::vector<double> start_rows;    ///< their rows of coefficients,
    std::vector<double> start_bias;    ///< and the bias of each class, used when it is free
    bool refine = true;                ///< make the answer of a small problem exact to rounding
    DecompositionSettings settings;
};

struct TogetherReport {
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

/// Train an all-together machine, one of several perhaps: the whole matrix is kept for the next one, rows are not.
/// Throws std::invalid_argument if it asks for more than the session was made exact enough for.
[[nodiscard]] TogetherReport train_together(KernelSession& session, const TogetherProblem& problem, Control& control);

/// Everything that one machine needs.
struct TogetherRequest : TrainingData, TogetherProblem {};

/// Train one machine, in a session of its own.
[[nodiscard]] TogetherReport train_together(const TogetherRequest& request, const Blas& blas, Control& control);

}  // namespace polymargin
