#include "problem/folds.hpp"

#include "audit.hpp"
#include "check.hpp"
#include "fixtures.hpp"
#include "solver/binary.hpp"

using namespace polymargin;
using fixtures::KernelSetup;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr Index kAmple = Index{1} << 30;
constexpr double kTimeLimit = 20.0;
constexpr Index kFolds = 4;
const KernelSpec kRbf{.type = KernelType::rbf, .gamma = 0.2};

/// How much of the kernel is in the store when solving starts.
enum class Stored { whole, squares, nothing };

/// Overlapping classes and a fold for each example.
struct Data {
    Matrix x;
    Matrix gram;
    std::vector<double> cost_bounds;
    std::vector<Index> fold;
    Index classes, per_class;

    Data(Index k, Index per, std::uint64_t seed) : Data(k, per, Random(seed)) {}

    [[nodiscard]] std::vector<BinaryProblem> pairs() const { return audit::all_pairs(classes, per_class); }
    [[nodiscard]] Folds folds() const { return {fold, cost_bounds}; }

  private:
    Data(Index k, Index per, Random random)
        : x(fixtures::blobs(k, per, 4, 0.7, random)),
          gram(fixtures::plain_gram(kRbf, x, fixtures::identity(k * per))),
          classes(k),
          per_class(per) {
        for (Index i = 0; i < k * per; ++i) {
            cost_bounds.push_back(random.uniform(0.5, 3.0));
            fold.push_back(i % kFolds);
        }
    }
};

template <class Real>
std::vector<BinaryResult> solve(const Data& data, std::span<const BinaryProblem> problems,
                                const BinarySettings& settings, Stored stored, int threads = 1, Index budget = kAmple) {
    KernelSetup<Real> setup(kRbf, data.x.dense(), fixtures::identity(data.x.rows), budget, threads, kTimeLimit);
    std::vector<Range> ranges;
    for (Index m = 0; m < data.classes; ++m) ranges.push_back({m * data.per_class, (m + 1) * data.per_class});
    if (stored == Stored::whole) setup.store.compute_whole();
    if (stored == Stored::squares) setup.store.compute_squares(ranges);
    return solve_binary<Real>(problems, data.cost_bounds, setup.store, settings, setup.control);
}

std::vector<Index> members(const BinaryProblem& problem) {
    std::vector<Index> all;
    for (const SignedRange& s : problem.ranges) {
        for (Index g = s.begin; g < s.end; ++g) all.push_back(g);
    }
    return all;
}

/// The decision value of example g.
double value(const Matrix& gram, const BinaryResult& result, Index g) {
    double sum = result.intercept;
    for (std::size_t i = 0; i < result.support.size(); ++i) sum += result.beta[i] * gram.at(g, result.support[i]);
    return sum;
}

/// The problem solved without the examples of a fold: they are not in it at all.
BinaryResult solved_without(const Data& data, const BinaryProblem& problem, Index fold) {
    std::vector<Index> left;
    Index positive = 0;
    for (const Index g : members(problem)) {
        if (data.fold[g] == fold) continue;
        if (problem.ranges[0].range().contains(g)) ++positive;  // those of a pair come first
        left.push_back(g);
    }
    const BinaryProblem rest = audit::pair({0, positive}, {positive, std::ssize(left)});
    KernelSetup<double> setup(kRbf, data.x.dense(), left, kAmple, 1, kTimeLimit);
    std::vector<double> cost_bounds;
    for (const Index g : left) cost_bounds.push_back(data.cost_bounds[g]);
    auto result =
        solve_binary<double>(std::span(&rest, 1), cost_bounds, setup.store, {.tolerance = 1e-8}, setup.control).front();
    for (Index& s : result.support) s = left[s];
    return result;
}

}  // namespace

TEST(a_fold_is_left_out_by_bounds_of_zero) {
    const Folds folds({1, -1, 0, 1}, std::vector<double>{2.0, 3.0, 4.0, 5.0});
    CHECK(folds.cost_bounds.size() == 2);
    CHECK((folds.cost_bounds[0] == std::vector<double>{2.0, 3.0, 0.0, 5.0}));
    CHECK((folds.cost_bounds[1] == std::vector<double>{0.0, 3.0, 4.0, 0.0}));
    CHECK_THROWS(std::invalid_argument, "every example needs a fold", Folds({0}, std::vector<double>{1.0, 1.0}));
}

TEST(held_out_values_are_those_of_machines_that_have_not_seen_the_example) {
    const Data data(3, 60, 141);
    const auto pairs = data.pairs();
    const Folds folds = data.folds();
    for (const auto stored : {Stored::whole, Stored::squares, Stored::nothing}) {
        const auto results = solve<double>(data, pairs, {.tolerance = 1e-8, .folds = &folds}, stored);
        for (std::size_t p = 0; p < pairs.size(); ++p) {
            audit::check_solved(pairs[p], data.cost_bounds, data.gram, results[p], 1e-8, 1e-10);
            const auto all = members(pairs[p]);
            CHECK(results[p].held_out.size() == all.size());
            for (Index fold = 0; fold < kFolds; ++fold) {
                const auto without = solved_without(data, pairs[p], fold);
                for (std::size_t i = 0; i < all.size(); ++i) {
                    if (data.fold[all[i]] != fold) continue;
                    CHECK_CLOSE(results[p].held_out[i], value(data.gram, without, all[i]), 1e-5);
                }
            }
        }
    }
}

TEST(folds_do_not_change_the_solution) {
    const Data data(4, 50, 142);
    const auto pairs = data.pairs();
    const Folds folds = data.folds();
    const Blas blas = plain::blas();
    for (const auto stored : {Stored::whole, Stored::squares}) {
        const auto plain = solve<double>(data, pairs, {.polish = &blas}, stored);
        auto folded = solve<double>(data, pairs, {.polish = &blas, .folds = &folds}, stored);
        for (std::size_t p = 0; p < pairs.size(); ++p) {
            CHECK(plain[p].held_out.empty() && !folded[p].held_out.empty());
            folded[p].held_out.clear();
            CHECK(audit::same(plain[p], folded[p]));
        }
    }
}

TEST(held_out_values_do_not_depend_on_the_threads) {
    const Data data(4, 70, 143);
    const auto pairs = data.pairs();
    const Folds folds = data.folds();
    const BinarySettings settings{.working_set = 32, .folds = &folds};
    const Index tight = 6 * 40 * 2 * padded<float>(70) * 4;
    for (const auto& [stored, budget] : {std::pair{Stored::whole, kAmple},
                                         {Stored::squares, kAmple},
                                         {Stored::nothing, kAmple},
                                         {Stored::nothing, tight}}) {
        const auto alone = solve<float>(data, pairs, settings, stored, 1, budget);
        for (const int threads : {2, 4}) {
            const auto together = solve<float>(data, pairs, settings, stored, threads, budget);
            for (std::size_t p = 0; p < pairs.size(); ++p) CHECK(audit::same(alone[p], together[p]));
        }
    }
}

TEST(an_example_without_a_fold_has_its_value_by_the_machine_itself) {
    Data data(2, 40, 144);
    for (Index g = 0; g < 40; ++g) data.fold[g] = -1;
    const auto pairs = data.pairs();
    const Folds folds = data.folds();
    const auto result = solve<double>(data, pairs, {.folds = &folds}, Stored::whole)[0];
    double other = 0.0;
    for (Index g = 0; g < 80; ++g) {
        const double difference = std::abs(result.held_out[g] - value(data.gram, result, g));
        if (g < 40) CHECK(difference <= 1e-9);
        if (g >= 40) other = std::max(other, difference);
    }
    CHECK(other > 1e-3);
}

TEST(a_problem_has_only_the_folds_of_its_own_examples) {
    Data data(2, 20, 145);
    for (Index g = 0; g < 40; ++g) data.fold[g] = g == 7 ? 900 : -1;
    const auto pairs = data.pairs();
    const Folds folds = data.folds();
    const auto result = solve<double>(data, pairs, {.tolerance = 1e-8, .folds = &folds}, Stored::whole)[0];
    const auto without = solved_without(data, pairs[0], 900);
    CHECK_CLOSE(result.held_out[7], value(data.gram, without, 7), 1e-5);
}

TEST(without_a_class_the_other_one_is_the_answer) {
    Data data(2, 10, 146);
    for (Index g = 0; g < 20; ++g) data.fold[g] = g < 10 ? 0 : 1;
    const auto pairs = data.pairs();
    const Folds folds = data.folds();
    const auto result = solve<double>(data, pairs, {.folds = &folds}, Stored::whole)[0];
    CHECK(result.status == Status::converged);
    for (Index g = 0; g < 20; ++g) CHECK(result.held_out[g] == (g < 10 ? -1.0 : 1.0));
}

TEST(a_fold_that_is_not_solved_is_reported) {
    const Data data(2, 80, 147);
    const auto pairs = data.pairs();
    const Folds folds = data.folds();
    const auto enough = solve<double>(data, pairs, {.tolerance = 1e-6}, Stored::whole)[0].iterations;
    // The whole problem is the largest, but a fold may need more steps than the whole: find a limit between them.
    bool found = false;
    for (Index limit = enough; limit > 0 && !found; --limit) {
        const BinarySettings settings{.tolerance = 1e-6, .max_iterations = limit, .folds = &folds};
        const auto result = solve<double>(data, pairs, settings, Stored::whole)[0];
        found = result.status == Status::max_iterations;
        if (found) CHECK(result.violation > 1e-6 && result.iterations <= enough);
        for (const double v : result.held_out) CHECK(std::isfinite(v));
    }
    CHECK(found);
}

TEST(a_stop_leaves_the_values_of_the_machine_as_it_is) {
    const Data data(3, 60, 148);
    const auto pairs = data.pairs();
    const Folds folds = data.folds();
    for (const bool squares : {false, true}) {
        KernelSetup<double> setup(kRbf, data.x.dense(), fixtures::identity(180), kAmple, 1);
        if (squares) setup.store.compute_squares(std::vector<Range>{{0, 60}, {60, 120}, {120, 180}});
        setup.control.cancel();
        for (const auto& result :
             solve_binary<double>(pairs, data.cost_bounds, setup.store, {.folds = &folds}, setup.control)) {
            CHECK(result.status == Status::stopped);
            CHECK(result.held_out.size() == 120);
            for (const double v : result.held_out) CHECK(v == result.intercept);
        }
    }
}
