#pragma once

#include <map>
#include <vector>

#include "problem/multiclass.hpp"

namespace polymargin {

/// An exchange that is free, of one example (or slot).
struct FreeExchange {
    Index example;
    Exchange exchange;
};

/// The face of the feasible set that a point is in: all exchanges that are free.
using Face = std::vector<FreeExchange>;

/// The linear conditions for the optimum of a face, `sum_b H_ab p_b = -(G_ig - G_il)` with
/// `H_ab = K_ij (e_g - e_l)'(e_g' - e_l')`, in the upper left of a system of `size` rows (column-major).
struct FaceSystem {
    std::vector<double> matrix, right;

    template <class Kernel, class Gradient>
    FaceSystem(const Face& face, Index size, Kernel&& kernel, Gradient&& gradient)
        : matrix(size * size, 0.0), right(size, 0.0) {
        for (Index a = 0; a < std::ssize(face); ++a) {
            const auto& [i, one] = face[a];
            right[a] = gradient(one.loses, i) - gradient(one.gains, i);
            for (Index b = 0; b < std::ssize(face); ++b) {
                const auto& [j, other] = face[b];
                const int along = (one.gains == other.gains) - (one.gains == other.loses) - (one.loses == other.gains) +
                                  (one.loses == other.loses);
                if (along != 0) matrix[b * size + a] = along * kernel(i, j);
            }
        }
    }
};

/// What the step `p` along the exchanges of a face does to the row of each example.
[[nodiscard]] inline std::map<Index, std::vector<double>> row_changes(const Face& face, std::span<const double> p,
                                                                      Index classes) {
    std::map<Index, std::vector<double>> changes;
    for (std::size_t a = 0; a < face.size(); ++a) {
        auto& change = changes.try_emplace(face[a].example, classes, 0.0).first->second;
        change[face[a].exchange.gains] += p[a];
        change[face[a].exchange.loses] -= p[a];
    }
    return changes;
}

}  // namespace polymargin
