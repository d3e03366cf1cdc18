#pragma once

#include <span>

#include "fixtures.hpp"
#include "solver/smo.hpp"

namespace fixtures {

/// A block with this kernel, `f = K b - y`, and boxes [0, C] or [-C, 0] by sign.
template <class Real>
polymargin::SmoBlock<Real> block_of(const Matrix& gram, std::span<const double> sign,
                                    std::span<const double> cost_bounds, std::span<const double> beta,
                                    polymargin::Index capacity) {
    const polymargin::Index n = gram.rows;
    polymargin::SmoBlock<Real> block;
    block.resize(n, capacity);
    for (polymargin::Index i = 0; i < n; ++i) {
        for (polymargin::Index j = 0; j < n; ++j)
            block.kernel.data()[i * block.stride + j] = static_cast<Real>(gram.at(i, j));
        block.diagonal.data()[i] = static_cast<float>(gram.at(i, i));
        block.beta.data()[i] = beta[i];
        block.lower.data()[i] = sign[i] > 0 ? 0.0 : -cost_bounds[i];
        block.upper.data()[i] = sign[i] > 0 ? cost_bounds[i] : 0.0;
        block.f.data()[i] = -sign[i];
        for (polymargin::Index j = 0; j < n; ++j) {
            block.f.data()[i] += static_cast<double>(static_cast<Real>(gram.at(i, j))) * beta[j];
        }
    }
    return block;
}

}  // namespace fixtures
