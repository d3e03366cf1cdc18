#include "problem/class_costs.hpp"

#include "check.hpp"
#include "fixtures.hpp"

namespace {

using namespace polymargin;

constexpr Index kClasses = 4;
constexpr double kInf = std::numeric_limits<double>::infinity();

/// Costs from 0.5 to 3, and targets of the own classes on the diagonal.
std::vector<double> random_targets(std::uint64_t seed) {
    fixtures::Random random(seed);
    std::vector<double> targets(kClasses * kClasses);
    for (double& t : targets) t = random.uniform(0.5, 3.0);
    return targets;
}

/// By how much class m is short of its margin, and how far it is from its rival or from zero, by definition.
struct Plain {
    bool relative;
    const std::vector<double>& targets;

    [[nodiscard]] double target(Index y, Index m) const { return targets[y * kClasses + m]; }
    [[nodiscard]] double lead(std::span<const double> s, Index y, Index m) const {
        return relative ? s[y] - s[m] : (m == y ? s[m] : -s[m]);
    }
};

/// What a loss is with costs: a sum of hinges with these shares, or the largest of them.
struct Shares {
    double own, others;
    bool largest;
};

template <class Loss>
void check_loss(const Loss& loss, const Shares& shares) {
    const auto targets = random_targets(3);
    const WithCosts<Loss> costly(loss, kClasses, targets);
    const Plain plain{Loss::kRowsSumToZero, targets};
    fixtures::Random random(5);
    for (int repeat = 0; repeat < 50; ++repeat) {
        std::vector<double> s(kClasses);
        for (double& v : s) v = random.uniform(-3.0, 3.0);
        const Index y = repeat % kClasses;
        double sum = 0.0, largest = 0.0, margin = kInf;
        for (Index m = 0; m < kClasses; ++m) {
            const double share = m == y ? shares.own : shares.others;
            if (share == 0.0) continue;
            const double hinge = std::max(0.0, plain.target(y, m) - plain.lead(s, y, m));
            sum += share * hinge;
            largest = std::max(largest, hinge);
            margin = std::min(margin, plain.lead(s, y, m) / plain.target(y, m));
            // The gradient of a coefficient is zero where the hinge begins.
            const auto o = costly.offsets(y);
            const double gradient = plain.relative ? s[y] + o[y] - s[m] - o[m] : (m == y ? 1.0 : -1.0) * (s[m] + o[m]);
            CHECK_CLOSE(gradient, plain.lead(s, y, m) - plain.target(y, m), 1e-12);
        }
        CHECK_CLOSE(costly.loss(s, y), shares.largest ? largest : sum, 1e-12);
        CHECK_CLOSE(costly.margin(s, y), margin, 1e-12);
    }
}

TEST(losses_with_costs_are_those_of_their_margins) {
    check_loss(WestonWatkins(), {0.0, 1.0, false});
    check_loss(CrammerSinger(), {0.0, 1.0, true});
    check_loss(AbsoluteSum(), {0.0, 1.0, false});
    check_loss(AbsoluteSum(0.25, 0.75, 3.0), {0.25, 0.75, false});
    check_loss(AbsoluteMaximum(), {0.0, 1.0, true});
    check_loss(AbsoluteMaximum(true), {1.0, 1.0, true});
}

TEST(equal_margins_are_the_loss_itself) {
    const std::vector<double> targets(kClasses * kClasses, 2.0);
    const WestonWatkins plain(2.0);
    const WithCosts<WestonWatkins> costly(plain, kClasses, targets);
    const std::vector<double> s{0.3, -1.2, 0.8, 0.1};
    for (Index y = 0; y < kClasses; ++y) {
        CHECK(costly.loss(s, y) == plain.loss(s, y));
        CHECK(costly.margin(s, y) == plain.margin(s, y));
    }
}

TEST(tables_of_another_size_are_refused) {
    CHECK_THROWS(std::invalid_argument, "classes x classes",
                 WithCosts<CrammerSinger>(CrammerSinger(), 3, std::vector<double>(8, 1.0)));
}

}  // namespace
