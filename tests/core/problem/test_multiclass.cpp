#include "problem/multiclass.hpp"

#include "check.hpp"
#include "fixtures.hpp"
#include "plain_losses.hpp"
#include "problem/crammer_singer.hpp"
#include "problem/weston_watkins.hpp"
#include "solver/violations.hpp"

using namespace polymargin;
using fixtures::Random;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Both losses, each with what it should be.
template <class Visit>
void for_losses(Visit&& visit) {
    visit(WestonWatkins(), plain::weston_watkins());
    visit(WestonWatkins(1.0), plain::weston_watkins(1.0));
    visit(CrammerSinger(), plain::crammer_singer());
}

/// One example with its gradient and coefficients.
struct Row {
    Example example;
    std::vector<double> gradient, beta;

    [[nodiscard]] Index classes() const { return std::ssize(beta); }
};

/// A feasible row with many coefficients at their limits.
std::vector<double> feasible_row(const plain::Loss& loss, Index k, const Example& example, Random& random) {
    std::vector<double> beta(k, 0.0);
    const double unit = std::isinf(example.cost_bound) ? 10.0 : example.cost_bound;
    const double largest = std::min(loss.largest, 1.0) * unit, most = std::min(loss.most, 1e3) * unit;
    const double all = random.uniform();  // some rows are full, some empty
    double sum = 0.0;
    for (Index m = 0; m < k; ++m) {
        const double kind = random.uniform();
        if (m == example.label || all < 0.1) continue;
        const double a = kind < 0.4 ? 0.0 : kind < 0.7 ? largest : largest * random.uniform();
        beta[m] = -std::min(a, most - sum);
        sum -= beta[m];
    }
    beta[example.label] = std::min(sum, most);
    return beta;
}

/// Rows of all sizes, half of them with ties in the gradient.
Row random_row(const plain::Loss& loss, Random& random, double gradient_scale = 1.0) {
    const Index k = 2 + random.below(29);
    const double cost_bounds[] = {1e-3, 1.0, 1.0, 50.0, kInfinity, 0.0};
    Row row{.example = {random.below(k), cost_bounds[random.below(6)]}, .gradient = std::vector<double>(k), .beta = {}};
    const bool ties = random.uniform() < 0.5;
    for (double& g : row.gradient) {
        g = gradient_scale * (ties ? static_cast<double>(random.below(5)) - 2.0 : random.normal());
    }
    row.beta = feasible_row(loss, k, row.example, random);
    return row;
}

/// g'd + curvature/2 |d|^2
double value_of(const Row& row, double curvature, std::span<const double> beta) {
    double value = 0.0;
    for (Index m = 0; m < row.classes(); ++m) {
        const double d = beta[m] - row.beta[m];
        value += row.gradient[m] * d + curvature / 2 * d * d;
    }
    return value;
}

/// The exact step by bisection on the level t in more digits than the core has.
std::vector<double> plain_step(const plain::Loss& loss, const Row& row, double curvature) {
    const Index k = row.classes(), y = row.example.label;
    const long double largest = plain::Loss::times(loss.largest, row.example.cost_bound);
    const long double most = plain::Loss::times(loss.most, row.example.cost_bound);
    std::vector<long double> z(k);
    long double low = 0.0, high = 0.0;
    for (Index m = 0; m < k; ++m) {
        z[m] = -static_cast<long double>(row.beta[m]) -
               (static_cast<long double>(row.gradient[y]) - row.gradient[m]) / curvature + row.beta[y];
        if (m != y) high = std::max(high, z[m]);
    }
    const auto sum_at = [&](long double t) {
        long double sum = 0.0;
        for (Index m = 0; m < k; ++m) sum += m == y ? 0.0L : std::clamp(z[m] - t, 0.0L, largest);
        return sum;
    };
    for (int halving = 0; halving < 200; ++halving) {
        const long double t = (low + high) / 2;
        (sum_at(t) > std::min(t, most) ? low : high) = t;
    }
    std::vector<double> beta(k);
    for (Index m = 0; m < k; ++m) beta[m] = static_cast<double>(-std::clamp(z[m] - high, 0.0L, largest));
    beta[y] = static_cast<double>(sum_at(high));
    return beta;
}

/// The size of the numbers that the step computes with: what rounding is relative to.
double size_of(const Row& row, double curvature) {
    double size = 0.0;
    for (Index m = 0; m < row.classes(); ++m) {
        size = std::max(size, std::abs(row.gradient[m]) / curvature + std::abs(row.beta[m]));
    }
    return static_cast<double>(row.classes()) * size;
}

template <class Core>
void check_step(const Core& core, const plain::Loss& loss, const Row& row, double curvature, Random& random) {
    std::vector<double> beta = row.beta;
    CHECK(core.step(row.gradient, curvature, row.example, beta));
    const double rounding = 1e-14 * size_of(row, curvature);
    CHECK(loss.infeasibility(beta, row.example.label, row.example.cost_bound) == 0.0);
    const auto expected = plain_step(loss, row, curvature);
    for (Index m = 0; m < row.classes(); ++m) CHECK_CLOSE(beta[m], expected[m], rounding);
    // Nothing is left to gain where it ended.
    Row after = row;
    for (Index m = 0; m < row.classes(); ++m) after.gradient[m] += curvature * (beta[m] - row.beta[m]);
    CHECK(loss.violation(after.gradient, beta, row.example.label, row.example.cost_bound) <= 2 * curvature * rounding);
    const double reached = value_of(row, curvature, beta);
    CHECK(reached <= curvature * rounding * size_of(row, curvature));
    for (int other = 0; other < 5; ++other) {
        const auto candidate = feasible_row(loss, row.classes(), row.example, random);
        const double value = value_of(row, curvature, candidate);
        CHECK(reached <= value + 1e-12 * (std::abs(value) + curvature * size_of(row, curvature) * rounding));
    }
}

std::vector<double> violations_of(const auto& core, std::span<const Row> rows) {
    // Room around the strip, filled with what must not be looked at.
    const Index count = std::ssize(rows), k = rows[0].classes(), stride = count + 7;
    std::vector<double> gradient(k * stride + 3, 1e9), beta(k * stride + 3, -1e9), cost_bounds(count);
    std::vector<Index> labels(count);
    for (Index i = 0; i < count; ++i) {
        for (Index m = 0; m < k; ++m) {
            gradient[3 + m * stride + i] = rows[i].gradient[m];
            beta[3 + m * stride + i] = rows[i].beta[m];
        }
        labels[i] = rows[i].example.label;
        cost_bounds[i] = rows[i].example.cost_bound;
    }
    std::vector<double> out(count + 1, -7.0);
    measure_violations(
        core,
        {ClassMajor<const double>{gradient.data(), k, stride}.from(3),
         ClassMajor<const double>{beta.data(), k, stride}.from(3), labels.data(), cost_bounds.data(), count},
        out.data());
    CHECK(out.back() == -7.0);
    out.pop_back();
    return out;
}

}  // namespace

TEST(steps_go_to_the_minimum) {
    Random random(201);
    for_losses([&](const auto& core, const plain::Loss& loss) {
        for (int repeat = 0; repeat < 2000; ++repeat) {
            const Row row = random_row(loss, random);
            check_step(core, loss, row, std::exp(2 * random.normal()), random);
        }
    });
}

TEST(steps_with_tiny_and_huge_numbers) {
    Random random(202);
    for_losses([&](const auto& core, const plain::Loss& loss) {
        for (int repeat = 0; repeat < 2000; ++repeat) {
            const Row row = random_row(loss, random, std::pow(10.0, random.uniform(-100, 100)));
            check_step(core, loss, row, std::pow(10.0, random.uniform(-12, 12)), random);
        }
    });
}

TEST(a_step_from_the_minimum_stays_there) {
    Random random(203);
    for_losses([&](const auto& core, const plain::Loss& loss) {
        for (int repeat = 0; repeat < 1000; ++repeat) {
            Row row = random_row(loss, random);
            const double curvature = std::exp(random.normal());
            std::vector<double> beta = row.beta;
            CHECK(core.step(row.gradient, curvature, row.example, beta));
            const double rounding = 1e-14 * size_of(row, curvature);
            for (Index m = 0; m < row.classes(); ++m) row.gradient[m] += curvature * (beta[m] - row.beta[m]);
            row.beta = beta;
            CHECK(core.step(row.gradient, curvature, row.example, beta));
            for (Index m = 0; m < row.classes(); ++m) CHECK_CLOSE(beta[m], row.beta[m], 3 * rounding);
        }
    });
}

TEST(a_step_that_just_meets_the_limit_of_the_sum) {
    // The unlimited step ends within rounding of the limit, on either side: where sums that are rounded differ.
    Random random(204);
    const CrammerSinger core;
    for (int repeat = 0; repeat < 500; ++repeat) {
        Row row = random_row(plain::crammer_singer(), random);
        row.example.cost_bound = kInfinity;
        std::ranges::fill(row.beta, 0.0);
        std::vector<double> beta = row.beta;
        CHECK(core.step(row.gradient, 1.3, row.example, beta));
        double bound = beta[row.example.label];
        for (int ulps = 0; ulps < 3; ++ulps) bound = std::nextafter(bound, 0.0);
        for (int ulps = 0; ulps < 7; ++ulps) {
            row.example.cost_bound = bound;
            check_step(core, plain::crammer_singer(), row, 1.3, random);
            bound = std::nextafter(bound, kInfinity);
        }
    }
}

TEST(both_limits_together) {
    const plain::Loss loss{.margin = 1.0, .largest = 1.0, .most = 2.0};
    struct TwoLimits {
        bool step(std::span<const double> gradient, double curvature, const Example& example,
                  std::span<double> beta) const {
            const double C = example.cost_bound;
            return exact_step(gradient, curvature, example.label, {.largest = C, .most = 2 * C}, beta);
        }
    };
    Random random(205);
    for (int repeat = 0; repeat < 2000; ++repeat) {
        check_step(TwoLimits(), loss, random_row(loss, random), std::exp(random.normal()), random);
    }
}

TEST(without_curvature_a_step_goes_to_the_end) {
    Random random(206);
    for_losses([&](const auto& core, const plain::Loss& loss) {
        for (int repeat = 0; repeat < 5000; ++repeat) {
            const Row row = random_row(loss, random);
            const Index y = row.example.label;
            double highest = -kInfinity;
            for (const double g : row.gradient) highest = std::max(highest, g);
            std::vector<double> beta = row.beta;
            const bool ends = core.step(row.gradient, 0.0, row.example, beta);
            CHECK(ends == (std::isfinite(row.example.cost_bound) || highest <= row.gradient[y]));
            if (!ends) continue;
            CHECK(loss.infeasibility(beta, y, row.example.cost_bound) == 0.0);
            CHECK(loss.violation(row.gradient, beta, y, row.example.cost_bound) == 0.0);
        }
    });
}

TEST(without_curvature_ties_stay_where_they_are) {
    // Full rows whose coefficients do not add up to the limit exactly: there is nothing to gain and nothing to move.
    Random random(207);
    for_losses([&](const auto& core, const plain::Loss& loss) {
        for (int repeat = 0; repeat < 2000; ++repeat) {
            const Index k = 3 + random.below(10);
            Row row{.example = {random.below(k), 1.0}, .gradient = std::vector<double>(k, 0.5), .beta = {}};
            row.beta.resize(k);
            for (double& b : row.beta) b = -random.uniform();
            core.make_feasible(row.example, row.beta);
            std::vector<double> beta = row.beta;
            CHECK(core.step(row.gradient, 0.0, row.example, beta));
            CHECK(loss.infeasibility(beta, row.example.label, row.example.cost_bound) == 0.0);
            for (Index m = 0; m < k; ++m) CHECK_CLOSE(beta[m], row.beta[m], 1e-14);
        }
    });
}

TEST(hardly_any_curvature_is_like_none) {
    Random random(208);
    for_losses([&](const auto& core, const plain::Loss& loss) {
        for (int repeat = 0; repeat < 500; ++repeat) {
            Row row = random_row(loss, random);
            if (std::isinf(row.example.cost_bound)) row.example.cost_bound = 2.0;
            row.beta = feasible_row(loss, row.classes(), row.example, random);
            for (const double curvature : {1e-300, 1e-310, std::numeric_limits<double>::denorm_min()}) {
                std::vector<double> beta = row.beta;
                CHECK(core.step(row.gradient, curvature, row.example, beta));
                CHECK(loss.infeasibility(beta, row.example.label, row.example.cost_bound) == 0.0);
                CHECK(loss.violation(row.gradient, beta, row.example.label, row.example.cost_bound) <= 1e-10);
            }
        }
    });
}

TEST(violations_of_strips) {
    Random random(209);
    for_losses([&](const auto& core, const plain::Loss& loss) {
        for (const Index count : {1, 63, 64, 65, 200}) {
            const Index k = 2 + random.below(9);
            std::vector<Row> rows;
            while (std::ssize(rows) < count) {
                Row row = random_row(loss, random);
                row.gradient.resize(k);
                row.example.label %= k;
                row.beta = feasible_row(loss, k, row.example, random);
                rows.push_back(std::move(row));
            }
            const auto found = violations_of(core, rows);
            for (Index i = 0; i < count; ++i) {
                const Row& row = rows[i];
                CHECK(found[i] == loss.violation(row.gradient, row.beta, row.example.label, row.example.cost_bound));
            }
        }
    });
}

TEST(losses_and_margins) {
    Random random(210);
    for_losses([&](const auto& core, const plain::Loss& loss) {
        CHECK(core.offsets(3)[3] == -loss.margin && core.offsets(3)[2] == 0.0);
        for (int repeat = 0; repeat < 1000; ++repeat) {
            const Index k = 2 + random.below(29), label = random.below(k);
            std::vector<double> scores(k);
            for (double& s : scores) s = 2 * random.normal();
            CHECK_CLOSE(core.loss(scores, label), loss.loss(scores, label), 1e-13 * static_cast<double>(k));
            CHECK_CLOSE(core.margin(scores, label), loss.smallest_margin(scores, label), 1e-15);
            CHECK((core.margin(scores, label) >= 1.0) == (core.loss(scores, label) == 0.0));
        }
    });
    CHECK(WestonWatkins().loss(std::vector<double>{3.0, 1.5, -1.0}, 0) == 0.5);
    CHECK(WestonWatkins().loss(std::vector<double>{3.0, 1.5, 2.0}, 2) == 3.0 + 1.5);
    CHECK(CrammerSinger().loss(std::vector<double>{3.0, 1.5, 2.0}, 2) == 2.0);
    CHECK(CrammerSinger().margin(std::vector<double>{3.0, 1.5, 2.0}, 2) == -1.0);
    CHECK(WestonWatkins().margin(std::vector<double>{3.0, 1.5, 2.0}, 0) == 0.5);
}

TEST(rows_are_made_feasible) {
    Random random(211);
    for_losses([&](const auto& core, const plain::Loss& loss) {
        for (int repeat = 0; repeat < 2000; ++repeat) {
            const Row row = random_row(loss, random);
            std::vector<double> beta = row.beta;
            core.make_feasible(row.example, beta);
            for (Index m = 0; m < row.classes(); ++m) CHECK_CLOSE(beta[m], row.beta[m], 1e-12);
            for (double& b : beta) b = 3 * random.normal();
            core.make_feasible(row.example, beta);
            CHECK(loss.infeasibility(beta, row.example.label, row.example.cost_bound) == 0.0);
            const std::vector<double> once = beta;
            core.make_feasible(row.example, beta);
            for (Index m = 0; m < row.classes(); ++m) CHECK_CLOSE(beta[m], once[m], 1e-12);
        }
    });
}

TEST(full_rows_stay_full) {
    // A row that left its limit by the rounding of a sum would violate by all of its loss.
    Random random(214);
    const CrammerSinger core;
    for (int repeat = 0; repeat < 2000; ++repeat) {
        Row row = random_row(plain::crammer_singer(), random);
        row.example.cost_bound = 0.7;
        std::ranges::fill(row.beta, 0.0);
        for (double& g : row.gradient) g = random.normal();
        row.gradient[row.example.label] = -10.0;
        CHECK(core.step(row.gradient, 1.0, row.example, row.beta));
        CHECK(row.beta[row.example.label] == 0.7);
        core.make_feasible(row.example, row.beta);
        CHECK(row.beta[row.example.label] == 0.7);
    }
}

TEST(directions_span_the_face) {
    Random random(212);
    for_losses([&](const auto& core, const plain::Loss& loss) {
        for (int repeat = 0; repeat < 2000; ++repeat) {
            const Row row = random_row(loss, random);
            const auto& [label, bound] = row.example;
            Index dimension = 0;
            for (Index m = 0; m < row.classes(); ++m) {
                dimension += m != label && row.beta[m] < 0.0 && row.beta[m] > -plain::Loss::times(loss.largest, bound);
            }
            const bool full = row.beta[label] >= plain::Loss::times(loss.most, bound);
            if (full) dimension = std::max<Index>(0, dimension - 1);
            const auto directions = core.directions(row.beta, row.example);
            CHECK(std::ssize(directions) == dimension);
            CHECK(core.at_vertex(row.beta, row.example) == directions.empty());
            std::vector<char> gives(row.classes(), 0);
            for (const auto& [gains, loses, also] : directions) {
                CHECK(also == kNoClass && gains != loses && gains == directions[0].gains &&
                      !gives[loses]);  // a star: independent
                gives[loses] = 1;
                std::vector<double> change(row.classes(), 0.0);
                change[gains] = 1.0;
                change[loses] = -1.0;
                CHECK(core.max_step(row.beta, change, row.example) > 0.0);
                std::swap(change[gains], change[loses]);
                CHECK(core.max_step(row.beta, change, row.example) > 0.0);
            }
        }
    });
}

TEST(the_max_step_is_as_far_as_a_row_can_go) {
    Random random(213);
    for_losses([&](const auto& core, const plain::Loss& loss) {
        for (int repeat = 0; repeat < 2000; ++repeat) {
            const Row row = random_row(loss, random);
            const auto& [label, bound] = row.example;
            // Towards another feasible row and beyond: all of the way there is open.
            const auto goal = feasible_row(loss, row.classes(), row.example, random);
            std::vector<double> change(row.classes()), beta(row.classes());
            double length = 0.0;
            for (Index m = 0; m < row.classes(); ++m) {
                change[m] = goal[m] - row.beta[m];
                length = std::max(length, std::abs(change[m]));
            }
            if (length == 0.0) continue;
            const double max_step = core.max_step(row.beta, change, row.example);
            CHECK(max_step >= 1.0 - 1e-9);
            const auto excess = [&](double share) {
                double worst = 0.0;
                for (Index m = 0; m < row.classes(); ++m) {
                    const double b = row.beta[m] + share * change[m];
                    const double top = m == label ? plain::Loss::times(loss.most, bound) : 0.0;
                    const double bottom = m == label ? -kInfinity : -plain::Loss::times(loss.largest, bound);
                    worst = std::max({worst, b - top, bottom - b});
                }
                return worst;
            };
            CHECK(excess(std::min(max_step, 1e6)) <= 1e-12 * std::min(max_step, 1e6) * std::max(1.0, length));
            if (std::isfinite(max_step)) CHECK(excess(max_step * (1 + 1e-6) + 1e-9) > 0.0);
        }
    });
}

TEST(rows_with_both_limits_sum_to_zero_whatever_the_numbers) {
    Random random(77);
    for (int round = 0; round < 20'000; ++round) {
        const Index k = 2 + round % 6, label = round % k;
        const double C = std::pow(10.0, random.uniform(-12.0, 12.0)),
                     curvature = std::pow(10.0, random.uniform(-6.0, 6.0));
        const RowLimits limits{.largest = C, .most = 1.5 * C};
        std::vector<double> gradient(k), beta(k, 0.0);
        for (double& g : gradient) g = random.uniform(-1.0, 1.0) * std::pow(10.0, random.uniform(-20.0, 20.0));
        CHECK(exact_step(gradient, curvature, label, limits, beta));
        double sum = 0.0;
        for (Index m = 0; m < k; ++m) {
            sum += beta[m];
            if (m != label) CHECK(-beta[m] >= 0.0 && -beta[m] <= C);
        }
        CHECK(std::abs(sum) <= 1e-14 * k * C);
        CHECK(beta[label] <= limits.most);
    }
}
