#pragma once

#include <limits>
#include <vector>

#include "kernel/data.hpp"
#include "problem/bias.hpp"
#include "problem/losses.hpp"
#include "solver/linear_task.hpp"
#include "support/blas.hpp"

namespace polymargin {

enum class LinearMethod {
    sequential_dual,
    exponentiated_gradient,  ///< for losses on a simplex, no free bias, no warm start
};

struct LinearRequest {
    LinearMethod method = LinearMethod::sequential_dual;
    DataView data;
    AnyLoss loss;
    BiasKind bias = BiasKind::none;
    std::vector<Index> order;         ///< rows of `data` that take part
    std::vector<Index> labels;        ///< class of each
    std::vector<double> cost_bounds;  ///< C_i of each, positive and finite
    Index classes = 0;
    std::vector<Index> start_support;  ///< a warm start: examples, ascending,
    std::vector<double> start_rows;    ///< their rows of coefficients,
    std::vector<double> start_bias;    ///< and the bias of each class, used when it is free
    double gap = 1e-3;                 ///< stop when the relative duality gap is at most this
    /// Stop when no example violates its conditions by more than this; the gap is then made finer until it is so.
    double violation = std::numeric_limits<double>::infinity();
    SequentialSettings settings;
    LinearSettings tuning;
    int threads = 1;
};

struct LinearReport {
    std::vector<double> weights;    ///< features x classes
    std::vector<double> intercept;  ///< of each class
    std::vector<Index> starts;      ///< the coefficients of example i are [starts[i], starts[i + 1])
    std::vector<Index> columns;
    std::vector<double> coefficients;
    MulticlassObjectives objectives;  ///< their `gap()` is what training goes by
    double violation = 0.0;     ///< of the worst example, by the scores of the weights, as `Decomposition` measures it
    std::vector<Index> visits;  ///< to examples, for each class
    Status status = Status::converged;
    bool single_precision = false;
};

/// Train a linear machine in the dual without a kernel matrix.
[[nodiscard]] LinearReport train_linear(const LinearRequest& request, const Blas& blas, Control& control);

}  // namespace polymargin
