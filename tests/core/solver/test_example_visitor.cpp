#include "solver/example_visitor.hpp"

#include "check.hpp"
#include "fixtures.hpp"
#include "linear_problems.hpp"

using namespace polymargin;
using fixtures::LinearProblem;
using fixtures::Random;

namespace {

/// Any point: weights need not be those of the coefficients.
template <class Loss>
struct AnyPoint {
    const LinearProblem& problem;
    DataView data;
    LinearRows<double> rows;
    Weights<double> weights;
    std::vector<double> start;
    Coefficients coefficients;
    std::vector<double> bias;
    double bias_weight = 0.5;
    LinearPoint<Loss, double> point;

    AnyPoint(const Loss& loss, const LinearProblem& p, Random& random)
        : problem(p),
          data(p.x.dense()),
          rows(data, p.order, {}),
          weights(rows.features(), p.classes),
          start(fixtures::feasible_rows(loss, p, random)),
          coefficients(fixtures::coefficients_of(start, p.classes)),
          bias(weights.width(), 0.0),
          point{loss, p.labels, p.cost_bounds, p.classes, rows, weights, coefficients, bias, bias_weight} {
        for (Index f = 0; f < rows.features(); ++f) {
            for (Index m = 0; m < p.classes; ++m) weights.row(f)[m] = random.normal();
        }
        for (Index m = 0; m < p.classes; ++m) bias[m] = random.normal();
    }

    /// By the loss itself, with all classes.
    [[nodiscard]] std::vector<double> best_row(Index i) const {
        const Index k = problem.classes;
        std::vector<double> gradient(weights.width()), row(start.begin() + i * k, start.begin() + (i + 1) * k);
        weights.products(rows.row(i), gradient.data());
        gradient.resize(k);
        const auto offsets = point.loss.offsets(problem.labels[i]);
        for (Index m = 0; m < k; ++m) gradient[m] += bias[m] + offsets[m];
        CHECK(point.loss.step(gradient, point.curvature(i), point.example(i), row));
        return row;
    }
    [[nodiscard]] std::vector<double> visited_row(Index i, const Visit<double>& visit) const {
        const Index k = problem.classes;
        if (visit.changes.empty()) return {start.begin() + i * k, start.begin() + (i + 1) * k};
        std::vector<double> row(k, 0.0);
        for (const auto& [m, b] : visit.row) row[m] = b;
        return row;
    }
};

}  // namespace

TEST(a_visit_finds_the_row_that_is_best_for_all_classes) {
    Random random(371);
    for (const Index k : {2, 5, 30}) {
        for (const double C : {0.02, 1.0, 50.0}) {
            const LinearProblem problem(k, 120, 8, 0.6, 372 + k, C);
            fixtures::for_row_losses([&](const auto& loss) {
                using Loss = std::decay_t<decltype(loss)>;
                const AnyPoint<Loss> at(loss, problem, random);
                ExampleVisitor<Loss, double> visitor(at.point);
                Visit<double> visit;
                for (Index i = 0; i < problem.size(); ++i) {
                    visitor(i, {.used_only = false, .with_loss = true}, visit);
                    const auto best = at.best_row(i), found = at.visited_row(i, visit);
                    for (Index m = 0; m < k; ++m) CHECK_CLOSE(found[m], best[m], 1e-9 * C);
                    CHECK(visit.at_vertex == loss.at_vertex(found, at.point.example(i)));
                }
            });
        }
    }
}
