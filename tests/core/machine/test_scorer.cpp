#include "machine/scorer.hpp"

#include "check.hpp"
#include "fixtures.hpp"
#include "machine/rounding.hpp"

using namespace polymargin;
using fixtures::Csr;
using fixtures::Matrix;
using fixtures::Random;

namespace {

/// More rows and vectors than one tile takes, and scores made of several overlapping ranges of vectors.
struct Model {
    Matrix x, vectors, coefficients;
    std::vector<Index> rows;
    std::vector<ScoreBlock> blocks;
    std::vector<double> intercepts{0.5, -0.25, 0.0, 2.0};

    explicit Model(Index vector_count, std::uint64_t seed = 131)
        : x(0, 0), vectors(0, 0), coefficients(2, vector_count) {
        Random random(seed);
        x = fixtures::random_matrix(200, 19, random, 0.7);
        vectors = fixtures::random_matrix(vector_count, 19, random, 0.7);
        for (double& c : coefficients.values) c = random.normal() / std::sqrt(static_cast<double>(vector_count));
        rows = random.permutation(200);
        rows.resize(170);
        rows.push_back(rows.front());  // a row may be asked for twice
        const Index third = vector_count / 3;
        blocks = {{{0, third}, {0, 1}}, {{third, vector_count}, {0}}, {{0, vector_count}, {3, 2}}};
    }

    [[nodiscard]] ScoringModel scoring(const KernelSpec& kernel, const DataView& support) const {
        return {support, kernel, coefficients.values, 2, blocks, intercepts};
    }

    [[nodiscard]] double score(const KernelSpec& kernel, Index row, Index column) const {
        double sum = intercepts[column];
        for (const auto& block : blocks) {
            for (std::size_t m = 0; m < block.columns.size(); ++m) {
                if (block.columns[m] != column) continue;
                for (Index s = block.vectors.begin; s < block.vectors.end; ++s) {
                    sum += coefficients.at(static_cast<Index>(m), s) *
                           fixtures::plain_kernel(kernel, x.row(row), vectors.row(s));
                }
            }
        }
        return sum;
    }
};

constexpr KernelSpec kKernels[] = {{.type = KernelType::rbf, .gamma = 0.05},
                                   {.type = KernelType::linear},
                                   {.type = KernelType::polynomial, .gamma = 0.05, .coef0 = 1.0, .degree = 3},
                                   {.type = KernelType::sigmoid, .gamma = 0.05, .coef0 = -0.5}};

struct Answer {
    std::vector<double> scores, sizes;
    bool operator==(const Answer&) const = default;
};

Answer answer(const Scorer& scorer, const DataView& data, std::span<const Index> rows, ScoreOptions options = {},
              const Control& control = {}) {
    Answer found{std::vector<double>(rows.size() * scorer.model().scores()), std::vector<double>(rows.size())};
    scorer.scores(data, rows, options, found.scores, found.sizes, plain::blas(), control);
    return found;
}

/// Many rows, few and one alone have the scores of plain loops.
void check_all(const Model& model, const KernelSpec& kernel, const DataView& data, const DataView& support,
               const ScoreOptions& options, double tolerance) {
    const Scorer scorer(model.scoring(kernel, support));
    for (const std::size_t count : {model.rows.size(), std::size_t{3}, std::size_t{1}}) {
        const auto rows = std::span(model.rows).first(count);
        const auto found = answer(scorer, data, rows, options);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            for (Index m = 0; m < 4; ++m) {
                CHECK_CLOSE(found.scores[i * 4 + m], model.score(kernel, rows[i], m), tolerance);
            }
        }
    }
}

}  // namespace

TEST(scores_match_plain_loops) {
    for (const Index vectors : {7, 700, 1200}) {
        const Model model(vectors);
        for (const auto& kernel : kKernels) {
            const auto x = model.x.dense(), support = model.vectors.dense();
            check_all(model, kernel, x, support, {.accuracy = 1e-3}, 1e-3);
            check_all(model, kernel, x, support, {.accuracy = 1e-3, .same_sums = false}, 1e-3);
            check_all(model, kernel, x, support, {.accuracy = 0.0}, 1e-10);  // forces double precision
        }
    }
}

TEST(rows_and_vectors_may_be_dense_or_sparse) {
    for (const Index vectors : {300, 1100}) {
        const Model model(vectors);
        const Csr<float, std::int32_t> x32(model.x), v32(model.vectors);
        const Csr<double, std::int64_t> x64(model.x), v64(model.vectors);
        const auto dense_x = model.x.dense(), dense_vectors = model.vectors.dense();
        for (const auto& kernel : kKernels) {
            check_all(model, kernel, x32.view(), v32.view(), {.accuracy = 1e-3}, 1e-3);
            check_all(model, kernel, x64.view(), v64.view(), {.accuracy = 0.0}, 1e-10);
            check_all(model, kernel, dense_x, v64.view(), {.accuracy = 0.0}, 1e-10);
            check_all(model, kernel, x64.view(), dense_vectors, {.accuracy = 0.0}, 1e-10);
            check_all(model, kernel, x64.view(), dense_vectors, {.accuracy = 1e-3, .same_sums = false}, 1e-3);
        }
    }
}

TEST(sizes_are_those_of_the_terms) {
    const Model model(20);
    for (const auto& kernel : kKernels) {
        const Scorer scorer(model.scoring(kernel, model.vectors.dense()));
        double largest = 0.0;
        for (Index s = 0; s < 20; ++s)
            largest =
                std::max(largest, fixtures::plain_kernel(kKernels[1], model.vectors.row(s), model.vectors.row(s)));
        const auto found = answer(scorer, model.x.dense(), model.rows);
        for (std::size_t i = 0; i < model.rows.size(); ++i) {
            const auto x = model.x.row(model.rows[i]);
            CHECK_CLOSE(found.sizes[i], kernel.pair_rounding(fixtures::plain_kernel(kKernels[1], x, x), largest), 1e-9);
        }
    }
    CHECK(kKernels[2].pair_rounding(1e200, 1e200) == 1e150);
    CHECK(kKernels[0].pair_rounding(std::numeric_limits<double>::infinity(), 1.0) == 1e150);
}

TEST(scores_do_not_depend_on_the_threads_nor_on_earlier_calls) {
    const Model model(1200);
    const Scorer scorer(model.scoring(kKernels[0], model.vectors.dense()));
    const auto alone = answer(scorer, model.x.dense(), model.rows);
    const auto exact = answer(scorer, model.x.dense(), model.rows, {.accuracy = 0.0});
    for (const int threads : {2, 4}) {
        CHECK(answer(scorer, model.x.dense(), model.rows, {.threads = threads}) == alone);
        CHECK(answer(scorer, model.x.dense(), model.rows, {.accuracy = 0.0, .threads = threads}) == exact);
    }
}

TEST(threads_may_share_a_scorer) {
    const Model model(1200);
    const Scorer scorer(model.scoring(kKernels[0], model.vectors.dense()));
    std::vector<Answer> found(4);
    {
        std::vector<std::jthread> threads;
        for (Answer& one : found) {
            threads.emplace_back([&] { one = answer(scorer, model.x.dense(), model.rows); });
        }
    }
    for (const Answer& one : found) CHECK(one == found.front());
}

TEST(nothing_to_score) {
    Model model(20);
    CHECK(answer(Scorer(model.scoring(kKernels[0], model.vectors.dense())), model.x.dense(), {}).scores.empty());
    model.blocks = {{{5, 5}, {1}}};
    const Scorer empty(model.scoring(kKernels[0], model.vectors.dense()));
    const auto found = answer(empty, model.x.dense(), model.rows);
    for (std::size_t i = 0; i < found.scores.size(); ++i) CHECK(found.scores[i] == model.intercepts[i % 4]);
    const Matrix none(0, 19), no_coefficients(2, 0);
    const Scorer without({none.dense(), kKernels[0], no_coefficients.values, 2, {{{0, 0}, {0, 1}}}, {1.0, 2.0}});
    CHECK(answer(without, model.x.dense(), std::vector<Index>{3}).scores == (std::vector<double>{1.0, 2.0}));
}

TEST(scores_are_added_to_what_was_there) {
    const Model model(20);
    const Scorer scorer(model.scoring(kKernels[1], model.vectors.dense()));
    std::vector<double> out(model.rows.size() * 4, 10.0);
    scorer.add(model.x.dense(), model.rows, {}, out, plain::blas(), Control());
    for (std::size_t i = 0; i < model.rows.size(); ++i) {
        CHECK_CLOSE(out[i * 4], 10.0 - 0.5 + model.score(kKernels[1], model.rows[i], 0), 1e-10);
    }
}

TEST(large_values_do_not_become_nonsense) {
    // In single precision these squares overflow; the answer must come from double, where RBF is simply zero.
    Model model(1200);
    for (double& v : model.x.values) v *= 1e25;
    const Scorer scorer(model.scoring(kKernels[0], model.vectors.dense()));
    for (const std::size_t count : {model.rows.size(), std::size_t{1}}) {
        const auto found = answer(scorer, model.x.dense(), std::span(model.rows).first(count), {.same_sums = false});
        for (std::size_t i = 0; i < found.scores.size(); ++i) CHECK(found.scores[i] == model.intercepts[i % 4]);
    }
    for (double& v : model.x.values) v *= 1e60;
    for (const std::size_t count : {model.rows.size(), std::size_t{1}}) {
        const auto rows = std::span(model.rows).first(count);
        CHECK_THROWS(std::invalid_argument, "too large", answer(scorer, model.x.dense(), rows));
    }
    model.x.values[model.rows[0] * 19 + 7] = 1e160;
    CHECK_THROWS(std::invalid_argument, "column 7", answer(scorer, model.x.dense(), std::span(model.rows).first(1)));
}

TEST(a_cancelled_request_ends) {
    const Model model(700);
    Control control;
    control.cancel();
    const Scorer scorer(model.scoring(kKernels[0], model.vectors.dense()));
    const auto stopped = answer(scorer, model.x.dense(), model.rows, {}, control);
    for (std::size_t i = 0; i < stopped.scores.size(); ++i) CHECK(stopped.scores[i] == model.intercepts[i % 4]);
    // What was prepared meanwhile is whole.
    CHECK_CLOSE(answer(scorer, model.x.dense(), model.rows).scores[0], model.score(kKernels[0], model.rows[0], 0),
                1e-9);
    control.abandon();
    const Scorer other(model.scoring(kKernels[0], model.vectors.dense()));
    bool abandoned = false;
    try {
        answer(other, model.x.dense(), model.rows, {}, control);
    } catch (const Abandoned&) {
        abandoned = true;
    }
    CHECK(abandoned);
}

TEST(parts_of_a_model_that_do_not_fit_are_refused) {
    const Model model(20);
    const auto refused = [&](auto&& change) {
        auto broken = model.scoring(kKernels[0], model.vectors.dense());
        change(broken);
        CHECK_THROWS(std::invalid_argument, "", Scorer{broken});
    };
    refused([](ScoringModel& m) { m.height = 3; });
    refused([](ScoringModel& m) { m.blocks[0].vectors = {0, 21}; });
    refused([](ScoringModel& m) { m.blocks[0].vectors = {3, 2}; });
    refused([](ScoringModel& m) { m.blocks[0].columns = {0, 1, 2}; });
    refused([](ScoringModel& m) { m.blocks[0].columns = {4}; });
    refused([](ScoringModel& m) { m.vectors = PrecomputedView{}; });
}

TEST(few_rows_of_a_prepared_model_are_short_work) {
    const Model model(700);
    const Scorer scorer(model.scoring(kKernels[0], model.vectors.dense()));
    CHECK(scorer.is_short(1));
    CHECK(!scorer.is_short(1'000'000));
}
