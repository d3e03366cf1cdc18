#include "machine/scores.hpp"

#include "check.hpp"
#include "fixtures.hpp"

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
    static constexpr Index kScores = 4;

    explicit Model(Index vector_count, std::uint64_t seed = 131)
        : x(0, 0), vectors(0, 0), coefficients(2, vector_count) {
        Random random(seed);
        x = fixtures::random_matrix(200, 6, random, 0.7);
        vectors = fixtures::random_matrix(vector_count, 6, random, 0.7);
        for (double& c : coefficients.values) c = random.normal() / std::sqrt(static_cast<double>(vector_count));
        rows = random.permutation(200);
        rows.resize(170);
        rows.push_back(rows.front());  // a row may be asked for twice
        const Index third = vector_count / 3;
        blocks = {{{0, third}, {0, 1}}, {{third, vector_count}, {0}}, {{0, vector_count}, {3, 2}}};
    }

    [[nodiscard]] ScoreRequest request(const KernelSpec& kernel, const DataView& data, const DataView& support) const {
        ScoreRequest r;
        r.data = data;
        r.rows = rows;
        r.vectors = support;
        r.kernel = kernel;
        r.coefficients = coefficients.values;
        r.height = 2;
        r.blocks = blocks;
        r.scores = kScores;
        return r;
    }

    [[nodiscard]] double score(const KernelSpec& kernel, std::size_t row, Index column) const {
        double sum = 0.0;
        for (const auto& block : blocks) {
            for (std::size_t m = 0; m < block.columns.size(); ++m) {
                if (block.columns[m] != column) continue;
                for (Index s = block.vectors.begin; s < block.vectors.end; ++s) {
                    sum += coefficients.at(static_cast<Index>(m), s) *
                           fixtures::plain_kernel(kernel, x.row(rows[row]), vectors.row(s));
                }
            }
        }
        return sum;
    }

    /// The scores are added to what was there.
    void check(const KernelSpec& kernel, std::span<const double> out, double before, double accuracy) const {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            for (Index m = 0; m < kScores; ++m) {
                CHECK_CLOSE(out[i * kScores + m], before + score(kernel, i, m), accuracy);
            }
        }
    }
};

constexpr KernelSpec kKernels[] = {{.type = KernelType::rbf, .gamma = 0.1},
                                   {.type = KernelType::linear},
                                   {.type = KernelType::polynomial, .gamma = 0.1, .coef0 = 1.0, .degree = 3},
                                   {.type = KernelType::sigmoid, .gamma = 0.1, .coef0 = -0.5}};

std::vector<double> scores_of(const ScoreRequest& request, double before = 0.0) {
    std::vector<double> out(request.rows.size() * request.scores, before);
    add_scores(request, out, plain::blas(), Control());
    return out;
}

}  // namespace

TEST(scores_match_plain_loops) {
    for (const Index vectors : {7, 700, 1200}) {
        const Model model(vectors);
        for (const auto& kernel : kKernels) {
            auto request = model.request(kernel, model.x.dense(), model.vectors.dense());
            request.accuracy = 1e-4;
            model.check(kernel, scores_of(request, 10.0), 10.0, 1e-4);
            request.accuracy = 1e-14;  // forces double precision
            model.check(kernel, scores_of(request, 10.0), 10.0, 1e-11);
        }
    }
}

TEST(sparse_scores_match_plain_loops) {
    const Model model(600);
    const Csr<float, std::int32_t> x32(model.x), v32(model.vectors);
    const Csr<double, std::int64_t> x64(model.x), v64(model.vectors);
    for (const auto& kernel : kKernels) {
        model.check(kernel, scores_of(model.request(kernel, x32.view(), v32.view())), 0.0, 1e-4);
        auto request = model.request(kernel, x64.view(), v64.view());
        request.accuracy = 1e-14;
        model.check(kernel, scores_of(request), 0.0, 1e-11);
    }
}

template <class Real>
void check_kernel_values(double accuracy) {
    const Model model(700);
    const Csr<Real, std::int64_t> x(model.x), vectors(model.vectors);
    for (const auto& kernel : kKernels) {
        for (const bool sparse : {false, true}) {
            auto request = sparse ? model.request(kernel, x.view(), vectors.view())
                                  : model.request(kernel, model.x.dense(), model.vectors.dense());
            std::vector<Real> alone(model.rows.size() * 700), shared(alone.size());
            kernel_values<Real>(request, alone, plain::blas(), Control());
            request.threads = 3;
            kernel_values<Real>(request, shared, plain::blas(), Control());
            CHECK(alone == shared);
            for (std::size_t i = 0; i < model.rows.size(); ++i) {
                for (Index s = 0; s < 700; ++s) {
                    const double k = fixtures::plain_kernel(kernel, model.x.row(model.rows[i]), model.vectors.row(s));
                    CHECK_CLOSE(static_cast<double>(alone[i * 700 + s]), k, accuracy);
                }
            }
        }
    }
}

TEST(kernel_values_match_plain_loops) {
    check_kernel_values<double>(1e-12);
    check_kernel_values<float>(1e-4);
}

TEST(kernel_values_of_large_points_are_refused) {
    Model model(20);
    for (double& v : model.x.values) v *= 1e25;
    const auto request = model.request(kKernels[1], model.x.dense(), model.vectors.dense());
    std::vector<float> out(request.rows.size() * 20);
    CHECK_THROWS(std::invalid_argument, "too large", kernel_values<float>(request, out, plain::blas(), Control()));
}

TEST(scores_do_not_depend_on_the_threads) {
    const Model model(1200);
    auto request = model.request(kKernels[0], model.x.dense(), model.vectors.dense());
    const auto alone = scores_of(request);
    for (const int threads : {2, 4}) {
        request.threads = threads;
        CHECK(scores_of(request) == alone);
    }
}

TEST(nothing_to_score) {
    const Model model(20);
    auto request = model.request(kKernels[0], model.x.dense(), model.vectors.dense());
    request.blocks.clear();
    for (const double v : scores_of(request, 3.0)) CHECK(v == 3.0);
    request.rows.clear();
    CHECK(scores_of(request).empty());
}

TEST(a_block_of_no_vectors_adds_nothing) {
    Model model(20);
    model.blocks = {{{5, 5}, {1}}};
    for (const double v : scores_of(model.request(kKernels[0], model.x.dense(), model.vectors.dense()), 3.0)) {
        CHECK(v == 3.0);
    }
}

TEST(large_values_do_not_become_nonsense) {
    // In single precision these squares overflow; the answer must come from double, where RBF is simply zero.
    Model model(1200);
    for (double& v : model.x.values) v *= 1e25;
    const auto out = scores_of(model.request(kKernels[0], model.x.dense(), model.vectors.dense()));
    for (const double v : out) CHECK(std::isfinite(v));
}

TEST(a_cancelled_request_ends) {
    const Model model(700);
    Control control;
    control.cancel();
    const auto request = model.request(kKernels[0], model.x.dense(), model.vectors.dense());
    std::vector<double> out(request.rows.size() * request.scores, 0.0);
    add_scores(request, out, plain::blas(), control);
    for (const double v : out) CHECK(v == 0.0);
}
