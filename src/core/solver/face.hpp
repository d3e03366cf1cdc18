#pragma once

#include <map>
#include <span>
#include <vector>

#include "problem/conjugate.hpp"

namespace polymargin {

/// A direction that is free, of one example (or slot).
struct FreeDirection {
    Index example;
    Direction direction;
};

/// The face of the feasible set that a point is in: all directions that are free.
using Face = std::vector<FreeDirection>;

/// The linear conditions for the optimum of a face, `sum_b H_ab p_b = -d_a'G_i` with `H_ab = d_a'(K_ij + [i = j] Q_i)
/// d_b` for the directions d_a of example i and d_b of j, in the upper left of a system of `size` rows (column-major).
struct FaceSystem {
    std::vector<double> matrix, right;

    /// `kernel(i, j)`, `gradient(m, i)` and `conjugate(i, d, e)`, which is d'Q_i e.
    template <class Kernel, class Gradient, class Conjugate>
    FaceSystem(const Face& face, Index size, Kernel&& kernel, Gradient&& gradient, Conjugate&& conjugate)
        : matrix(size * size, 0.0), right(size, 0.0) {
        for (Index a = 0; a < std::ssize(face); ++a) {
            const auto& [i, one] = face[a];
            right[a] = -one.slope([&](Index m) { return gradient(m, i); });
            for (Index b = 0; b < std::ssize(face); ++b) {
                const auto& [j, other] = face[b];
                const int along = one.dot(other);
                if (along != 0) matrix[b * size + a] = along * kernel(i, j);
                if (i == j) matrix[b * size + a] += conjugate(i, one, other);
            }
        }
    }
};

/// What the step `p` along the directions of a face does to the row of each example.
[[nodiscard]] inline std::map<Index, std::vector<double>> row_changes(const Face& face, std::span<const double> p,
                                                                      Index classes) {
    std::map<Index, std::vector<double>> changes;
    for (std::size_t a = 0; a < face.size(); ++a) {
        face[a].direction.add_to(changes.try_emplace(face[a].example, classes, 0.0).first->second, p[a]);
    }
    return changes;
}

}  // namespace polymargin
