#pragma once

#include <stdexcept>

#include "problem/absolute_margins.hpp"
#include "problem/crammer_singer.hpp"
#include "problem/weston_watkins.hpp"

namespace polymargin {

/// Another joint loss with costs between classes, by margin rescaling: the margin that a class is held to depends on
/// the class of the example as well, `t_ym`. Hinges are
///
///     t_ym - (s_y - s_m)    with relative margins,    t_ym - sigma_m s_m    with absolute ones,
///
/// and the loss makes of them what it makes of its own. Of the dual they change the offsets alone, `o_ym = t_ym` for
/// the wrong classes, 0 or `-t_yy` for the own one: feasible sets, and all that is asked of rows, are those of the
/// other loss. So is inherited what does not read a margin.
template <class Loss>
class WithCosts : public Loss {
  public:
    /// `targets` are t, classes x classes, the class of the example first; relative margins do not read t_yy.
    WithCosts(const Loss& loss, Index classes, std::vector<double> targets)
        : Loss(loss), classes_(classes), table_(std::move(targets)) {
        if (classes < 1 || std::ssize(table_) != classes * classes) {
            throw std::invalid_argument("targets must be classes x classes");
        }
        for (Index y = 0; y < classes; ++y) {
            double& own = table_[y * classes + y];
            own = kRelative ? 0.0 : -own;
        }
    }

    [[nodiscard]] std::span<const double> offsets(Index label) const {
        return std::span(table_).subspan(label * classes_, classes_);
    }
    [[nodiscard]] double loss(std::span<const double> scores, Index label) const {
        const auto o = offsets(label);
        return Loss::loss_of(classes_, label, [&](Index m) {
            if constexpr (kRelative) return o[m] - (scores[label] - scores[m]);
            return m == label ? -o[m] - scores[m] : o[m] + scores[m];
        });
    }
    /// Targets of a hard margin are not zero.
    [[nodiscard]] double margin(std::span<const double> scores, Index label) const {
        const auto o = offsets(label);
        double smallest = std::numeric_limits<double>::infinity();
        for (Index m = 0; m < classes_; ++m) {
            if (!Loss::has_hinge(m == label)) continue;
            const double lead = kRelative ? scores[label] - scores[m] : -scores[m];
            smallest = std::min(smallest, lead / o[m]);
        }
        return smallest;
    }

  private:
    static constexpr bool kRelative = Loss::kRowsSumToZero;

    Index classes_;
    std::vector<double> table_;  // offsets
};

}  // namespace polymargin
