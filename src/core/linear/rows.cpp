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
LinearRows<Real>::LinearRows(const DataView& data, std::span<const Index> order, std::span<const double> shift,
                             const Workers& workers)
    : source_{data, order, shift},
      starts_(order.size() + 1, 0),
      norms_(order.size(), 0.0),
      original_(features_of(data)) {
    std::iota(original_.begin(), original_.end(), Index{0});
    plan(workers);
    values_ = Buffer<Real>(std::max<Index>(1, starts_.back()));
}

template <class Real>
void LinearRows<Real>::read_to(Index count, const Workers& workers) {
    if (count <= ready_) return;
    const Index features = std::ssize(original_), first = ready_;
    std::vector<std::uint32_t> place(features);
    for (Index f = 0; f < features; ++f) place[original_[f]] = static_cast<std::uint32_t>(f);
    workers.for_parts(count - first, [&](Range part) { read({first + part.begin, first + part.end}, place); });
    ready_ = count;
}

template <class Real>
void LinearRows<Real>::plan(const Workers& workers) {
    const auto& [data, order, shift] = source_;
    const Index features = std::ssize(original_), n = std::ssize(order);
    if (!shift.empty() || share_of_entries(data, order, features, kLook) > kDense) {
        for (Index i = 0; i <= n; ++i) starts_[i] = i * features;
        return;
    }
    workers.for_parts(n, [&](Range part) {
        for (Index i = part.begin; i < part.end; ++i) starts_[i + 1] = entries_of(source_.data, source_.order[i]);
    });
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    std::vector<Index> occurrences(features, 0);
    Workers{.control = workers.control}.for_parts(n, [&](Range part) {
        for (Index i = part.begin; i < part.end; ++i) {
            for_entries(source_.data, source_.order[i], [&](Index f, double) { ++occurrences[f]; });
        }
    });
    std::ranges::stable_sort(original_, [&](Index a, Index b) { return occurrences[a] > occurrences[b]; });
    for (Index entries = 0; 2 * entries < starts_[n]; ++common_) entries += occurrences[original_[common_]];
    often_.assign(n, 0);
    columns_ = Buffer<std::uint32_t>(std::max<Index>(1, starts_[n]));
}

template <class Real>
void LinearRows<Real>::read(Range part, std::span<const std::uint32_t> place) {
    const auto& [data, order, shift] = source_;
    const auto* dense_data = std::get_if<DenseView>(&data);
    for (Index i = part.begin; i < part.end; ++i) {
        if (dense_data != nullptr && i + kRowsAhead < part.end) fetch_row(*dense_data, order[i + kRowsAhead]);
        if (dense()) {
            read_dense(i);
        } else {
            Index first = starts_[i], last = starts_[i + 1];
            for_entries(data, order[i], [&](Index f, double v) {
                const Index at = place[f] < common_ ? first++ : --last;
                columns_.data()[at] = place[f];
                values_.data()[at] = static_cast<Real>(v);
            });
            often_[i] = static_cast<std::uint32_t>(first - starts_[i]);
        }
        finish(i);
    }
}

template <class Real>
void LinearRows<Real>::read_dense(Index i) {
    const auto& [data, order, shift] = source_;
    Real* values = values_.data() + starts_[i];
    const Index count = starts_[i + 1] - starts_[i];
    if (const auto* matrix = std::get_if<DenseView>(&data)) {
        std::visit(
            [&](const auto& from) {
                const auto* x = from.data() + order[i] * count;
                if (shift.empty()) {
                    for (Index f = 0; f < count; ++f) values[f] = static_cast<Real>(x[f]);
                } else {
                    const double* s = shift.data();
                    for (Index f = 0; f < count; ++f) values[f] = static_cast<Real>(static_cast<double>(x[f]) - s[f]);
                }
            },
            matrix->values);
        return;
    }
    std::fill_n(values, count, Real(0));
    for_entries(data, order[i], [&](Index f, double v) { values[f] = static_cast<Real>(v); });
}

/// The squared length, which must be a number that products with weights can stand.
template <class Real>
void LinearRows<Real>::finish(Index i) {
    const Row<Real> x = row(i);
    norms_[i] = sum_of_squares(x.values, x.count);
    if (norms_[i] <= kLargestNorm) return;
    double largest = 0.0;
    Index worst = 0;
    for_entries(source_.data, source_.order[i], [&](Index f, double v) {
        if (std::abs(v) > largest) largest = std::abs(v), worst = f;
    });
    refuse(source_.order[i], worst);
}

template class LinearRows<float>;
template class LinearRows<double>;

}  // namespace polymargin
