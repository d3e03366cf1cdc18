#include "machine/elimination.hpp"

#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr KernelSpec kRbf{.type = KernelType::rbf, .gamma = 0.05};
constexpr KernelSpec kSigmoid{.type = KernelType::sigmoid, .gamma = 0.05};

/// Pair machines of k classes with random coefficients, in scikit-learn's layout.
struct Pairs {
    Index classes;
    Matrix x, vectors, coefficients;
    std::vector<ScoreBlock> blocks;
    std::vector<double> intercepts, masses;

    explicit Pairs(Index k, Index per_class = 30) : classes(k), x(0, 0), vectors(0, 0), coefficients(k - 1, 0) {
        Random random(7);
        x = fixtures::random_matrix(150, 11, random, 1.0);
        vectors = fixtures::random_matrix(k * per_class + k * (k - 1) / 2, 11, random, 1.0);
        coefficients = Matrix(k - 1, std::ssize(vectors.values) / 11);
        for (double& c : coefficients.values) c = random.normal();
        intercepts.resize(k * (k - 1) / 2);
        for (double& b : intercepts) b = 0.1 * random.normal();
        masses.assign(intercepts.size(), 1.0);
        Index begin = 0;
        for (Index c = 0; c < k; ++c) {
            ScoreBlock block{{begin, begin + per_class + c}, {}};  // classes of different sizes
            for (Index j = 0; j < k; ++j) {
                if (j != c) block.columns.push_back(pair(std::min(c, j), std::max(c, j)));
            }
            begin = block.vectors.end;
            blocks.push_back(block);
        }
    }

    [[nodiscard]] Index pair(Index i, Index j) const { return i * (2 * classes - i - 1) / 2 + j - i - 1; }
    [[nodiscard]] ScoringModel model(const KernelSpec& kernel = kRbf) const {
        return {vectors.dense(), kernel, coefficients.values, classes - 1, blocks, intercepts};
    }
};

/// The rules by hand, from the scores of all pairs.
Index by_hand(Elimination rule, const Pairs& pairs, const double* scores) {
    std::vector<Index> left;
    for (Index c = 0; c < pairs.classes; ++c) left.push_back(c);
    const auto winner = [&](Index a, Index b) {
        const Index i = std::min(a, b), j = std::max(a, b);
        return scores[pairs.pair(i, j)] > 0.0 ? i : j;
    };
    while (left.size() > 1) {
        if (rule == Elimination::dag) {
            const bool first = winner(left.front(), left.back()) == left.front();
            left.erase(first ? left.end() - 1 : left.begin());
            continue;
        }
        std::vector<Index> next;
        const std::size_t n = left.size();
        for (std::size_t m = 0; m < n / 2; ++m) next.push_back(winner(left[m], left[n - 1 - m]));
        if (n % 2 == 1) next.push_back(left[n / 2]);
        left = next;
    }
    return left.front();
}

struct Decided {
    std::vector<Index> classes;
    std::vector<std::uint8_t> uncertain;
    bool operator==(const Decided&) const = default;
};

Decided decide(const Scorer& scorer, const Pairs& pairs, std::span<const Index> rows, Elimination rule,
               double unit = 0.0, ScoreOptions options = {.accuracy = 0.0}) {
    Decided found{std::vector<Index>(rows.size()), std::vector<std::uint8_t>(rows.size())};
    eliminate(scorer, pairs.x.dense(), rows, rule, {unit, pairs.masses, 1e9}, options, found.classes, found.uncertain,
              plain::blas(), Control());
    return found;
}

std::vector<Index> first_rows(Index count) {
    std::vector<Index> rows(count);
    for (Index i = 0; i < count; ++i) rows[i] = i;
    return rows;
}

}  // namespace

TEST(eliminations_ask_the_pairs_that_the_rules_name) {
    for (const Index k : {2, 3, 4, 5, 8, 13}) {
        const Pairs pairs(k);
        const Scorer scorer(pairs.model());
        const auto rows = first_rows(150);
        std::vector<double> scores(150 * pairs.intercepts.size()), sizes(150);
        scorer.scores(pairs.x.dense(), rows, {.accuracy = 0.0}, scores, sizes, plain::blas(), Control());
        for (const auto rule : {Elimination::dag, Elimination::adag}) {
            const auto found = decide(scorer, pairs, rows, rule);
            for (Index i = 0; i < 150; ++i) {
                CHECK(found.classes[i] == by_hand(rule, pairs, scores.data() + i * std::ssize(pairs.intercepts)));
                CHECK(found.uncertain[i] == 0);
                CHECK(decide(scorer, pairs, std::span(rows).subspan(i, 1), rule).classes[0] == found.classes[i]);
            }
            CHECK(decide(scorer, pairs, rows, rule, 0.0, {.accuracy = 0.0, .threads = 3}) == found);
        }
    }
}

TEST(a_tie_goes_to_the_second_class_and_is_uncertain) {
    Pairs pairs(4);
    for (double& b : pairs.intercepts) b = 0.0;
    for (double& c : pairs.coefficients.values) c = 0.0;
    for (const auto& kernel : {kRbf, kSigmoid}) {
        const Scorer scorer(pairs.model(kernel));
        for (const auto rule : {Elimination::dag, Elimination::adag}) {
            const auto found = decide(scorer, pairs, first_rows(20), rule);
            for (const Index c : found.classes) CHECK(c == 3);
            // Zeros times an exponential were not rounded; other kernels are not looked at so closely.
            for (const auto uncertain : found.uncertain) CHECK(uncertain == (kernel.type != KernelType::rbf));
        }
    }
}

TEST(only_pairs_on_the_path_make_a_row_uncertain) {
    Pairs pairs(3);
    for (double& c : pairs.coefficients.values) c = 0.0;
    pairs.intercepts = {0.0, 5.0, 1.0};  // (0,1) undecided, (0,2) for 0, (1,2) for 1
    const Scorer asked(pairs.model(kSigmoid));
    CHECK(decide(asked, pairs, first_rows(1), Elimination::dag).uncertain[0] == 1);
    pairs.intercepts = {1.0, 5.0, 0.0};  // (1,2) is never asked
    const Scorer not_asked(pairs.model(kSigmoid));
    CHECK(decide(not_asked, pairs, first_rows(1), Elimination::dag) == (Decided{{0}, {0}}));
    // Errors grow with the size of the kernel values, the mass and the intercept, up to a largest.
    CHECK(decide(not_asked, pairs, first_rows(1), Elimination::dag, 1.0).uncertain[0] == 1);
}

TEST(rows_far_from_the_vectors_of_a_pair_have_small_errors) {
    Pairs pairs(3);
    for (double& v : pairs.x.values) v += 10.0;  // kernel values of e^-50 and less
    const Scorer rbf(pairs.model()), sigmoid(pairs.model(kSigmoid));
    for (const Index row : first_rows(3)) {
        const std::vector<Index> rows{row};
        CHECK(decide(rbf, pairs, rows, Elimination::adag, 1e-3).uncertain[0] == 0);
        CHECK(decide(sigmoid, pairs, rows, Elimination::adag, 1e3).uncertain[0] == 1);
    }
}

TEST(single_precision_decides_what_is_certain) {
    const Pairs pairs(5, 300);
    const Scorer scorer(pairs.model());
    const auto rows = first_rows(150);
    const auto exact = decide(scorer, pairs, rows, Elimination::adag);
    const auto single = decide(scorer, pairs, rows, Elimination::adag, 1e-6, {.accuracy = 1e9});
    for (Index i = 0; i < 150; ++i) CHECK(single.uncertain[i] == 1 || single.classes[i] == exact.classes[i]);
    CHECK(std::ranges::count(single.uncertain, 0) > 100);
}

TEST(scores_that_are_not_all_pairs_cannot_be_eliminated) {
    Pairs pairs(3);
    CHECK(scores_all_pairs(pairs.model()));
    std::swap(pairs.blocks[0].columns[0], pairs.blocks[0].columns[1]);
    CHECK(!scores_all_pairs(pairs.model()));
    const Scorer scorer(pairs.model());
    CHECK_THROWS(std::invalid_argument, "every pair", decide(scorer, pairs, first_rows(1), Elimination::dag));
}
