#include "solver/sampled_inverse.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include "support/block_cholesky.hpp"

namespace polymargin {
namespace {

constexpr int kTries = 6;
constexpr double kMoreRidge = 16.0;

}  // namespace

SystematicSample draw_systematically(std::span<const double> values, Index most, double negligible) {
    SystematicSample sample;
    std::vector<Index> live;
    for (Index i = 0; i < std::ssize(values); ++i) {
        if (values[i] > negligible) live.push_back(i);
    }
    if (std::ssize(live) <= most) return {live, std::vector<double>(live.size(), 1.0)};
    // What is sure takes its places from the others, which makes more of them sure.
    double scale = 0.0;
    for (Index sure = -1, found = 0; found > sure && found < most;) {
        sure = std::exchange(found, 0);
        double rest = 0.0;
        for (const Index i : live) {
            const double root = std::sqrt(values[i]);
            if (scale * root < 1.0) rest += root;
        }
        scale = static_cast<double>(most - sure) / rest;
        for (const Index i : live) found += scale * std::sqrt(values[i]) >= 1.0;
    }
    double passed = 0.5;
    for (const Index i : live) {
        const double chance = std::min(1.0, scale * std::sqrt(values[i]));
        const double before = std::floor(passed);
        passed += chance;
        if (chance < 1.0 && !(std::floor(passed) > before)) continue;
        sample.rows.push_back(i);
        sample.weights.push_back(1.0 / chance);
    }
    return sample;
}

template <class Real>
SampledInverse<Real>::SampledInverse(const KernelProduct<Real>& kernel, Index classes, ThreadPool& pool,
                                     const Blas& blas)
    : kernel_(kernel), pool_(pool), blas_(blas), classes_(classes) {}

template <class Real>
bool SampledInverse<Real>::factor_class(const double* diagonal, Index most, double negligible, const Control& control,
                                        ClassFactor& made) const {
    const auto sample = draw_systematically({diagonal, static_cast<std::size_t>(kernel_.size())}, most, negligible);
    made.rows = sample.rows;
    const Index q = std::ssize(made.rows);
    made.roots.resize(q);
    for (Index s = 0; s < q; ++s) made.roots[s] = std::sqrt(diagonal[made.rows[s]] * sample.weights[s]);
    if (q == 0) return true;
    made.factor.reserve(q * q);
    // Stored kernel values are rounded: their matrix may be indefinite by that much, which the diagonal makes large.
    double ridge = static_cast<double>(std::numeric_limits<Real>::epsilon());
    for (int tries = 0; tries < kTries; ++tries, ridge *= kMoreRidge) {
        if (control.stop_requested()) return false;
        fill_lower(made, ridge);
        char lower = 'L';
        int size = static_cast<int>(q), info = 0;
        blas_.dpotrf(&lower, &size, made.factor.data(), &size, &info);
        if (info == 0) return true;
    }
    return false;
}

template <class Real>
void SampledInverse<Real>::fill_lower(ClassFactor& made, double ridge) const {
    const Index q = std::ssize(made.rows);
    double* matrix = made.factor.data();
    for (Index s = 0; s < q; ++s) {
        const Real* row = kernel_.row(made.rows[s]);
        for (Index t = s; t < q; ++t) {
            const double value = static_cast<double>(row[made.rows[t]]) + kernel_.weight();
            matrix[s * q + t] = made.roots[s] * made.roots[t] * value;
        }
        matrix[s * q + s] += 1.0 + ridge * matrix[s * q + s];
    }
}

template <class Real>
bool SampledInverse<Real>::factor(ClassMajor<const double> diagonal, Index most, double negligible,
                                  const Control& control) {
    std::atomic<bool> failed{false};
    pool_.for_each(std::ssize(classes_), [&](Index m) {
        if (!factor_class(diagonal.row(m), most, negligible, control, classes_[m])) failed = true;
    });
    live_ = 0;
    for (Index m = 0; m < std::ssize(classes_); ++m) {
        const double* d = diagonal.row(m);
        live_ = std::max<Index>(live_, std::count_if(d, d + kernel_.size(), [&](double v) { return v > negligible; }));
    }
    return !failed;
}

template <class Real>
void SampledInverse<Real>::apply(ClassMajor<const double> kr, ClassMajor<double> less) const {
    pool_.for_each(std::ssize(classes_), [&](Index m) {
        const ClassFactor& made = classes_[m];
        const Index q = std::ssize(made.rows);
        std::vector<double> right(q);
        for (Index s = 0; s < q; ++s) right[s] = made.roots[s] * kr.at(m, made.rows[s]);
        solve_triangles(made.factor.data(), q, right.data());
        std::fill_n(less.row(m), kernel_.size(), 0.0);
        for (Index s = 0; s < q; ++s) less.at(m, made.rows[s]) = made.roots[s] * right[s];
    });
}

template <class Real>
double SampledInverse<Real>::factor_cost() const {
    double cost = 0.0;
    for (const auto& made : classes_) {
        const auto q = static_cast<double>(made.rows.size());
        cost += q * q * q / 3.0 + 8.0 * q * q;
    }
    return cost;
}

template <class Real>
double SampledInverse<Real>::apply_cost() const {
    double cost = 0.0;
    for (const auto& made : classes_) {
        const auto q = static_cast<double>(made.rows.size());
        cost += 2.0 * q * q;
    }
    return cost;
}

template class SampledInverse<float>;
template class SampledInverse<double>;

}  // namespace polymargin
