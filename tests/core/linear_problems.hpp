#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "fixtures.hpp"
#include "plain_absolute.hpp"
#include "plain_losses.hpp"
#include "plain_squared.hpp"
#include "problem/crammer_singer.hpp"
#include "problem/one_vs_rest.hpp"
#include "problem/weston_watkins.hpp"
#include "solver/linear_state.hpp"

/// Linear problems and rows of coefficients that fit them.
namespace fixtures {

/// Overlapping classes; some rows of the matrix do not take part and the others do in any order. One feature is zero
/// everywhere, and so are some rows.
struct LinearProblem {
    Matrix x;
    Csr<double, std::int32_t, std::int64_t> csr;
    std::vector<Index> order, labels;
    std::vector<double> cost_bounds;
    Index classes;

    LinearProblem(Index k, Index size, Index features, double density, std::uint64_t seed, double C = 1.0)
        : x(size + 5, features), csr(x), classes(k) {
        Random random(seed);
        order = random.permutation(size + 5);
        order.resize(size);
        const Matrix centres = random_matrix(k, features, random);
        for (Index i = 0; i < size; ++i) {
            labels.push_back(random.below(k));
            cost_bounds.push_back(C * random.uniform(0.5, 2.0));
        }
        for (double& v : x.values) v = random.uniform() < density ? random.normal() : 0.0;
        for (Index i = 0; i < size; ++i) {
            for (Index f = 0; f < features; ++f) {
                double& v = x.at(order[i], f);
                if (v != 0.0) v += 0.8 * centres.at(labels[i], f);
                if (f == features / 2 || i % 40 == 7) v = 0.0;
            }
        }
        csr = Csr<double, std::int32_t, std::int64_t>(x);
    }
    [[nodiscard]] Index size() const { return std::ssize(order); }
    /// The products of the examples that take part.
    [[nodiscard]] Matrix gram() const { return plain_gram({.type = polymargin::KernelType::linear}, x, order); }
    /// X'B, a row for each feature.
    [[nodiscard]] Matrix weights(std::span<const double> rows) const {
        Matrix w(x.columns, classes);
        for (Index i = 0; i < size(); ++i) {
            for (Index f = 0; f < x.columns; ++f) {
                for (Index m = 0; m < classes; ++m) w.at(f, m) += x.at(order[i], f) * rows[i * classes + m];
            }
        }
        return w;
    }
};

inline plain::Loss plain_of(const polymargin::WestonWatkins&) {
    return plain::weston_watkins();
}
inline plain::Loss plain_of(const polymargin::CrammerSinger&) {
    return plain::crammer_singer();
}
inline plain::OneVsRest plain_of(const polymargin::OneVsRest&) {
    return {};
}

inline plain::Squared plain_of(const polymargin::SquaredWestonWatkins&) {
    return {.margin = 2.0};
}
inline plain::Squared plain_of(const polymargin::SquaredCrammerSinger&) {
    return {.largest = true};
}
inline plain::Squared plain_of(const polymargin::SquaredOneVsRest&) {
    return {.one_vs_rest = true};
}
inline plain::Absolute plain_of(const polymargin::AbsoluteSum&) {
    return plain::absolute_losses(2)[0];
}
inline plain::Absolute plain_of(const polymargin::AbsoluteMaximum&) {
    return plain::absolute_losses(2)[4];
}

template <class Visit>
void for_row_losses(Visit&& visit) {
    visit(polymargin::WestonWatkins());
    visit(polymargin::CrammerSinger());
    visit(polymargin::OneVsRest());
}

/// A feasible row with many coefficients at their limits.
inline std::vector<double> feasible_row(const plain::OneVsRest&, Index k, Index label, double C, Random& random) {
    std::vector<double> beta(k);
    for (Index m = 0; m < k; ++m) {
        const double kind = random.uniform();
        const double a = kind < 0.4 ? 0.0 : kind < 0.6 ? C : C * random.uniform();
        beta[m] = plain::OneVsRest::sign(m, label) * a;
    }
    return beta;
}
inline std::vector<double> feasible_row(const plain::Loss& loss, Index k, Index label, double C, Random& random) {
    std::vector<double> beta(k, 0.0);
    if (random.uniform() < 0.2) return beta;
    double sum = 0.0;
    for (Index m = 0; m < k; ++m) {
        const double kind = random.uniform();
        if (m == label) continue;
        beta[m] = kind < 0.4 ? 0.0 : kind < 0.6 ? -C : -C * random.uniform();
        sum -= beta[m];
    }
    beta[label] = sum;
    if (std::isinf(loss.most) || sum == 0.0) return beta;
    // A limit of the sum: some rows are full.
    const double wanted = random.uniform() < 0.5 ? C : C * random.uniform(0.0, 0.9);
    for (double& b : beta) b *= wanted / sum;
    beta[label] = wanted;
    return beta;
}

template <class Loss>
std::vector<double> feasible_rows(const Loss& loss, const LinearProblem& problem, Random& random) {
    std::vector<double> rows;
    for (Index i = 0; i < problem.size(); ++i) {
        const auto row =
            feasible_row(plain_of(loss), problem.classes, problem.labels[i], problem.cost_bounds[i], random);
        rows.insert(rows.end(), row.begin(), row.end());
    }
    return rows;
}

inline polymargin::Coefficients coefficients_of(std::span<const double> rows, Index classes) {
    polymargin::Coefficients result(std::ssize(rows) / classes);
    for (Index i = 0; i < result.rows(); ++i) {
        std::vector<polymargin::Coefficients::Entry> entries;
        for (Index m = 0; m < classes; ++m) {
            if (rows[i * classes + m] != 0.0) entries.push_back({static_cast<std::int32_t>(m), rows[i * classes + m]});
        }
        result.set(i, entries);
    }
    return result;
}

/// As many numbers as classes for each example. Checks that there are no zeros among the entries.
inline std::vector<double> rows_of(const polymargin::Coefficients& coefficients, Index classes) {
    std::vector<double> rows(coefficients.rows() * classes, 0.0);
    for (Index i = 0; i < coefficients.rows(); ++i) {
        for (const auto& [m, b] : coefficients.row(i)) {
            CHECK(m >= 0 && m < classes && b != 0.0 && rows[i * classes + m] == 0.0);
            rows[i * classes + m] = b;
        }
    }
    return rows;
}

/// Every row is feasible, exactly, by code that does not trust the loss.
template <class Loss>
void check_feasible(const Loss& loss, const LinearProblem& problem, std::span<const double> rows) {
    for (Index i = 0; i < problem.size(); ++i) {
        const auto row = rows.subspan(i * problem.classes, problem.classes);
        CHECK(plain_of(loss).infeasibility(row, problem.labels[i], problem.cost_bounds[i]) == 0.0);
    }
}

}  // namespace fixtures
