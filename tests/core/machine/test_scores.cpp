#include "machine/scores.hpp"

#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::Csr;
using fixtures::Matrix;
using fixtures::Random;

namespace {

/// More rows and vectors than one tile takes.
struct TwoSets {
    Matrix x, vectors;
    std::vector<Index> rows;

    explicit TwoSets(Index vector_count) : x(0, 0), vectors(0, 0) {
        Random random(131);
        x = fixtures::random_matrix(200, 6, random, 0.7);
        vectors = fixtures::random_matrix(vector_count, 6, random, 0.7);
        rows = random.permutation(200);
        rows.resize(170);
        rows.push_back(rows.front());  // a row may be asked for twice
    }

    [[nodiscard]] ValueRequest request(const KernelSpec& kernel, const DataView& data, const DataView& support) const {
        return {.data = data, .rows = rows, .vectors = support, .kernel = kernel};
    }
};

constexpr KernelSpec kKernels[] = {{.type = KernelType::rbf, .gamma = 0.1},
                                   {.type = KernelType::linear},
                                   {.type = KernelType::polynomial, .gamma = 0.1, .coef0 = 1.0, .degree = 3},
                                   {.type = KernelType::sigmoid, .gamma = 0.1, .coef0 = -0.5}};

}  // namespace

template <class Real>
void check_kernel_values(double accuracy) {
    const TwoSets model(700);
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
    TwoSets model(20);
    for (double& v : model.x.values) v *= 1e25;
    const auto request = model.request(kKernels[1], model.x.dense(), model.vectors.dense());
    std::vector<float> out(request.rows.size() * 20);
    CHECK_THROWS(std::invalid_argument, "too large", kernel_values<float>(request, out, plain::blas(), Control()));
}
