#pragma once

#include <vector>

#include "problem/multiclass.hpp"

namespace polymargin {

/// q(B) of a row; nothing for a loss without it.
template <RowLoss Loss>
[[nodiscard]] double conjugate_of(const Loss& loss, std::span<const double> row, const Example& example) {
    if constexpr (Loss::kConjugate) {
        return loss.conjugate(row, example);
    } else {
        return 0.0;
    }
}

/// Call `each(m, (Q row)_m)` for every class; nothing for a loss without a conjugate term.
template <RowLoss Loss, class Each>
void for_conjugate_gradient(const Loss& loss, std::span<const double> row, const Example& example, Each&& each) {
    if constexpr (Loss::kConjugate) {
        std::vector<double> gradient(row.size());
        loss.conjugate_gradient(row, example, gradient);
        for (std::size_t m = 0; m < gradient.size(); ++m) each(static_cast<Index>(m), gradient[m]);
    }
}

/// d'Qe
template <RowLoss Loss>
[[nodiscard]] double conjugate_curvature(const Loss& loss, const Example& example, Index classes, const Direction& d,
                                         const Direction& e) {
    double curvature = 0.0;
    if constexpr (Loss::kConjugate) {
        std::vector<double> row(classes, 0.0), product(classes);
        e.add_to(row, 1.0);
        loss.conjugate_gradient(row, example, product);
        curvature = d.slope([&](Index m) { return product[m]; });
    }
    return curvature;
}

}  // namespace polymargin
