#pragma once

#include <variant>

#include "problem/class_costs.hpp"
#include "problem/one_vs_rest.hpp"
#include "problem/squared_hinge.hpp"

namespace polymargin {

/// The losses there are. A new one is a file of its own and a name here. Linear machines take each of them, kernel
/// machines those that are a `MulticlassLoss`.
using AnyLoss = std::variant<WestonWatkins, CrammerSinger, OneVsRest, AbsoluteSum, AbsoluteMaximum,
                             SquaredWestonWatkins, SquaredCrammerSinger, SquaredOneVsRest, WithCosts<WestonWatkins>,
                             WithCosts<CrammerSinger>, WithCosts<AbsoluteSum>, WithCosts<AbsoluteMaximum>>;

}  // namespace polymargin
