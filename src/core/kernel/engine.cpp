#include "kernel/engine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/multiversion.hpp"

namespace polymargin {
namespace {

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

/// One CSR row in the engine's precision.
template <class Real>
void read_entries(const CsrView& csr, Index row, std::vector<Real>& values, std::vector<Index>& places) {
    values.clear();
    places.clear();
    for_entries(csr, row, [&](Index column, double value) {
        places.push_back(column);
        values.push_back(static_cast<Real>(value));
    });
}

/// One number for each of `count` rows of a panel to its row of a matrix, the rows being `stride` apart.
template <class Real>
void spread(const Real* lanes, Index count, Index stride, Real* out) {
    for (Index l = 0; l < count; ++l) out[l * stride] = lanes[l];
}

/// Dense rows to a panel; lanes without a row are zero.
template <class Real>
void transpose(const Real* rows, Index count, Index features, Real* panel) {
    constexpr Index lanes = kLanes<Real>;
    for (Index f = 0; f < features; ++f) {
        for (Index l = 0; l < count; ++l) panel[f * lanes + l] = rows[l * features + f];
        std::fill(panel + f * lanes + count, panel + (f + 1) * lanes, Real(0));
    }
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
    if (kernel_.reads() == KernelInput::matrix) return copy_precomputed(which, range, out);
    auto scratch = borrow();
    scratch->inputs.reserve(static_cast<Index>(which.size()) * range.size());
    compute_inputs(which, range, *scratch);
    const Real* inputs = scratch->inputs.data();
    for (std::size_t i = 0; i < which.size(); ++i, inputs += range.size()) {
        apply_kernel<Real>(kernel_, rows_.norms()[which[i]], columns_.norms() + range.begin, inputs, out[i],
                           range.size());
    }
    give_back(std::move(scratch));
}

template <class Real>
void KernelEngine<Real>::feature_sums(std::span<const Index> which, Range range, std::span<Real* const> out) const {
    auto scratch = borrow();
    scratch->inputs.reserve(static_cast<Index>(which.size()) * range.size());
    compute_inputs(which, range, *scratch);
    for (std::size_t i = 0; i < which.size(); ++i) {
        std::copy_n(scratch->inputs.data() + static_cast<Index>(i) * range.size(), range.size(), out[i]);
    }
    give_back(std::move(scratch));
}

template <class Real>
void KernelEngine<Real>::compute_inputs(std::span<const Index> which, Range range, Scratch& scratch) const {
    const bool sparse = std::holds_alternative<CsrView>(columns_.data());
    if (kernel_.reads() == KernelInput::feature_sums) {
        sparse ? sums_csr(which, range, scratch) : sums_dense(which, range, scratch);
    } else {
        sparse ? products_csr(which, range, scratch) : products_dense(which, range, scratch);
    }
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
                                    width, columns, width, Real(0), scratch.inputs.data(),
                                    static_cast<int>(range.size()));
}

template <class Real>
void KernelEngine<Real>::products_csr(std::span<const Index> which, Range range, Scratch& scratch) const {
    for_panels(
        which, scratch,
        [&](std::span<const Index> some, const Real* panel, Real* inputs) {
            const auto& csr = std::get<CsrView>(columns_.data());
            std::visit(
                [&](const auto& values, const auto& columns, const auto& starts) {
                    Real sums[kLanes<Real>];
                    for (Index g = range.begin; g < range.end; ++g) {
                        const Index row = columns_.order()[g];
                        const Index begin = starts[row];
                        products_of(values.data() + begin, columns.data() + begin,
                                    static_cast<Index>(starts[row + 1]) - begin, panel, sums);
                        spread(sums, std::ssize(some), range.size(), inputs + g - range.begin);
                    }
                },
                csr.values, csr.columns, csr.row_starts);
        },
        range.size());
}

template <class Real>
void KernelEngine<Real>::sums_csr(std::span<const Index> which, Range range, Scratch& scratch) const {
    const auto& rows = std::get<CsrView>(rows_.data());
    const auto& csr = std::get<CsrView>(columns_.data());
    std::vector<Real> values;
    std::vector<Index> places;
    for_panels(
        which, scratch,
        [&](std::span<const Index> some, const Real* panel, Real* inputs) {
            double totals[kLanes<Real>] = {};
            for (Index l = 0; l < std::ssize(some); ++l) {
                read_entries(rows, rows_.order()[some[l]], values, places);
                totals[l] = feature_total<Real>(kernel_, values.data(), std::ssize(values));
            }
            Real sums[kLanes<Real>];
            for (Index g = range.begin; g < range.end; ++g) {
                read_entries(csr, columns_.order()[g], values, places);
                sparse_feature_sums<Real>(kernel_, panel, totals, values.data(), places.data(), std::ssize(values),
                                          sums);
                spread(sums, std::ssize(some), range.size(), inputs + g - range.begin);
            }
        },
        range.size());
}

template <class Real>
void KernelEngine<Real>::sums_dense(std::span<const Index> which, Range range, Scratch& scratch) const {
    constexpr Index lanes = kLanes<Real>;
    const Index features = columns_.features(), width = range.size();
    scratch.rows.reserve(lanes * features);
    scratch.panel.reserve(lanes * features);
    scratch.sums.reserve(lanes * width);
    const Real* columns = columns_.range(range, scratch.columns);
    for (Index first = 0; first < std::ssize(which); first += lanes) {
        const Index count = std::min(lanes, std::ssize(which) - first);
        rows_.gather(which.subspan(first, count), scratch.rows.data());
        transpose(scratch.rows.data(), count, features, scratch.panel.data());
        dense_feature_sums<Real>(kernel_, scratch.panel.data(), columns, features, width, scratch.sums.data());
        Real* inputs = scratch.inputs.data() + first * width;
        for (Index j = 0; j < width; ++j) spread(scratch.sums.data() + j * lanes, count, width, inputs + j);
    }
}

/// Spread the rows out to panels, `kLanes` at a time, and call `work(rows, panel, where their inputs go)`.
template <class Real>
template <class Work>
void KernelEngine<Real>::for_panels(std::span<const Index> which, Scratch& scratch, const Work& work,
                                    Index width) const {
    constexpr Index lanes = kLanes<Real>;
    const auto& rows = std::get<CsrView>(rows_.data());
    const Index size = rows.features * lanes;
    if (scratch.panel.size() < size) {
        scratch.panel.reserve(size);
        std::fill_n(scratch.panel.data(), size, Real(0));
    }
    Real* panel = scratch.panel.data();
    for (Index first = 0; first < std::ssize(which); first += lanes) {
        const auto some = which.subspan(first, std::min(lanes, std::ssize(which) - first));
        for (Index l = 0; l < std::ssize(some); ++l) {
            for_entries(rows, rows_.order()[some[l]],
                        [&](Index column, double value) { panel[column * lanes + l] = static_cast<Real>(value); });
        }
        work(some, panel, scratch.inputs.data() + first * width);
        for (Index l = 0; l < std::ssize(some); ++l) {
            for_entries(rows, rows_.order()[some[l]],
                        [&](Index column, double) { panel[column * lanes + l] = Real(0); });
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
    constexpr double largest_single = std::numeric_limits<float>::max() / 1e8;
    return std::max(std::abs(kernel.diagonal(max_norm)), max_norm) < largest_single &&
           vectors * unit * kernel.rounding(max_norm) * max_coefficient <= accuracy;
}

template class KernelEngine<float>;
template class KernelEngine<double>;

}  // namespace polymargin
