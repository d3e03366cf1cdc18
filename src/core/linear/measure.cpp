#include "linear/measure.hpp"

#include <algorithm>
#include <limits>

#include "support/multiversion.hpp"

namespace polymargin {
namespace {

template <class Real>
struct Pass {
    Real* scores;
    const Real* bias;
    const Real* fall;
    const Real* grow;
    Index count;  // a whole number of vectors
};

template <class Real>
POLYMARGIN_INLINE Extremes<Real> run(const Pass<Real>& p) {
    constexpr Index lanes = static_cast<Index>(32 / sizeof(Real));
    Real highest[lanes], lowest[lanes];
    for (Index l = 0; l < lanes; ++l) {
        highest[l] = -std::numeric_limits<Real>::infinity();
        lowest[l] = std::numeric_limits<Real>::infinity();
    }
    for (Index t = 0; t < p.count; t += lanes) {
        for (Index l = 0; l < lanes; ++l) {
            const Real s = p.scores[t + l] += p.bias[t + l];
            const Real top = s + p.fall[t + l], bottom = s + p.grow[t + l];
            highest[l] = top > highest[l] ? top : highest[l];
            lowest[l] = bottom < lowest[l] ? bottom : lowest[l];
        }
    }
    for (Index half = lanes / 2; half > 0; half /= 2) {
        for (Index l = 0; l < half; ++l) {
            highest[l] = highest[l + half] > highest[l] ? highest[l + half] : highest[l];
            lowest[l] = lowest[l + half] < lowest[l] ? lowest[l + half] : lowest[l];
        }
    }
    return {highest[0], lowest[0]};
}

POLYMARGIN_MULTIVERSION Extremes<float> versioned(const Pass<float>& pass) {
    return run(pass);
}
POLYMARGIN_MULTIVERSION Extremes<double> versioned(const Pass<double>& pass) {
    return run(pass);
}

}  // namespace

template <class Real>
Extremes<Real> add_and_measure(std::span<Real> scores, std::span<const Real> bias, Real offset, Index label, Real own,
                               std::span<const Real> fall, std::span<const Real> grow) {
    // For the pass the score of the class carries what its gradient has more.
    if (label >= 0) scores[label] += own;
    auto [highest, lowest] =
        versioned({scores.data(), bias.data(), fall.data(), grow.data(), static_cast<Index>(scores.size())});
    if (label >= 0) scores[label] -= own;
    return {highest + offset, lowest + offset};
}

template Extremes<float> add_and_measure<float>(std::span<float>, std::span<const float>, float, Index, float,
                                                std::span<const float>, std::span<const float>);
template Extremes<double> add_and_measure<double>(std::span<double>, std::span<const double>, double, Index, double,
                                                  std::span<const double>, std::span<const double>);

}  // namespace polymargin
