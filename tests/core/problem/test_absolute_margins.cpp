#include "problem/absolute_margins.hpp"

#include "check.hpp"
#include "fixtures.hpp"
#include "plain_absolute.hpp"
#include "solver/violations.hpp"

using namespace polymargin;
using fixtures::Random;

namespace {

/// A random feasible row, some of its coefficients at their limits, and the sum too where it has one.
std::vector<double> random_row(const plain::Absolute& loss, Index k, Index label, double C, Random& random) {
    std::vector<double> row(k, 0.0);
    double sum = 0.0;
    for (Index m = 0; m < k; ++m) {
        const double limit = std::min(loss.limit(m, label, C), C), kind = random.uniform();
        const double a = kind < 0.4 ? 0.0 : kind < 0.6 ? limit : limit * random.uniform();
        row[m] = a == 0.0 ? 0.0 : plain::Absolute::sigma(m, label) * a;
        sum += a;
    }
    if (std::isinf(loss.most) || sum == 0.0) return row;
    const double wanted = random.uniform() < 0.5 ? C : C * random.uniform(0.1, 0.9);
    for (double& b : row) b *= wanted / sum;
    return row;
}

template <class Visit>
void for_rows(Visit&& visit) {
    Random random(601);
    for (const Index k : {2, 3, 6}) {
        for (const auto& plain : plain::absolute_losses(k)) {
            std::visit(
                [&](const auto& loss) {
                    for (int trial = 0; trial < 60; ++trial) {
                        const Example example{random.below(k), random.uniform(0.2, 3.0)};
                        auto row = random_row(plain, k, example.label, example.cost_bound, random);
                        if constexpr (MulticlassLoss<std::decay_t<decltype(loss)>>) {
                            visit(loss, plain, example, std::move(row), random);
                        }
                    }
                },
                plain.core);
        }
    }
}

std::vector<double> random_numbers(Index k, Random& random) {
    std::vector<double> numbers(k);
    for (double& v : numbers) v = random.normal();
    return numbers;
}

}  // namespace

TEST(absolute_margins_have_their_losses_and_margins) {
    for_rows([](const auto& loss, const auto& plain, const Example& example, const auto& row, Random& random) {
        const auto scores = random_numbers(std::ssize(row), random);
        CHECK_CLOSE(loss.loss(scores, example.label), plain.loss(scores, example.label), 1e-14);
        CHECK_CLOSE(loss.margin(scores, example.label), plain.smallest_margin(scores, example.label), 1e-14);
        // The loss is what the best feasible row with C = 1 makes of the hinges.
        const double dual = [&] {
            double value = 0.0;
            for (Index m = 0; m < std::ssize(row); ++m) value -= row[m] * (loss.offsets(example.label)[m] + scores[m]);
            return value;
        }();
        CHECK(dual <= example.cost_bound * plain.loss(scores, example.label) * (1 + 1e-12) + 1e-12);
    });
}

TEST(absolute_margins_know_how_far_a_row_is_from_optimal) {
    for_rows([](const auto& loss, const auto& plain, const Example& example, const auto& row, Random& random) {
        const auto gradient = random_numbers(std::ssize(row), random);
        const double size = loss.violation(extremes_of(loss, gradient, row, example));
        const double expected = plain.violation(gradient, row, example.label, example.cost_bound);
        CHECK_CLOSE(std::max(size, 0.0), expected, 1e-13);
        // The pass over many examples says the same.
        const Index k = std::ssize(row);
        std::vector<double> columns(gradient), rows(row);
        double out = -1.0;
        const ClassMajor<const double> g{columns.data(), k, 1}, b{rows.data(), k, 1};
        measure_violations(loss, ExampleStrip{g, b, &example.label, &example.cost_bound, 1}, &out);
        CHECK_CLOSE(out, expected, 1e-13);
        if constexpr (kSharedLimit<std::decay_t<decltype(loss)>>) {
            // With the multiplier of the sum, each coefficient for itself violates by no more than twice as little.
            const double nu = loss.multiplier(gradient, row, example);
            double worst = 0.0;
            for (Index m = 0; m < k; ++m) {
                const double h = plain::Absolute::sigma(m, example.label) * gradient[m] + nu;
                if (row[m] != 0.0) worst = std::max(worst, h);
                if (plain.limit(m, example.label, 1.0) > 0.0) worst = std::max(worst, -h);
            }
            CHECK(nu >= 0.0 && worst <= expected + 1e-13 && worst >= expected / 2 - 1e-13);
        }
    });
}

TEST(absolute_rows_become_feasible_and_stay_so) {
    for_rows([](const auto& loss, const auto& plain, const Example& example, auto row, Random& random) {
        const auto before = row;
        loss.make_feasible(example, row);
        for (std::size_t m = 0; m < row.size(); ++m) CHECK_CLOSE(row[m], before[m], 1e-13);
        for (double& b : row) b += 0.3 * random.normal();
        loss.make_feasible(example, row);
        CHECK(plain.infeasibility(row, example.label, example.cost_bound) <= 1e-13);
    });
}

TEST(directions_of_absolute_rows_span_the_face) {
    for_rows([](const auto& loss, const auto& plain, const Example& example, const auto& row, Random& random) {
        const Index k = std::ssize(row);
        const double C = example.cost_bound;
        const auto directions = loss.directions(row, example);
        Index free = 0;
        for (Index m = 0; m < k; ++m) free += row[m] != 0.0 && std::abs(row[m]) < plain.limit(m, example.label, C);
        if (std::isfinite(plain.most) && plain.full(row, C)) free = std::max<Index>(0, free - 1);
        CHECK(std::ssize(directions) == free);
        CHECK(loss.at_vertex(row, example) == directions.empty());
        std::vector<double> change(k, 0.0);
        for (const Direction& d : directions) {
            std::vector<double> one(k, 0.0);
            d.add_to(one, 1.0);
            CHECK(d.dot(d) == 1 || d.dot(d) == 2);
            double sum = 0.0;
            for (const double v : one) sum += v;
            CHECK(d.sum() == static_cast<int>(sum));
            const double by = random.normal();
            for (Index m = 0; m < k; ++m) change[m] += by * one[m];
        }
        if (directions.empty()) return;
        const double share = loss.max_step(row, change, example);
        CHECK(share > 0.0);
        if (std::isinf(share)) return;
        const auto moved = [&](double length) {
            auto there = row;
            for (Index m = 0; m < k; ++m) there[m] += length * change[m];
            return plain.infeasibility(there, example.label, C);
        };
        CHECK(moved(share) <= 1e-12 && moved(share * (1 + 1e-6)) > 0.0);
    });
}
