#include "kernel/engine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/multiversion.hpp"

namespace polymargin {
namespace {

/// Rows of a sparse block handled together: their values of one feature fill one cache line.
template <class Real>
constexpr Index kLanes = static_cast<Index>(kCacheLine / sizeof(Real));

/// The scalar products of one sparse point with `kLanes` expanded rows: `sums[l] = sum_p values[p]
/// expanded[columns[p]][l]`.
template <class Real, class Value, class Column>
POLYMARGIN_INLINE void sparse_products(const Value* values, const Column* columns, Index count, const Real* expanded,
                                       Real* sums) {
    constexpr Index lanes = kLanes<Real>;
    Real acc[lanes] = {};
    for (Index p = 0; p < count; ++p) {
        const Real v = static_cast<Real>(values[p]);
        const Real* line = expanded + static_cast<Index>(columns[p]) * lanes;
        for (Index l = 0; l < lanes; ++l) acc[l] += v * line[l];
    }
    for (Index l = 0; l < lanes; ++l) sums[l] = acc[l];
}

#define POLYMARGIN_SPARSE_PRODUCTS(Real, Value, Column)                                               \
    POLYMARGIN_MULTIVERSION void products_of(const Value* values, const Column* columns, Index count, \
                                             const Real* expanded, Real* sums) {                      \
        sparse_products<Real, Value, Column>(values, columns, count, expanded, sums);                 \
    }
POLYMARGIN_SPARSE_PRODUCTS(float, float, std::int32_t)
POLYMARGIN_SPARSE_PRODUCTS(float, float, std::int64_t)
POLYMARGIN_SPARSE_PRODUCTS(float, double, std::int32_t)
POLYMARGIN_SPARSE_PRODUCTS(float, double, std::int64_t)
POLYMARGIN_SPARSE_PRODUCTS(double, float, std::int32_t)
POLYMARGIN_SPARSE_PRODUCTS(double, float, std::int64_t)
POLYMARGIN_SPARSE_PRODUCTS(double, double, std::int32_t)
POLYMARGIN_SPARSE_PRODUCTS(double, double, std::int64_t)
#undef POLYMARGIN_SPARSE_PRODUCTS

/// Call `visit(column, value)` for the entries of one CSR row.
template <class Visit>
void for_entries(const CsrView& csr, Index row, Visit&& visit) {
    std::visit(
        [&](const auto& values, const auto& columns, const auto& starts) {
            for (Index p = starts[row]; p < starts[row + 1]; ++p) {
                visit(static_cast<Index>(columns[p]), static_cast<double>(values[p]));
            }
        },
        csr.values, csr.columns, csr.row_starts);
}

}  // namespace

template <class Real>
std::unique_ptr<typename KernelEngine<Real>::Scratch> KernelEngine<Real>::borrow() const {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Scratch>();
    auto scratch = std::move(idle_.back());
    idle_.pop_back();
    return scratch;
}

template <class Real>
void KernelEngine<Real>::give_back(std::unique_ptr<Scratch> scratch) const {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(scratch));
}

template <class Real>
void KernelEngine<Real>::block(std::span<const Index> which, Range range, std::span<Real* const> out) const {
    if (kernel_.type == KernelType::precomputed) return copy_precomputed(which, range, out);
    auto scratch = borrow();
    scratch->products.reserve(static_cast<Index>(which.size()) * range.size());
    if (std::holds_alternative<CsrView>(columns_.data())) {
        products_csr(which, range, *scratch);
    } else {
        products_dense(which, range, *scratch);
    }
    const Real* products = scratch->products.data();
    for (std::size_t i = 0; i < which.size(); ++i, products += range.size()) {
        apply_kernel<Real>(kernel_, rows_.norms()[which[i]], columns_.norms() + range.begin, products, out[i],
                           range.size());
    }
    give_back(std::move(scratch));
}

template <class Real>
void KernelEngine<Real>::products_dense(std::span<const Index> which, Range range, Scratch& scratch) const {
    const Index features = columns_.features();
    const auto rows = static_cast<Index>(which.size());
    scratch.rows.reserve(rows * features);
    rows_.gather(which, scratch.rows.data());
    const Real* columns = columns_.range(range, scratch.columns);
    const auto width = static_cast<int>(features);
    blas_.multiply_transposed<Real>(static_cast<int>(rows), static_cast<int>(range.size()), width, scratch.rows.data(),
                                    width, columns, width, Real(0), scratch.products.data(),
                                    static_cast<int>(range.size()));
}

template <class Real>
void KernelEngine<Real>::products_csr(std::span<const Index> which, Range range, Scratch& scratch) const {
    constexpr Index lanes = kLanes<Real>;
    const auto& rows = std::get<CsrView>(rows_.data());
    const auto& csr = std::get<CsrView>(columns_.data());
    const Index expanded_size = csr.features * lanes;
    if (scratch.expanded.size() < expanded_size) {
        scratch.expanded.reserve(expanded_size);
        std::fill_n(scratch.expanded.data(), expanded_size, Real(0));
    }
    Real* expanded = scratch.expanded.data();
    Real* products = scratch.products.data();
    const Index width = range.size();
    for (Index first = 0; first < static_cast<Index>(which.size()); first += lanes) {
        const Index count = std::min(lanes, static_cast<Index>(which.size()) - first);
        for (Index l = 0; l < count; ++l) {
            for_entries(rows, rows_.order()[which[first + l]],
                        [&](Index column, double value) { expanded[column * lanes + l] = static_cast<Real>(value); });
        }
        std::visit(
            [&](const auto& values, const auto& columns, const auto& starts) {
                Real sums[lanes];
                for (Index g = range.begin; g < range.end; ++g) {
                    const Index row = columns_.order()[g];
                    const Index begin = starts[row];
                    products_of(values.data() + begin, columns.data() + begin,
                                static_cast<Index>(starts[row + 1]) - begin, expanded, sums);
                    for (Index l = 0; l < count; ++l) products[(first + l) * width + g - range.begin] = sums[l];
                }
            },
            csr.values, csr.columns, csr.row_starts);
        for (Index l = 0; l < count; ++l) {
            for_entries(rows, rows_.order()[which[first + l]],
                        [&](Index column, double) { expanded[column * lanes + l] = Real(0); });
        }
    }
}

template <class Real>
void KernelEngine<Real>::copy_precomputed(std::span<const Index> which, Range range, std::span<Real* const> out) const {
    const auto& matrix = std::get<PrecomputedView>(rows_.data());
    std::visit(
        [&](const auto& values) {
            const Index* columns = columns_.order().data() + range.begin;
            for (std::size_t i = 0; i < which.size(); ++i) {
                const auto* row = values.data() + rows_.order()[which[i]] * matrix.columns;
                Real* to = out[i];
                for (Index g = 0; g < range.size(); ++g) to[g] = static_cast<Real>(row[columns[g]]);
            }
        },
        matrix.values);
}

bool single_precision_suffices(const KernelSpec& kernel, double max_norm, double max_coefficient, double accuracy) {
    constexpr double unit = std::numeric_limits<float>::epsilon() / 2;
    constexpr double vectors = 8.0;  // errors of more than these average out
    const double largest = std::abs(kernel.diagonal(max_norm));
    double relative = unit;
    if (kernel.type == KernelType::rbf) relative *= 1.0 + kernel.gamma * max_norm;
    if (kernel.type == KernelType::polynomial) relative *= std::max(1, kernel.degree);
    if (kernel.type == KernelType::sigmoid) relative *= 1.0 + kernel.gamma * max_norm;
    const double largest_single = std::numeric_limits<float>::max() / 1e8;
    return std::max(largest, max_norm) < largest_single &&
           vectors * relative * std::max(largest, 1.0) * max_coefficient <= accuracy;
}

template class KernelEngine<float>;
template class KernelEngine<double>;

}  // namespace polymargin
