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
/// So many rows, which are in random order, tell whether a dense matrix is one of zeros.
constexpr Index kLook = 1 << 14;
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
    std::iota(original_.begin(), original_.end(), Index{0});
    const Source source{data, order, shift};
    plan(source, workers);
    const Index features = std::ssize(original_), n = std::ssize(order);
    std::vector<std::uint32_t> place(features);
    for (Index f = 0; f < features; ++f) place[original_[f]] = static_cast<std::uint32_t>(f);
    values_ = Buffer<Real>(std::max<Index>(1, starts_[n]));
    workers.for_parts(n, [&](Range part) { read(source, part, place); });
}

template <class Real>
void LinearRows<Real>::plan(const Source& source, const Workers& workers) {
    const Index features = std::ssize(original_), n = std::ssize(source.order);
    if (!source.shift.empty() || share_of_entries(source.data, source.order, features, kLook) > kDense) {
        for (Index i = 0; i <= n; ++i) starts_[i] = i * features;
        return;
    }
    workers.for_parts(n, [&](Range part) {
        for (Index i = part.begin; i < part.end; ++i) starts_[i + 1] = entries_of(source.data, source.order[i]);
    });
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    std::vector<Index> occurrences(features, 0);
    Workers{.control = workers.control}.for_parts(n, [&](Range part) {
        for (Index i = part.begin; i < part.end; ++i) {
            for_entries(source.data, source.order[i], [&](Index f, double) { ++occurrences[f]; });
        }
    });
    std::ranges::stable_sort(original_, [&](Index a, Index b) { return occurrences[a] > occurrences[b]; });
    columns_ = Buffer<std::uint32_t>(std::max<Index>(1, starts_[n]));
}

template <class Real>
void LinearRows<Real>::read(const Source& source, Range part, std::span<const std::uint32_t> place) {
    const auto* dense_data = std::get_if<DenseView>(&source.data);
    for (Index i = part.begin; i < part.end; ++i) {
        if (dense_data != nullptr && i + kRowsAhead < part.end) fetch_row(*dense_data, source.order[i + kRowsAhead]);
        if (dense()) {
            read_dense(source, i);
        } else {
            Index at = starts_[i];
            for_entries(source.data, source.order[i], [&](Index f, double v) {
                columns_.data()[at] = place[f];
                values_.data()[at++] = static_cast<Real>(v);
            });
        }
        finish(source, i);
    }
}

template <class Real>
void LinearRows<Real>::read_dense(const Source& source, Index i) {
    Real* values = values_.data() + starts_[i];
    const Index count = starts_[i + 1] - starts_[i];
    if (const auto* matrix = std::get_if<DenseView>(&source.data); matrix != nullptr && source.shift.empty()) {
        std::visit(
            [&](const auto& from) {
                const auto* x = from.data() + source.order[i] * count;
                for (Index f = 0; f < count; ++f) values[f] = static_cast<Real>(x[f]);
            },
            matrix->values);
        return;
    }
    const auto shift = [&](Index f) { return source.shift.empty() ? 0.0 : source.shift[f]; };
    for (Index f = 0; f < count; ++f) values[f] = static_cast<Real>(-shift(f));
    for_entries(source.data, source.order[i], [&](Index f, double v) { values[f] = static_cast<Real>(v - shift(f)); });
}

/// The squared length, which must be a number that products with weights can stand.
template <class Real>
void LinearRows<Real>::finish(const Source& source, Index i) {
    const Row<Real> x = row(i);
    norms_[i] = sum_of_squares(x.values, x.count);
    if (norms_[i] <= kLargestNorm) return;
    double largest = 0.0;
    Index worst = 0;
    for_entries(source.data, source.order[i], [&](Index f, double v) {
        if (std::abs(v) > largest) largest = std::abs(v), worst = f;
    });
    refuse(source.order[i], worst);
}

template class LinearRows<float>;
template class LinearRows<double>;

}  // namespace polymargin
