#include "solver/multipliers.hpp"

#include "check.hpp"

using namespace polymargin;

namespace {

/// Two coefficients of one class, `min 1/2 (4 x^2 + y^2) - 3 x - y + weight/2 (x + y)^2 + shift (x + y)`, each within a
/// box: without a bias x + y is not zero, with the right one it is.
struct Toy {
    double box, tolerance;
    double x = 0.0, y = 0.0, weight = 0.0, shift = 0.0;
    int solved = 0, given_up = 0;

    Status solve(double w, const std::vector<double>& s, double) {
        weight = w;
        shift = s[0];
        ++solved;
        for (int step = 0; step < 200; ++step) {
            x = std::clamp((3.0 - shift - weight * y) / (4.0 + weight), -box, box);
            y = std::clamp((1.0 - shift - weight * x) / (1.0 + weight), -box, box);
        }
        return Status::converged;
    }
    [[nodiscard]] std::vector<double> sums() const { return {x + y}; }
    [[nodiscard]] std::vector<double> bias() const { return {shift + weight * (x + y)}; }
    std::optional<Status> judge(const std::vector<double>&, double left, Status status) {
        return left <= tolerance ? std::optional(status) : std::nullopt;
    }
    Status give_up(const std::vector<double>&) {
        ++given_up;
        return Status::precision;
    }
};
static_assert(BiasedProblem<Toy>);

}  // namespace

TEST(multipliers_make_the_sums_zero) {
    // x = -y and 4 x - 3 + b = 0 = y - 1 + b: x = 0.4.
    for (const double scale : {0.1, 1.0, 10.0}) {
        Toy toy{.box = 10.0, .tolerance = 1e-10};
        const auto result = solve_by_multipliers(toy, scale, {0.0}, {});
        CHECK(result.status == Status::converged && result.steps == toy.solved && toy.given_up == 0);
        CHECK_CLOSE(toy.x, 0.4, 1e-8);
        CHECK_CLOSE(toy.y, -0.4, 1e-8);
        CHECK_CLOSE(result.bias[0], 1.4, 1e-8);
    }
}

TEST(multipliers_start_where_they_are_told) {
    Toy toy{.box = 10.0, .tolerance = 1e-10};
    const auto result = solve_by_multipliers(toy, 1.0, {1.4}, {});
    CHECK(result.steps == 1);
    CHECK_CLOSE(result.bias[0], 1.4, 1e-9);
}

TEST(multipliers_hurry_while_nothing_moves) {
    // A bias far off: both are at their limits until b has come near, and the weight doubles on the way.
    Toy toy{.box = 1.0, .tolerance = 1e-10};
    const auto fast = solve_by_multipliers(toy, 1.0, {-1e6}, {});
    CHECK(fast.status == Status::converged && fast.steps < 60);
    CHECK_CLOSE(toy.x + toy.y, 0.0, 1e-9);
    // Without that it would take as many steps as it is far.
    Toy slow{.box = 1.0, .tolerance = 1e-10};
    const auto stopped = solve_by_multipliers(slow, 1.0, {-1e6}, {.max_steps = 100, .stuck = {2.0}});
    CHECK(stopped.status == Status::precision && stopped.steps == 100 && slow.given_up == 1);
}

TEST(shares_of_what_was_left) {
    const RemainingShare from_half{0.5}, same{1.0 / 1.01, 1.0 / 0.99};
    CHECK(from_half.contains(0.6, 1.0) && from_half.contains(7.0, 1.0) && !from_half.contains(0.5, 1.0));
    CHECK(from_half.contains(0.1, 0.0) && !from_half.contains(0.0, 0.0));
    CHECK(!from_half.contains(1.0, std::numeric_limits<double>::infinity()));
    CHECK(same.contains(1.0, 1.0) && same.contains(1.005, 1.0) && !same.contains(1.02, 1.0) &&
          !same.contains(0.98, 1.0));
}
