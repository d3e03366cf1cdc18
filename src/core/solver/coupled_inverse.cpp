#include "solver/coupled_inverse.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "support/block_cholesky.hpp"
#include "support/dot.hpp"
#include "support/multiversion.hpp"

namespace polymargin {
namespace {

/// Weights beyond so many times those of the other classes count as so much: M hardly differs, and the sum of the E_m
/// is of the size of the others.
constexpr double kLargestShare = 50.0;

/// What is added to the diagonal, relative to it, and how often it is made so many times larger where a factorisation
/// fails.
constexpr int kTries = 6;
constexpr double kMoreRidge = 16.0;

/// `x = (L L')^-1 x`, the columns of L' being above the diagonal.
POLYMARGIN_MULTIVERSION void solve_upper_triangles(const double* factor, const double* diagonal, Index size,
                                                   double* x) {
    for (Index j = 0; j < size; ++j) {
        x[j] = (x[j] - dot_in_lanes(factor + j * size, x, j)) / diagonal[j];
    }
    for (Index j = size - 1; j >= 0; --j) {
        const double* column = factor + j * size;
        const double value = x[j] /= diagonal[j];
        for (Index i = 0; i < j; ++i) x[i] -= value * column[i];
    }
}

}  // namespace

template <class Real>
CoupledInverse<Real>::CoupledInverse(const KernelProduct<Real>& kernel, Index classes, bool centred, ThreadPool& pool,
                                     const Blas& blas)
    : kernel_(kernel), pool_(pool), blas_(blas), classes_(classes), centred_(centred), coupling_(kernel, pool, blas) {}

template <class Real>
void CoupledInverse<Real>::add_place(ClassFactor& made, Index i, double weight) const {
    // Stored kernel values are rounded, their matrix may be indefinite by that much: a larger weight says no more.
    const double ridge = static_cast<double>(std::numeric_limits<Real>::epsilon());
    made.places.push_back(std::ssize(examples_));
    made.roots.push_back(std::sqrt(weight / (1.0 + ridge * kernel_.value(i, i) * weight)));
}

template <class Real>
void CoupledInverse<Real>::choose(ClassMajor<const double> diagonal, ClassMajor<const double> weights,
                                  double negligible, std::span<const double> spare) {
    examples_.clear();
    spare_.clear();
    for (auto& made : classes_) {
        made.places.clear();
        made.roots.clear();
    }
    const Index k = weights.classes;
    for (Index i = 0; i < kernel_.size(); ++i) {
        Index largest = 0;
        double others = 0.0;
        bool matters = false;
        for (Index m = 1; m < k; ++m) {
            if (weights.at(m, i) > weights.at(largest, i)) largest = m;
        }
        for (Index m = 0; m < k; ++m) others += m == largest ? 0.0 : weights.at(m, i);
        for (Index m = 0; m < k; ++m) {
            if (!((centred_ ? weights : diagonal).at(m, i) > negligible)) continue;
            matters = true;
            const bool limited = m == largest && !centred_;
            add_place(classes_[m], i, limited ? std::min(weights.at(m, i), kLargestShare * others) : weights.at(m, i));
        }
        if (!matters) continue;
        examples_.push_back(i);
        if (!spare.empty()) spare_.push_back(std::min(spare[i], kLargestShare * (others + weights.at(largest, i))));
    }
}

template <class Real>
bool CoupledInverse<Real>::factor_class(ClassFactor& made, const Control& control) const {
    const Index q = std::ssize(made.places);
    if (q == 0) return true;
    made.factor.reserve(q * q);
    made.diagonal.resize(q);
    double* matrix = made.factor.data();
    double ridge = static_cast<double>(std::numeric_limits<Real>::epsilon());
    for (int tries = 0; tries < kTries; ++tries, ridge *= kMoreRidge) {
        if (control.stop_requested()) return false;
        fill_lower(made, ridge);
        char lower = 'L';
        int size = static_cast<int>(q), info = 0;
        blas_.dpotrf(&lower, &size, matrix, &size, &info);
        if (info != 0) continue;
        for (Index s = 0; s < q; ++s) {
            made.diagonal[s] = matrix[s * q + s];
            for (Index t = s + 1; t < q; ++t) matrix[t * q + s] = matrix[s * q + t];
        }
        if (control.stop_requested()) return false;
        blas_.dpotri(&lower, &size, matrix, &size, &info);
        return info == 0;
    }
    return false;
}

/// The lower half of `I + D^1/2 K D^1/2`, the diagonal of the second part being larger by this share.
template <class Real>
void CoupledInverse<Real>::fill_lower(ClassFactor& made, double ridge) const {
    const Index q = std::ssize(made.places);
    for (Index s = 0; s < q; ++s) {
        const Real* row = kernel_.row(examples_[made.places[s]]);
        double* column = made.factor.data() + s * q;
        for (Index t = s; t < q; ++t) {
            const double value = static_cast<double>(row[examples_[made.places[t]]]) + kernel_.weight();
            column[t] = made.roots[s] * made.roots[t] * value;
        }
        column[s] += 1.0 + ridge * column[s];
    }
}

template <class Real>
bool CoupledInverse<Real>::factor_sum(const Control& control) {
    const Index size = std::ssize(examples_);
    sum_.reserve(size * size);
    double ridge = std::numeric_limits<double>::epsilon();
    if (centred_) {
        fill_sum(ridge);
        return coupling_.factor(examples_, std::ssize(classes_), spare_, sum_, control);
    }
    for (int tries = 0; tries < kTries; ++tries, ridge *= kMoreRidge) {
        fill_sum(ridge);
        if (factor_by_blocks(sum_.data(), size, blas_, pool_, control)) return true;
        if (control.stop_requested()) return false;
    }
    return false;
}

template <class Real>
void CoupledInverse<Real>::fill_sum(double ridge) {
    constexpr Index strip = 32;  // columns of a task
    const Index size = std::ssize(examples_);
    pool_.for_each((size + strip - 1) / strip, [&](Index part) {
        const Index begin = part * strip, end = std::min(begin + strip, size);
        std::fill(sum_.data() + begin * size, sum_.data() + end * size, 0.0);
        for (const ClassFactor& made : classes_) {
            const Index q = std::ssize(made.places);
            const auto first = std::ranges::lower_bound(made.places, begin) - made.places.begin();
            for (Index s = first; s < q && made.places[s] < end; ++s) {
                double* column = sum_.data() + made.places[s] * size;
                const double* inverse = made.factor.data() + s * q;
                for (Index t = s; t < q; ++t) column[made.places[t]] += made.roots[s] * made.roots[t] * inverse[t];
            }
        }
        for (Index s = begin; s < end; ++s) sum_.data()[s * size + s] *= 1.0 + ridge;
    });
}

template <class Real>
bool CoupledInverse<Real>::factor(const Control& control) {
    std::atomic<bool> failed{false};
    pool_.for_each(std::ssize(classes_), [&](Index m) {
        if (!factor_class(classes_[m], control)) failed = true;
    });
    return !failed && factor_sum(control);
}

template <class Real>
void CoupledInverse<Real>::multiply(const ClassFactor& made, const double* x, double* out) const {
    const Index q = std::ssize(made.places);
    std::vector<double> scaled(q);
    for (Index s = 0; s < q; ++s) scaled[s] = made.roots[s] * x[made.places[s]];
    solve_upper_triangles(made.factor.data(), made.diagonal.data(), q, scaled.data());
    for (Index s = 0; s < q; ++s) out[made.places[s]] = made.roots[s] * scaled[s];
}

template <class Real>
void CoupledInverse<Real>::apply(ClassMajor<const double> kr, ClassMajor<double> less) const {
    const Index size = std::ssize(examples_), k = std::ssize(classes_);
    std::vector<double> right(k * size), parts(k * size, 0.0), shared(size, 0.0);
    pool_.for_each(k, [&](Index m) {
        for (Index s = 0; s < size; ++s) right[m * size + s] = kr.at(m, examples_[s]);
        multiply(classes_[m], right.data() + m * size, parts.data() + m * size);
    });
    for (Index m = 0; m < k; ++m) {
        for (Index s = 0; s < size; ++s) shared[s] += parts[m * size + s];
    }
    if (centred_) {
        coupling_.apply(shared);
        for (double& v : shared) v = -v;
    } else {
        solve_triangles(sum_.data(), size, shared.data());
    }
    pool_.for_each(k, [&](Index m) {
        double* x = right.data() + m * size;
        for (Index s = 0; s < size; ++s) x[s] -= shared[s];
        multiply(classes_[m], x, parts.data() + m * size);
        std::fill_n(less.row(m), kernel_.size(), 0.0);
        for (Index s = 0; s < size; ++s) less.at(m, examples_[s]) = parts[m * size + s];
    });
}

template <class Real>
double CoupledInverse<Real>::factor_cost() const {
    const auto all = static_cast<double>(examples_.size());
    double cost = all * all * all * (centred_ ? CentredCoupling<Real>::kCost : 1.0 / 3.0);
    for (const auto& made : classes_) {
        const auto q = static_cast<double>(made.places.size());
        cost += q * q * q + 12.0 * q * q;
    }
    return cost;
}

template <class Real>
Index CoupledInverse<Real>::bytes() const {
    Index numbers = std::ssize(examples_) * std::ssize(examples_);
    if (centred_) numbers *= 1 + CentredCoupling<Real>::kPlanes;
    for (const auto& made : classes_) numbers += std::ssize(made.places) * std::ssize(made.places);
    return numbers * static_cast<Index>(sizeof(double));
}

template <class Real>
Index CoupledInverse<Real>::largest_class() const {
    std::size_t largest = 0;
    for (const auto& made : classes_) largest = std::max(largest, made.places.size());
    return static_cast<Index>(largest);
}

template class CoupledInverse<float>;
template class CoupledInverse<double>;

}  // namespace polymargin
