#include "problem/class_costs.hpp"

namespace polymargin {
namespace {

static_assert(MulticlassLoss<WithCosts<WestonWatkins>> && MulticlassLoss<WithCosts<CrammerSinger>>);
static_assert(MulticlassLoss<WithCosts<AbsoluteSum>> && MulticlassLoss<WithCosts<AbsoluteMaximum>>);
static_assert(LimitedLoss<WithCosts<WestonWatkins>> && SimplexLoss<WithCosts<CrammerSinger>>);
static_assert(!kOwnOffset<WithCosts<WestonWatkins>>);

}  // namespace
}  // namespace polymargin
