#pragma once

#include <span>
#include <vector>

#include "support/types.hpp"

namespace polymargin {

/// A point to start a machine from that has a row of coefficients for each example; it is made feasible.
struct RowStart {
    std::vector<Index> support;  ///< examples, ascending
    std::vector<double> rows;    ///< their coefficients, a number for each class
    std::vector<double> bias;    ///< of each class, used when it is free

    /// Throw std::invalid_argument unless the start is one for so many examples and classes.
    void check(Index examples, Index classes) const;
};

/// Throw std::invalid_argument unless there are as many labels as bounds, and the labels are classes; with
/// `allow_no_class` a label that is none is an example of no class.
void check_labels(std::span<const Index> labels, std::span<const double> cost_bounds, Index classes,
                  bool allow_no_class);

}  // namespace polymargin
