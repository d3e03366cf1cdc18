#include "kernel/pair_sums.hpp"

#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::Csr;
using fixtures::Matrix;
using fixtures::Random;

namespace {

const KernelSpec kLaplacian{.type = KernelType::laplacian, .gamma = 0.25};

template <class Real>
void check_sums(const Matrix& x, const DataView& data, double accuracy) {
    ThreadPool pool(2);
    const Control control;
    const Workers workers{&pool, &control};
    std::vector<Real> sums(x.rows * x.rows), values(x.rows * x.rows);
    pair_sums<Real>(kLaplacian, data, sums, plain::blas(), workers);
    apply_kernel<Real>(kLaplacian, std::span<const Real>(sums), std::span<Real>(values), workers);
    for (Index i = 0; i < x.rows; ++i) {
        CHECK(sums[i * x.rows + i] == Real(0));
        for (Index j = 0; j < x.rows; ++j) {
            CHECK_CLOSE(values[i * x.rows + j], fixtures::plain_kernel(kLaplacian, x.row(i), x.row(j)), accuracy);
        }
    }
}

}  // namespace

TEST(sums_of_all_pairs_serve_kernels_of_any_gamma) {
    Random random(51);
    const Matrix x = fixtures::random_matrix(150, 30, random, 0.4);  // several parts of rows
    check_sums<double>(x, x.dense(), 1e-13);
    check_sums<float>(x, x.dense(), 1e-5);
    const Csr<double, std::int32_t> csr(x);
    check_sums<double>(x, csr.view(), 1e-13);
    check_sums<float>(x, csr.view(), 1e-5);
}

TEST(sums_are_refused_to_kernels_that_read_something_else) {
    Random random(52);
    const Matrix x = fixtures::random_matrix(5, 3, random);
    std::vector<double> sums(25), few(24);
    CHECK_THROWS(std::invalid_argument, "no function of sums",
                 pair_sums<double>({.type = KernelType::rbf}, x.dense(), sums, plain::blas(), {}));
    CHECK_THROWS(std::invalid_argument, "a place", pair_sums<double>(kLaplacian, x.dense(), few, plain::blas(), {}));
}
