#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "problem/multiclass.hpp"
#include "support/vectors.hpp"

namespace polymargin::proximal_newton {

/// The classes of a face are the bits of a number.
constexpr Index kMostClasses = 64;
/// Rows are padded to whole vectors of so many bytes, as those of `Weights` are.
constexpr int kBytes = 32;

/// Some examples, their scores and the points of the dual that they start from. All rows have `width` places; the
/// padding of the scores and of the centres is zero, and so is that of the answers.
template <class Real>
struct AnswerTile {
    Index count, classes, width;
    const Real* scores;
    const Real* centre;
    const Real* shift;  ///< of each class: a free bias, which is part of the scores already
    const Example* examples;
    const Real* curvatures;  ///< c_i
    Real* answers;           ///< B_i
    std::uint64_t* faces;    ///< of each example, the classes that curve its scores
};

struct AnswerSums {
    double losses = 0.0;  ///< of the scores, with the costs
    double linear = 0.0;  ///< sum_i (o_i + shift)'B_i
};

template <class Real>
using RowVector = Vectors<Real, kBytes>;

/// Losses of such limits whose wrong classes differ by their scores alone: one offset for all lanes of a vector.
template <class Loss>
concept LevelLoss = LimitedLoss<Loss> && kOwnOffset<Loss>;

/// Rows of pairs of the own class and another, each in [0, C] by itself: between two points of the dual their distance
/// is that of the pairs, `sum_m (a_m - A_m)^2`, so that each answers for itself. That of others is `|B - A|^2`.
template <RowLoss Loss>
[[nodiscard]] bool are_pairs(const Loss& loss) {
    if constexpr (LevelLoss<Loss>) {
        return std::isinf(loss.row_limits(1.0).most);
    } else {
        return false;
    }
}

/// Own in [0, C], others in [-C, 0]: each class for itself.
template <class Loss>
concept BoxLoss = SeparableLoss<Loss> && requires { requires Loss::kBox; };

template <class Real>
POLYMARGIN_INLINE Real sum_of_lanes(const typename RowVector<Real>::Reals& v) {
    return of_all_lanes<Real, kBytes>(v, [](auto a, auto b) POLYMARGIN_INLINED { return a + b; })[0];
}

/// The bits of the lanes for which the choice is true.
template <class Real>
POLYMARGIN_INLINE std::uint64_t bits_of(const typename RowVector<Real>::Ints& choice) {
    using V = RowVector<Real>;
    const typename V::Ints one = typename V::Ints{} + 1;
    const auto bits = choice & (one << V::lanes);
    return static_cast<std::uint64_t>(
        of_all_lanes<Real, kBytes>(bits, [](auto a, auto b) POLYMARGIN_INLINED { return a | b; })[0]);
}

/// The lanes whose bits are set.
template <class Real>
POLYMARGIN_INLINE typename RowVector<Real>::Ints lanes_of(std::uint64_t bits) {
    using V = RowVector<Real>;
    const typename V::Ints one = typename V::Ints{} + 1;
    const typename V::Ints mask = one << V::lanes;
    const auto all = typename V::Ints{} + static_cast<typename V::Int>(bits & ((std::uint64_t{1} << V::count) - 1));
    return (all & mask) == mask;
}

/// Alone in its row a class has nobody to exchange with.
[[nodiscard]] inline std::uint64_t exchanging(std::uint64_t face) {
    return std::has_single_bit(face) ? 0 : face;
}

}  // namespace polymargin::proximal_newton
