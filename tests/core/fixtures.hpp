#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "kernel/engine.hpp"
#include "kernel/gram.hpp"
#include "plain_blas.hpp"
#include "problem/binary.hpp"

/// Data and obvious implementations that several areas share.
namespace fixtures {

using polymargin::Index;
using polymargin::KernelSpec;
using polymargin::KernelType;
using polymargin::Range;

/// Numbers that are the same with every standard library: its engines are specified, its distributions are
/// not.
class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
    double uniform(double from, double to) { return from + (to - from) * uniform(); }
    double normal() {
        const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
        return radius * std::cos(2.0 * std::numbers::pi * uniform());
    }
    Index below(Index n) { return static_cast<Index>(engine_() % static_cast<std::uint64_t>(n)); }
    std::vector<Index> permutation(Index n) {
        std::vector<Index> order(n);
        std::iota(order.begin(), order.end(), Index{0});
        for (Index i = n - 1; i > 0; --i) std::swap(order[i], order[below(i + 1)]);
        return order;
    }

  private:
    std::mt19937_64 engine_;
};

inline std::vector<Index> identity(Index n) {
    std::vector<Index> order(n);
    std::iota(order.begin(), order.end(), Index{0});
    return order;
}

/// A row-major matrix.
struct Matrix {
    Index rows = 0, columns = 0;
    std::vector<double> values;

    Matrix(Index r, Index c) : rows(r), columns(c), values(r * c, 0.0) {}
    [[nodiscard]] double& at(Index i, Index j) { return values[i * columns + j]; }
    [[nodiscard]] double at(Index i, Index j) const { return values[i * columns + j]; }
    [[nodiscard]] std::span<const double> row(Index i) const { return std::span(values).subspan(i * columns, columns); }
    [[nodiscard]] polymargin::DenseView dense() const { return {std::span(values), rows, columns}; }
    [[nodiscard]] polymargin::PrecomputedView precomputed() const { return {std::span(values), rows, columns}; }
};

/// Gaussian entries, of which a share `density` is not zero.
inline Matrix random_matrix(Index rows, Index columns, Random& random, double density = 1.0) {
    Matrix x(rows, columns);
    for (double& v : x.values) v = random.uniform() < density ? random.normal() : 0.0;
    return x;
}

/// `per_class` points around each of `classes` overlapping centres, class after class.
inline Matrix blobs(Index classes, Index per_class, Index features, double distance, Random& random) {
    Matrix x = random_matrix(classes * per_class, features, random);
    for (Index m = 0; m < classes; ++m) {
        for (Index f = 0; f < features; ++f) {
            const double shift = distance * random.normal();
            for (Index i = 0; i < per_class; ++i) x.at(m * per_class + i, f) += shift;
        }
    }
    return x;
}

/// A CSR matrix of any number and index type.
template <class Value, class Column, class Start = Column>
struct Csr {
    std::vector<Value> values;
    std::vector<Column> columns;
    std::vector<Start> starts{0};
    Index rows, features;

    explicit Csr(const Matrix& x) : rows(x.rows), features(x.columns) {
        for (Index i = 0; i < x.rows; ++i) {
            for (Index j = 0; j < x.columns; ++j) {
                if (x.at(i, j) == 0.0) continue;
                values.push_back(static_cast<Value>(x.at(i, j)));
                columns.push_back(static_cast<Column>(j));
            }
            starts.push_back(static_cast<Start>(values.size()));
        }
    }
    [[nodiscard]] polymargin::CsrView view() const {
        return {std::span(values), std::span(columns), std::span(starts), rows, features};
    }
};

/// k(x, y) as the textbook writes it.
inline double plain_kernel(const KernelSpec& kernel, std::span<const double> x, std::span<const double> y) {
    double product = 0.0, distance = 0.0, absolute = 0.0;
    for (std::size_t f = 0; f < x.size(); ++f) {
        product += x[f] * y[f];
        absolute += std::abs(x[f] - y[f]);
        distance += (x[f] - y[f]) * (x[f] - y[f]);
    }
    switch (kernel.type) {
        case KernelType::polynomial:
            return std::pow(kernel.gamma * product + kernel.coef0, kernel.degree);
        case KernelType::rbf:
            return std::exp(-kernel.gamma * distance);
        case KernelType::sigmoid:
            return std::tanh(kernel.gamma * product + kernel.coef0);
        case KernelType::laplacian:
            return std::exp(-kernel.gamma * absolute);
        default:
            return product;
    }
}

/// The kernel of rows `order` of `x`.
inline Matrix plain_gram(const KernelSpec& kernel, const Matrix& x, std::span<const Index> order) {
    const auto n = static_cast<Index>(order.size());
    Matrix gram(n, n);
    for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < n; ++j) gram.at(i, j) = plain_kernel(kernel, x.row(order[i]), x.row(order[j]));
    }
    return gram;
}

/// All that a store of kernel rows stands on, in one place. The parts refer to each other, hence no copies.
template <class Real>
struct KernelSetup {
    polymargin::Points<Real> points;
    polymargin::KernelEngine<Real> engine;
    polymargin::ThreadPool pool;
    polymargin::Control control;
    polymargin::GramStore<Real> store;

    KernelSetup(const KernelSpec& kernel, const polymargin::DataView& data, std::vector<Index> order, Index budget,
                int threads = 1, double time_limit = std::numeric_limits<double>::infinity())
        : points(data, order, polymargin::centre(data, order, kernel), true),
          engine(kernel, points, points, plain::blas()),
          pool(threads),
          control(time_limit),
          store(engine, budget, pool, control) {}
    KernelSetup(const KernelSetup&) = delete;
    KernelSetup& operator=(const KernelSetup&) = delete;
};

/// A binary problem whose solution is known because it was chosen first: examples [0, n/2) are positive, a
/// third of the variables is zero, a third free and a third at its bound, and the positive definite kernel is
/// made to fit them.
struct KnownOptimum {
    Matrix gram;
    std::vector<double> sign, cost_bounds, beta, f;
    double intercept;

    KnownOptimum(Index half, Random& random)
        : gram(2 * half, 2 * half), sign(2 * half), cost_bounds(2 * half), beta(2 * half), f(2 * half) {
        const Index n = 2 * half;
        intercept = random.normal();
        for (Index i = 0; i < half; ++i) {
            // A positive and a negative example share their alpha, so that the signed sum is zero.
            const double bound = random.uniform(0.5, 2.0);
            const double alpha = i % 3 == 0 ? 0.0 : i % 3 == 1 ? bound * random.uniform(0.2, 0.8) : bound;
            for (const Index t : {i, i + half}) {
                sign[t] = t < half ? 1.0 : -1.0;
                cost_bounds[t] = bound;
                beta[t] = sign[t] * alpha;
                const double slack = random.uniform(0.1, 0.9) * (i % 3 == 0 ? 1.0 : i % 3 == 1 ? 0.0 : -1.0);
                f[t] = -intercept + sign[t] * slack;  // y (s - y + intercept) is the slack of the margin
            }
        }
        // K b must be f + y =: t, so K = t t' / b't + P (G G' + 1/10) P, where P takes out the direction b.
        const Matrix g = random_matrix(n, n, random);
        std::vector<double> target(n);
        for (Index i = 0; i < n; ++i) target[i] = f[i] + sign[i];
        const double scale = std::inner_product(beta.begin(), beta.end(), target.begin(), 0.0);
        const double length = std::inner_product(beta.begin(), beta.end(), beta.begin(), 0.0);
        Matrix half_root = g;  // P G, and P itself in place of the ridge's root
        Matrix projector(n, n);
        for (Index i = 0; i < n; ++i) {
            for (Index j = 0; j < n; ++j) projector.at(i, j) = (i == j) - beta[i] * beta[j] / length;
        }
        for (Index j = 0; j < n; ++j) {
            double along = 0.0;
            for (Index i = 0; i < n; ++i) along += beta[i] * g.at(i, j);
            for (Index i = 0; i < n; ++i) half_root.at(i, j) -= beta[i] * along / length;
        }
        for (Index i = 0; i < n; ++i) {
            for (Index j = 0; j < n; ++j) {
                const auto a = half_root.row(i), b = half_root.row(j);
                gram.at(i, j) = target[i] * target[j] / scale + projector.at(i, j) / 10 +
                                std::inner_product(a.begin(), a.end(), b.begin(), 0.0) / static_cast<double>(n);
            }
        }
    }
};

}  // namespace fixtures
