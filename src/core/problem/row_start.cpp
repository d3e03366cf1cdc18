#include "problem/row_start.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace polymargin {

void RowStart::check(Index examples, Index classes) const {
    if (std::ranges::adjacent_find(support, std::ranges::greater_equal()) != support.end() ||
        (!support.empty() && (support.front() < 0 || support.back() >= examples))) {
        throw std::invalid_argument("a start must name examples that there are, in ascending order");
    }
    if (std::ssize(rows) != std::ssize(support) * classes || (!bias.empty() && std::ssize(bias) != classes)) {
        throw std::invalid_argument("a start must have a number for each class in every row, and in the bias");
    }
}

void check_labels(std::span<const Index> labels, std::span<const double> cost_bounds, Index classes,
                  bool allow_no_class) {
    if (labels.size() != cost_bounds.size() || classes < 1) {
        throw std::invalid_argument(
            "labels and cost_bounds must have a number for each example, and there are classes");
    }
    const auto wrong = std::ranges::find_if(labels, [classes](Index y) { return y < 0 || y >= classes; });
    if (!allow_no_class && wrong != labels.end()) {
        throw std::invalid_argument("the label of example " + std::to_string(wrong - labels.begin()) +
                                    " must be a class, from 0 to " + std::to_string(classes - 1));
    }
}

}  // namespace polymargin
