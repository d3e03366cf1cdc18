#include "kernel/points.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace polymargin {
namespace {

/// Row `row` of a dense matrix minus `shift`, in the engine's precision.
template <class Real, class Value>
void load_row(std::span<const Value> values, Index row, Index features, std::span<const double> shift, Real* out) {
    const Value* in = values.data() + row * features;
    if (shift.empty()) {
        for (Index f = 0; f < features; ++f) out[f] = static_cast<Real>(in[f]);
    } else {
        for (Index f = 0; f < features; ++f) out[f] = static_cast<Real>(static_cast<double>(in[f]) - shift[f]);
    }
}

/// The column of the largest magnitude in a row: the one to name when its square overflows.
template <class Value>
Index largest(const Value* row, Index count) {
    return std::max_element(row, row + count, [](Value a, Value b) { return std::abs(a) < std::abs(b); }) - row;
}

/// Squared lengths beyond this make kernel values overflow sooner or later.
constexpr double kLargestNorm = 1e300;

}  // namespace

template <class Real>
Points<Real>::Points(const DataView& data, std::vector<Index> order, std::vector<double> shift, bool copy,
                     const Workers& workers)
    : data_(data), order_(std::move(order)), shift_(std::move(shift)), norms_(order_.size()) {
    if (const auto* dense = std::get_if<DenseView>(&data_)) {
        features_ = dense->features;
        if (copy) copy_ = Buffer<Real>(size() * features_);
        workers.for_parts(size(), [&](Range part) { measure_dense(*dense, part); });
    } else if (const auto* csr = std::get_if<CsrView>(&data_)) {
        features_ = csr->features;
        workers.for_parts(size(), [&](Range part) { measure_csr(*csr, part); });
    } else if (const auto& matrix = std::get<PrecomputedView>(data_); matrix.rows == matrix.columns) {
        workers.for_parts(size(), [&](Range part) { measure_precomputed(matrix, part); });
    }
    for (const Real norm : norms_) max_norm_ = std::max(max_norm_, static_cast<double>(norm));
}

template <class Real>
Points<Real>::Points(const Points& from, std::span<const Index> which)
    : data_(from.data_), shift_(from.shift_), features_(from.features_), max_norm_(from.max_norm_) {
    order_.reserve(which.size());
    norms_.reserve(which.size());
    for (const Index g : which) {
        order_.push_back(from.order_[g]);
        norms_.push_back(from.norms_[g]);
    }
    if (from.copy_) {
        copy_ = Buffer<Real>(size() * features_);
        from.gather(which, copy_.data());
    }
}

template <class Real>
void Points<Real>::record_norm(Index g, double norm, Index row, Index column) {
    // In single precision an overflow is no error: whoever asked sees `max_norm` and takes double instead.
    if (std::is_same_v<Real, double> && !(norm <= kLargestNorm)) {
        throw std::invalid_argument(
            "the value in row " + std::to_string(row) + ", column " + std::to_string(column) +
            " is too large: its square overflows. Scale the data, for example with StandardScaler");
    }
    norms_[g] = static_cast<Real>(norm);
}

template <class Real>
void Points<Real>::measure_dense(const DenseView& dense, Range part) {
    std::vector<Real> row(copy_ ? 0 : features_);
    std::visit(
        [&](const auto& values) {
            for (Index g = part.begin; g < part.end; ++g) {
                Real* x = copy_ ? copy_.data() + g * features_ : row.data();
                load_row<Real>(values, order_[g], features_, shift_, x);
                double norm = 0.0;
                for (Index f = 0; f < features_; ++f) norm += static_cast<double>(x[f]) * static_cast<double>(x[f]);
                record_norm(g, norm, order_[g],
                            norm <= kLargestNorm ? 0 : largest(values.data() + order_[g] * features_, features_));
            }
        },
        dense.values);
}

template <class Real>
void Points<Real>::measure_csr(const CsrView& csr, Range part) {
    std::visit(
        [&](const auto& values, const auto& columns, const auto& starts) {
            for (Index g = part.begin; g < part.end; ++g) {
                const Index row = order_[g];
                double norm = 0.0;
                for (Index p = starts[row]; p < starts[row + 1]; ++p) {
                    const auto v = static_cast<double>(static_cast<Real>(values[p]));
                    norm += v * v;
                }
                Index column = 0;
                if (!(norm <= kLargestNorm)) {
                    const Index first = starts[row];
                    column = columns[first + largest(values.data() + first, starts[row + 1] - first)];
                }
                record_norm(g, norm, row, column);
            }
        },
        csr.values, csr.columns, csr.row_starts);
}

template <class Real>
void Points<Real>::measure_precomputed(const PrecomputedView& matrix, Range part) {
    std::visit(
        [&](const auto& values) {
            for (Index g = part.begin; g < part.end; ++g) {
                const Index row = order_[g];
                record_norm(g, std::abs(static_cast<double>(values[row * matrix.columns + row])), row, row);
            }
        },
        matrix.values);
}

template <class Real>
void Points<Real>::gather(std::span<const Index> which, Real* out) const {
    const auto count = static_cast<Index>(which.size());
    if (copy_) {
        for (Index i = 0; i < count; ++i) {
            std::copy_n(copy_.data() + which[i] * features_, features_, out + i * features_);
        }
        return;
    }
    std::visit(
        [&](const auto& values) {
            for (Index i = 0; i < count; ++i) {
                load_row<Real>(values, order_[which[i]], features_, shift_, out + i * features_);
            }
        },
        std::get<DenseView>(data_).values);
}

template <class Real>
const Real* Points<Real>::range(Range which, Buffer<Real>& scratch) const {
    if (copy_) return copy_.data() + which.begin * features_;
    scratch.reserve(which.size() * features_);
    std::visit(
        [&](const auto& values) {
            for (Index g = which.begin; g < which.end; ++g) {
                load_row<Real>(values, order_[g], features_, shift_, scratch.data() + (g - which.begin) * features_);
            }
        },
        std::get<DenseView>(data_).values);
    return scratch.data();
}

template <class Real>
Index Points<Real>::copy_bytes(const DataView& data, Index points) {
    const auto* dense = std::get_if<DenseView>(&data);
    return dense ? points * dense->features * static_cast<Index>(sizeof(Real)) : 0;
}

std::vector<double> centre(const DataView& data, std::span<const Index> order, const KernelSpec& kernel,
                           const Workers& workers) {
    return kernel.is_translation_invariant() ? centre(data, order, workers) : std::vector<double>();
}

std::vector<double> centre(const DataView& data, std::span<const Index> order, const Workers& workers) {
    const auto* dense = std::get_if<DenseView>(&data);
    if (dense == nullptr || order.empty()) return {};
    const Index features = dense->features;
    std::mutex mutex;
    std::map<Index, std::vector<double>> sums;  // by part, so that they are added in one order
    workers.for_parts(std::ssize(order), [&](Range part) {
        std::vector<double> sum(features, 0.0);
        std::visit(
            [&](const auto& values) {
                for (const Index row : order.subspan(part.begin, part.size())) {
                    const auto* x = values.data() + row * features;
                    for (Index f = 0; f < features; ++f) sum[f] += static_cast<double>(x[f]);
                }
            },
            dense->values);
        const std::lock_guard lock(mutex);
        sums.emplace(part.begin, std::move(sum));
    });
    std::vector<double> mean(features, 0.0);
    for (const auto& [begin, sum] : sums) {
        for (Index f = 0; f < features; ++f) mean[f] += sum[f];
    }
    for (double& m : mean) m /= static_cast<double>(order.size());
    // An absurd mean comes from an absurd value, which `Points` will name; do not spread it over all rows.
    for (double& m : mean) m = std::abs(m) < 1e100 ? m : 0.0;
    return mean;
}

template class Points<float>;
template class Points<double>;

}  // namespace polymargin
