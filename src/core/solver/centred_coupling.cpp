#include "solver/centred_coupling.hpp"

#include <algorithm>
#include <limits>

#include "support/block_cholesky.hpp"
#include "support/dot.hpp"

namespace polymargin {
namespace {

/// Columns of a task.
constexpr Index kStrip = 64;
/// As in `CoupledInverse`.
constexpr int kTries = 6;
constexpr double kMoreRidge = 16.0;
/// Of k - L'GL, whose second part has the rounding of inverses in it: directions in which all classes are held fast are
/// few, and it is these alone that a ridge says less of.
constexpr double kLeastRidge = 1e-11, kMoreInner = 64.0;

}  // namespace

template <class Real>
template <class Part>
void CentredCoupling<Real>::for_columns(const Part& part) const {
    pool_.for_each((size_ + kStrip - 1) / kStrip,
                   [&](Index s) { part(s * kStrip, std::min((s + 1) * kStrip, size_)); });
}

template <class Real>
bool CentredCoupling<Real>::factor(std::span<const Index> examples, Index classes, std::span<const double> spare,
                                   Buffer<double>& sum, const Control& control) {
    size_ = std::ssize(examples);
    spare_.assign(spare.begin(), spare.end());
    work_.reserve(size_ * size_);
    if (!factor_kernel(examples, control)) return false;
    if (!spare_.empty() && !take_limits(sum, control)) return false;
    mirror(sum.data());
    multiply_by_factors(sum);
    return factor_inner(static_cast<double>(classes), sum, control);
}

/// Stored kernel values are rounded: their matrix may be indefinite by that much.
template <class Real>
bool CentredCoupling<Real>::factor_kernel(std::span<const Index> examples, const Control& control) {
    lower_.reserve(size_ * size_);
    double ridge = static_cast<double>(std::numeric_limits<Real>::epsilon());
    for (int tries = 0; tries < kTries; ++tries, ridge *= kMoreRidge) {
        for_columns([&](Index begin, Index end) {
            for (Index s = begin; s < end; ++s) {
                const Real* row = kernel_.row(examples[s]);
                double* column = lower_.data() + s * size_;
                for (Index t = s; t < size_; ++t) {
                    column[t] = static_cast<double>(row[examples[t]]) + kernel_.weight();
                }
                column[s] *= 1.0 + ridge;
            }
        });
        if (factor_by_blocks(lower_.data(), size_, blas_, pool_, control)) {
            for (Index s = 0; s < size_; ++s) std::fill_n(lower_.data() + s * size_, s, 0.0);
            return true;
        }
        if (control.stop_requested()) return false;
    }
    return false;
}

template <class Real>
bool CentredCoupling<Real>::take_limits(Buffer<double>& sum, const Control& control) {
    limits_.reserve(size_ * size_);
    for_columns([&](Index begin, Index end) {
        std::copy(sum.data() + begin * size_, sum.data() + end * size_, limits_.data() + begin * size_);
        for (Index s = begin; s < end; ++s) limits_.data()[s * size_ + s] += spare_[s];
    });
    if (!factor_by_blocks(limits_.data(), size_, blas_, pool_, control)) return false;
    std::copy_n(limits_.data(), size_ * size_, work_.data());
    char lower = 'L';
    int size = static_cast<int>(size_), info = 0;
    blas_.dpotri(&lower, &size, work_.data(), &size, &info);
    if (info != 0 || control.stop_requested()) return false;
    for_columns([&](Index begin, Index end) {
        for (Index s = begin; s < end; ++s) {
            const double* h = work_.data() + s * size_;
            double* g = sum.data() + s * size_;
            for (Index t = s; t < size_; ++t) g[t] = -spare_[s] * spare_[t] * h[t];
            g[s] += spare_[s];
        }
    });
    return true;
}

template <class Real>
void CentredCoupling<Real>::mirror(double* matrix) const {
    for_columns([&](Index begin, Index end) {
        for (Index s = begin; s < end; ++s) {
            for (Index t = 0; t < s; ++t) matrix[s * size_ + t] = matrix[t * size_ + s];
        }
    });
}

/// `sum = L' sum L`. What is above the diagonal of L is zero: columns from `begin` on have nothing above it.
template <class Real>
void CentredCoupling<Real>::multiply_by_factors(Buffer<double>& sum) {
    char plain = 'N', transposed = 'T';
    int stride = static_cast<int>(size_);
    double one = 1.0, none = 0.0;
    for_columns([&](Index begin, Index end) {
        int rows = stride, columns = static_cast<int>(end - begin), inner = static_cast<int>(size_ - begin);
        blas_.dgemm(&plain, &plain, &rows, &columns, &inner, &one, sum.data() + begin * size_, &stride,
                    lower_.data() + begin * size_ + begin, &stride, &none, work_.data() + begin * size_, &stride);
    });
    for_columns([&](Index begin, Index end) {
        // On and below the diagonal blocks.
        for (Index row = begin; row < size_; row += kStrip) {
            int rows = static_cast<int>(std::min(kStrip, size_ - row)), columns = static_cast<int>(end - begin);
            int inner = static_cast<int>(size_ - row);
            blas_.dgemm(&transposed, &plain, &rows, &columns, &inner, &one, lower_.data() + row * size_ + row, &stride,
                        work_.data() + begin * size_ + row, &stride, &none, sum.data() + begin * size_ + row, &stride);
        }
    });
}

template <class Real>
bool CentredCoupling<Real>::factor_inner(double classes, const Buffer<double>& product, const Control& control) {
    inner_.reserve(size_ * size_);
    double ridge = kLeastRidge;
    for (int tries = 0; tries < kTries; ++tries, ridge *= kMoreInner) {
        for_columns([&](Index begin, Index end) {
            for (Index s = begin; s < end; ++s) {
                for (Index t = s; t < size_; ++t) inner_.data()[s * size_ + t] = -product.data()[s * size_ + t];
                inner_.data()[s * size_ + s] += classes * (1.0 + ridge);
            }
        });
        if (factor_by_blocks(inner_.data(), size_, blas_, pool_, control)) return true;
        if (control.stop_requested()) return false;
    }
    return false;
}

template <class Real>
void CentredCoupling<Real>::apply_inner(std::span<double> x) const {
    for (Index s = 0; s < size_; ++s) {
        x[s] = dot_in_lanes(lower_.data() + s * size_ + s, x.data() + s, size_ - s);
    }
    solve_triangles(inner_.data(), size_, x.data());
    for (Index s = size_ - 1; s >= 0; --s) {
        const double* column = lower_.data() + s * size_;
        const double value = x[s];
        for (Index t = s + 1; t < size_; ++t) x[t] += value * column[t];
        x[s] = value * column[s];
    }
}

template <class Real>
void CentredCoupling<Real>::apply(std::span<double> x) const {
    if (spare_.empty()) return apply_inner(x);
    std::vector<double> inner(size_);
    solve_triangles(limits_.data(), size_, x.data());
    for (Index s = 0; s < size_; ++s) inner[s] = spare_[s] * x[s];
    apply_inner(inner);
    for (Index s = 0; s < size_; ++s) inner[s] *= spare_[s];
    solve_triangles(limits_.data(), size_, inner.data());
    for (Index s = 0; s < size_; ++s) x[s] = inner[s] - x[s];
}

template class CentredCoupling<float>;
template class CentredCoupling<double>;

}  // namespace polymargin
