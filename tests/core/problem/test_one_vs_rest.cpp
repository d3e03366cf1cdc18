#include "problem/one_vs_rest.hpp"

#include "check.hpp"
#include "fixtures.hpp"
#include "plain_losses.hpp"

using namespace polymargin;
using fixtures::Random;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One example with its gradient and coefficients, many of them at their limits; the label may be no column.
struct Row {
    Example example;
    std::vector<double> gradient, beta;

    explicit Row(Random& random) {
        const Index k = 1 + random.below(12);
        const double cost_bounds[] = {1e-3, 1.0, 50.0, kInfinity, 0.0};
        example = {random.below(k + 1) - 1, cost_bounds[random.below(5)]};
        const double unit = std::isinf(example.cost_bound) ? 10.0 : example.cost_bound;
        for (Index m = 0; m < k; ++m) {
            const double kind = random.uniform();
            const double a = kind < 0.3 ? 0.0 : kind < 0.6 ? unit : unit * random.uniform();
            beta.push_back(plain::OneVsRest::sign(m, example.label) * a);
            gradient.push_back(random.uniform() < 0.2 ? 0.0 : random.normal());
        }
    }
    [[nodiscard]] Index classes() const { return std::ssize(beta); }
    [[nodiscard]] double low(Index m) const { return m == example.label ? 0.0 : -example.cost_bound; }
    [[nodiscard]] double high(Index m) const { return m == example.label ? example.cost_bound : 0.0; }
};

}  // namespace

TEST(one_vs_rest_steps_are_the_best_of_each_coordinate) {
    Random random(321);
    const OneVsRest core;
    const plain::OneVsRest loss;
    for (int repeat = 0; repeat < 2000; ++repeat) {
        const Row row(random);
        for (const double curvature : {0.0, std::numeric_limits<double>::denorm_min(), 1e-3, 1.0, 200.0}) {
            std::vector<double> beta = row.beta;
            // Without curvature and limit there may be no best.
            bool exists = true;
            for (Index m = 0; m < row.classes(); ++m) {
                const double goal = row.gradient[m] > 0.0 ? row.low(m) : row.high(m);
                if (curvature < 1e-300 && row.gradient[m] != 0.0) exists = exists && std::isfinite(goal);
            }
            CHECK(core.step(row.gradient, curvature, row.example, beta) == exists);
            if (!exists) continue;
            CHECK(loss.infeasibility(beta, row.example.label, row.example.cost_bound) == 0.0);
            for (Index m = 0; m < row.classes(); ++m) {
                const auto value = [&](double b) {
                    const double d = b - row.beta[m];
                    return row.gradient[m] * d + curvature / 2 * d * d;
                };
                const double reached = value(beta[m]), low = std::max(row.low(m), row.beta[m] - 2e3),
                             high = std::min(row.high(m), row.beta[m] + 2e3);
                for (int s = 0; s <= 16; ++s) {
                    const double other = value(low + (high - low) * s / 16);
                    CHECK(reached <= other + 1e-12 * std::abs(other));
                }
                // Nothing to gain is no reason to move.
                if (row.gradient[m] == 0.0) CHECK(beta[m] == row.beta[m]);
                if (beta[m] > row.low(m) && beta[m] < row.high(m)) {
                    CHECK_CLOSE(row.gradient[m] + curvature * (beta[m] - row.beta[m]), 0.0,
                                1e-13 * (1.0 + curvature * std::abs(row.beta[m])));
                }
            }
        }
    }
}

TEST(one_vs_rest_rows_by_their_definitions) {
    Random random(322);
    const OneVsRest core;
    const plain::OneVsRest loss;
    CHECK(core.offsets(2)[2] == -1.0 && core.offsets(2)[1] == 1.0 && core.offsets(-1)[0] == 1.0);
    CHECK(!OneVsRest::kRowsSumToZero && !OneVsRest::kConjugate && SeparableLoss<OneVsRest>);
    for (int repeat = 0; repeat < 2000; ++repeat) {
        Row row(random);
        const auto& [label, bound] = row.example;
        CHECK_CLOSE(core.loss(row.gradient, label), loss.loss(row.gradient, label), 1e-13);
        bool corner = true;
        for (Index m = 0; m < row.classes(); ++m) {
            const double b = row.beta[m];
            CHECK(core.may_grow(b, m == label, bound) == (b < row.high(m)));
            CHECK(core.may_fall(b, m == label, bound) == (b > row.low(m)));
            corner = corner && (b == row.low(m) || b == row.high(m));
        }
        CHECK(core.at_vertex(row.beta, row.example) == corner);
        const std::vector<double> before = row.beta;
        core.make_feasible(row.example, row.beta);
        CHECK(row.beta == before);
        for (double& b : row.beta) b = 3 * random.normal();
        const std::vector<double> astray = row.beta;
        core.make_feasible(row.example, row.beta);
        CHECK(loss.infeasibility(row.beta, label, bound) == 0.0);
        for (Index m = 0; m < row.classes(); ++m) {
            if (astray[m] >= row.low(m) && astray[m] <= row.high(m)) CHECK(row.beta[m] == astray[m]);
        }
    }
    CHECK(core.loss(std::vector<double>{3.0, 0.5, -0.5}, 1) == 4.0 + 0.5 + 0.5);
    CHECK(core.loss(std::vector<double>{-3.0, 0.5, -1.5}, -1) == 1.5);
}

TEST(the_best_shift_of_one_vs_rest_is_better_than_any_other) {
    Random random(322);
    const OneVsRest core;
    for (int round = 0; round < 200; ++round) {
        const Index n = 1 + random.below(30), m = random.below(3);
        std::vector<double> scores, cost_bounds;
        std::vector<Index> labels;
        for (Index i = 0; i < n; ++i) {
            scores.push_back(round % 2 == 0 ? random.normal() : static_cast<double>(random.below(4)));
            cost_bounds.push_back(round % 3 == 0 ? 1.0 : 10.0 * random.uniform());
            labels.push_back(random.below(3));
        }
        const auto loss = [&](double shift) {
            double sum = 0.0;
            for (Index i = 0; i < n; ++i) {
                const double sign = labels[i] == m ? 1.0 : -1.0;
                sum += cost_bounds[i] * std::max(0.0, 1.0 - sign * (scores[i] + shift));
            }
            return sum;
        };
        const double best = loss(core.best_shift(scores, labels, cost_bounds, m));
        for (Index i = 0; i < n; ++i) {  // the least of a function of this form is at a kink, or nowhere
            CHECK(best <= loss(1.0 - scores[i]) + 1e-9 && best <= loss(-1.0 - scores[i]) + 1e-9);
        }
    }
}
