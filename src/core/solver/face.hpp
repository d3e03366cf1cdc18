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

    /// From `kernel(i, j)` and `gradient(m, i)`, the conjugate term left out.
    template <class Kernel, class Gradient>
    FaceSystem(const Face& face, Index size, Kernel&& kernel, Gradient&& gradient)
        : matrix(size * size, 0.0), right(size, 0.0) {
        constexpr Index no_other = kNoClass - 1;  // what no other direction has, so that nothing is compared twice
        for (Index a = 0; a < std::ssize(face); ++a) {
            const auto& [i, one] = face[a];
            right[a] = -one.slope([&](Index m) { return gradient(m, i); });
            const Index gains = one.gains == kNoClass ? no_other : one.gains;
            const Index loses = one.loses == kNoClass ? no_other : one.loses;
            for (Index b = 0; b < std::ssize(face); ++b) {
                const auto& [j, other] = face[b];
                const int along =
                    (gains == other.gains) - (gains == other.loses) - (loses == other.gains) + (loses == other.loses);
                matrix[b * size + a] = along * kernel(i, j);  // zeros too: a branch is taken too irregularly
            }
        }
    }

    /// With directions without their means over the classes, `d_a'P d_b`, where the scores of a loss sum to zero.
    template <RowLoss Loss, class Kernel>
    void take_means_away(const Face& face, Index size, Index classes, Kernel&& kernel) {
        if constexpr (kScoresSumToZero<Loss>) {
            for (Index a = 0; a < std::ssize(face); ++a) {
                for (Index b = 0; b < std::ssize(face); ++b) {
                    const Direction &one = face[a].direction, &other = face[b].direction;
                    const double means = one.sum() * other.sum() / static_cast<double>(classes);
                    matrix[b * size + a] = (one.dot(other) - means) * kernel(face[a].example, face[b].example);
                }
            }
        }
    }

    /// Add the conjugate terms of a loss that has them; `example(i)` is that of a slot.
    template <RowLoss Loss, class Example>
    void add_conjugate(const Face& face, Index size, const Loss& loss, Index classes, Example&& example) {
        if constexpr (Loss::kConjugate) {
            for (Index a = 0; a < std::ssize(face); ++a) {
                const auto& [i, one] = face[a];
                for (Index b = 0; b < std::ssize(face); ++b) {
                    const auto& [j, other] = face[b];
                    if (i == j) matrix[b * size + a] += conjugate_curvature(loss, example(i), classes, one, other);
                }
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
