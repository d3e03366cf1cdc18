#include "linear/rows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "linear/source.hpp"

namespace polymargin {
namespace {

/// Above this share of non-zeros the columns cost more than the zeros.
constexpr double kDense = 0.5;
/// Squared lengths beyond this overflow sooner or later in products with weights.
constexpr double kLargestNorm = 1e300;

[[noreturn]] void refuse(Index row, Index column) {
    throw std::invalid_argument("the value in row " + std::to_string(row) + ", column " + std::to_string(column) +
                                " is too large: its square overflows. Scale the data, for example with StandardScaler");
}

}  // namespace

template <class Real>
struct LinearRows<Real>::Source {
    const DataView& data;
    std::span<const Index> order;
    std::span<const double> shift;
};

template <class Real>
LinearRows<Real>::LinearRows(const DataView& data, std::span<const Index> order, const Workers& workers,
                             std::span<const double> shift)
    : starts_(order.size() + 1, 0), norms_(order.size(), 0.0), original_(features_of(data)) {
    const Index features = std::ssize(original_), n = std::ssize(order);
    std::vector<Index> occurrences(features, 0);
    for (Index i = 0; i < n; ++i) {
        Index count = 0;
        for_entries(data, order[i], [&](Index f, double) {
            ++occurrences[f];
            ++count;
        });
        starts_[i + 1] = starts_[i] + count;
    }
    std::iota(original_.begin(), original_.end(), Index{0});
    const bool dense = !shift.empty() || static_cast<double>(starts_[n]) > kDense * static_cast<double>(n * features);
    if (dense) {
        for (Index i = 0; i <= n; ++i) starts_[i] = i * features;
    } else {
        std::ranges::stable_sort(original_, [&](Index a, Index b) { return occurrences[a] > occurrences[b]; });
        columns_ = Buffer<std::uint32_t>(std::max<Index>(1, starts_[n]));
    }
    std::vector<std::uint32_t> place(features);
    for (Index f = 0; f < features; ++f) place[original_[f]] = static_cast<std::uint32_t>(f);
    values_ = Buffer<Real>(std::max<Index>(1, starts_[n]));
    workers.for_parts(n, [&](Range part) { read({data, order, shift}, part, place); });
}

template <class Real>
void LinearRows<Real>::read(const Source& source, Range part, std::span<const std::uint32_t> place) {
    for (Index i = part.begin; i < part.end; ++i) {
        Real* values = values_.data() + starts_[i];
        const Index count = starts_[i + 1] - starts_[i];
        if (dense()) {
            for (Index f = 0; f < count; ++f) {
                values[f] = source.shift.empty() ? Real(0) : static_cast<Real>(-source.shift[f]);
            }
        }
        double largest = 0.0;
        Index at = 0, worst = 0;
        for_entries(source.data, source.order[i], [&](Index f, double v) {
            if (dense()) {
                values[f] = static_cast<Real>(source.shift.empty() ? v : v - source.shift[f]);
            } else {
                columns_.data()[starts_[i] + at] = place[f];
                values[at++] = static_cast<Real>(v);
            }
            if (std::abs(v) > largest) {
                largest = std::abs(v);
                worst = f;
            }
        });
        double norm = 0.0;
        for (Index p = 0; p < count; ++p) norm += static_cast<double>(values[p]) * static_cast<double>(values[p]);
        if (!(norm <= kLargestNorm)) refuse(source.order[i], worst);
        norms_[i] = norm;
    }
}

template class LinearRows<float>;
template class LinearRows<double>;

}  // namespace polymargin
