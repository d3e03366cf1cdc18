#include "solver/circulation.hpp"

#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::Matrix;
using fixtures::Random;

namespace {

/// What goes out of each node minus what comes in.
std::vector<double> imbalance(const Matrix& flow) {
    std::vector<double> excess(flow.rows, 0.0);
    for (Index p = 0; p < flow.rows; ++p) {
        for (Index m = 0; m < flow.rows; ++m) {
            excess[p] += flow.at(p, m);
            excess[m] -= flow.at(p, m);
        }
    }
    return excess;
}

Matrix balanced(const Matrix& flow) {
    Matrix result(flow.rows, flow.rows);
    result.values = largest_circulation_below(flow.values, flow.rows);
    CHECK(std::ssize(result.values) == flow.rows * flow.rows);
    double size = 0.0, surplus = 0.0;
    for (const double f : flow.values) size += f;
    for (const double e : imbalance(flow)) surplus += std::max(e, 0.0);
    const double rounding = 1e-14 * size;
    for (const double e : imbalance(result)) CHECK_CLOSE(e, 0.0, rounding);
    for (std::size_t e = 0; e < flow.values.size(); ++e) {
        CHECK(result.values[e] >= 0.0 && result.values[e] <= flow.values[e]);
        CHECK(flow.values[e] - result.values[e] <= surplus + rounding);
    }
    return result;
}

/// Random edges; `density` of them are there.
Matrix random_flow(Index nodes, double density, Random& random) {
    Matrix flow(nodes, nodes);
    for (Index p = 0; p < nodes; ++p) {
        for (Index m = 0; m < nodes; ++m) {
            if (p != m && random.uniform() < density) flow.at(p, m) = random.uniform();
        }
    }
    return flow;
}

}  // namespace

TEST(random_flows_become_circulations) {
    Random random(221);
    for (int repeat = 0; repeat < 400; ++repeat) {
        balanced(random_flow(1 + random.below(20), random.uniform(), random));
    }
}

TEST(flows_of_very_different_sizes) {
    Random random(222);
    for (int repeat = 0; repeat < 200; ++repeat) {
        Matrix flow = random_flow(2 + random.below(10), 0.7, random);
        for (double& f : flow.values) f *= std::pow(10.0, random.uniform(-20, 20));
        balanced(flow);
    }
}

TEST(a_circulation_stays_as_it_is) {
    Random random(223);
    for (int repeat = 0; repeat < 100; ++repeat) {
        // A sum of cycles, in numbers that add up without rounding.
        const Index nodes = 2 + random.below(10);
        Matrix flow(nodes, nodes);
        for (int cycle = 0; cycle < 5; ++cycle) {
            const auto order = random.permutation(nodes);
            const Index length = 2 + random.below(nodes - 1);
            const auto amount = static_cast<double>(1 + random.below(100)) / 64;
            for (Index s = 0; s < length; ++s) flow.at(order[s], order[(s + 1) % length]) += amount;
        }
        CHECK(balanced(flow).values == flow.values);
    }
}

TEST(a_nearly_balanced_flow_hardly_changes) {
    Random random(224);
    for (int repeat = 0; repeat < 100; ++repeat) {
        const Index nodes = 3 + random.below(8);
        Matrix flow = balanced(random_flow(nodes, 0.9, random));
        for (double& f : flow.values) f *= 1.0 + 1e-9 * random.normal();
        const Matrix result = balanced(flow);
        for (std::size_t e = 0; e < flow.values.size(); ++e) {
            CHECK_CLOSE(result.values[e], flow.values[e], 1e-7 * static_cast<double>(nodes));
        }
    }
}

TEST(a_chain_carries_nothing) {
    Matrix flow(6, 6);
    for (Index p = 0; p + 1 < 6; ++p) flow.at(p, p + 1) = 0.1 * static_cast<double>(p + 1);
    for (const double f : balanced(flow).values) CHECK_CLOSE(f, 0.0, 1e-15);
}

TEST(a_chain_into_a_cycle_leaves_the_cycle) {
    Matrix flow(4, 4);
    flow.at(0, 1) = 0.25;  // comes from nowhere
    flow.at(1, 2) = flow.at(2, 1) = 0.5;
    flow.at(2, 3) = 0.25;  // goes nowhere
    flow.at(1, 2) += 0.25;
    const Matrix result = balanced(flow);
    CHECK(result.at(1, 2) == 0.5 && result.at(2, 1) == 0.5);
    CHECK(result.at(0, 1) == 0.0 && result.at(2, 3) == 0.0);
}

TEST(parts_that_do_not_touch_are_balanced_apart) {
    Matrix flow(6, 6);
    flow.at(0, 1) = flow.at(1, 0) = 0.5;  // balanced already
    flow.at(2, 3) = 0.75;
    flow.at(3, 2) = 0.25;
    flow.at(4, 5) = 0.5;
    const Matrix result = balanced(flow);
    CHECK(result.at(0, 1) == 0.5 && result.at(1, 0) == 0.5);
    CHECK(result.at(2, 3) == 0.25 && result.at(3, 2) == 0.25);
    CHECK(result.at(4, 5) == 0.0);
}

TEST(no_flow_is_a_circulation) {
    for (const Index nodes : {1, 5}) CHECK(balanced(Matrix(nodes, nodes)).values == Matrix(nodes, nodes).values);
}
