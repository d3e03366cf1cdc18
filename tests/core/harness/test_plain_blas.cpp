#include "check.hpp"
#include "fixtures.hpp"

using fixtures::Matrix;
using fixtures::Random;

namespace {

/// The Fortran call on row-major matrices, which are column-major ones transposed.
std::vector<double> solve(const Matrix& a, std::vector<double> b, int& rank) {
    int m = static_cast<int>(a.rows), n = static_cast<int>(a.columns), one = 1, info = -1;
    int ldb = std::max(m, n), lwork = -1;
    std::vector<double> columns(a.values.size());
    for (long i = 0; i < m; ++i) {
        for (long j = 0; j < n; ++j) columns[i + j * m] = a.at(i, j);
    }
    b.resize(ldb, 0.0);
    std::vector<int> pivot(n, 0);
    double rcond = 1e-10, size = 0.0;
    plain::gelsy(&m, &n, &one, columns.data(), &m, b.data(), &ldb, pivot.data(), &rcond, &rank, &size, &lwork, &info);
    CHECK(info == 0 && size >= 1.0);
    std::vector<double> work(static_cast<std::size_t>(size));
    lwork = static_cast<int>(size);
    plain::gelsy(&m, &n, &one, columns.data(), &m, b.data(), &ldb, pivot.data(), &rcond, &rank, work.data(), &lwork,
                 &info);
    CHECK(info == 0);
    b.resize(n);
    return b;
}

/// The product of an m x r and an r x n matrix: rank r.
Matrix of_rank(long m, long n, long r, Random& random) {
    const Matrix left = fixtures::random_matrix(m, r, random), right = fixtures::random_matrix(r, n, random);
    Matrix a(m, n);
    for (long i = 0; i < m; ++i) {
        for (long j = 0; j < n; ++j) {
            for (long p = 0; p < r; ++p) a.at(i, j) += left.at(i, p) * right.at(p, j);
        }
    }
    return a;
}

}  // namespace

TEST(gemm_honours_the_transpose_flags) {
    Random random(1);
    int m = 3, n = 4, k = 5, ld = 7;
    std::vector<double> a(49), b(49);
    for (auto* x : {&a, &b}) {
        for (double& v : *x) v = random.normal();
    }
    for (char ta : {'N', 'T'}) {
        for (char tb : {'N', 'T'}) {
            std::vector<double> c(49, std::nan(""));
            double alpha = 2.0, beta = 0.0;  // with beta = 0 the NaN must not be read
            plain::gemm(&ta, &tb, &m, &n, &k, &alpha, a.data(), &ld, b.data(), &ld, &beta, c.data(), &ld);
            for (int i = 0; i < m; ++i) {
                for (int j = 0; j < n; ++j) {
                    double sum = 0.0;
                    for (int p = 0; p < k; ++p) {
                        sum += (ta == 'N' ? a[i + 7 * p] : a[p + 7 * i]) * (tb == 'N' ? b[p + 7 * j] : b[j + 7 * p]);
                    }
                    CHECK_CLOSE(c[i + 7 * j], 2.0 * sum, 1e-13);
                }
            }
        }
    }
}

TEST(row_major_products) {
    Random random(2);
    const Matrix a = fixtures::random_matrix(3, 5, random), b = fixtures::random_matrix(4, 5, random),
                 b_transposed = fixtures::random_matrix(5, 4, random);
    Matrix c(3, 4), d(3, 4);
    std::fill(d.values.begin(), d.values.end(), 1.0);
    plain::blas().multiply_transposed<double>(3, 4, 5, a.values.data(), 5, b.values.data(), 5, 0.0, c.values.data(), 4);
    plain::blas().multiply<double>(3, 4, 5, a.values.data(), 5, b_transposed.values.data(), 4, 1.0, d.values.data(), 4);
    for (long i = 0; i < 3; ++i) {
        for (long j = 0; j < 4; ++j) {
            double sum = 0.0, other = 1.0;
            for (long p = 0; p < 5; ++p) {
                sum += a.at(i, p) * b.at(j, p);
                other += a.at(i, p) * b_transposed.at(p, j);
            }
            CHECK_CLOSE(c.at(i, j), sum, 1e-13);
            CHECK_CLOSE(d.at(i, j), other, 1e-13);
        }
    }
}

TEST(least_squares_of_any_shape_and_rank) {
    Random random(3);
    for (const auto& [m, n, r] :
         {std::tuple{6L, 6L, 6L}, {9L, 5L, 5L}, {5L, 9L, 5L}, {8L, 8L, 3L}, {9L, 6L, 2L}, {6L, 9L, 4L}}) {
        const Matrix a = of_rank(m, n, r, random);
        std::vector<double> b(m);
        for (double& v : b) v = random.normal();
        int rank = 0;
        const auto x = solve(a, b, rank);
        CHECK(rank == r);
        // The residual is orthogonal to the columns ...
        std::vector<double> residual = b;
        for (long i = 0; i < m; ++i) {
            for (long j = 0; j < n; ++j) residual[i] -= a.at(i, j) * x[j];
        }
        for (long j = 0; j < n; ++j) {
            double along = 0.0;
            for (long i = 0; i < m; ++i) along += a.at(i, j) * residual[i];
            CHECK_CLOSE(along, 0.0, 1e-10);
        }
        // ... and x lies in the row space: a least-squares fit of x by the rows leaves nothing.
        Matrix rows(n, m);
        for (long i = 0; i < m; ++i) {
            for (long j = 0; j < n; ++j) rows.at(j, i) = a.at(i, j);
        }
        const auto weights = solve(rows, x, rank);
        for (long j = 0; j < n; ++j) {
            double fitted = 0.0;
            for (long i = 0; i < m; ++i) fitted += rows.at(j, i) * weights[i];
            CHECK_CLOSE(fitted, x[j], 1e-9);
        }
    }
}

TEST(a_known_optimum_fits_its_kernel) {
    Random random(4);
    const fixtures::KnownOptimum known(12, random);
    for (long i = 0; i < 24; ++i) {
        double score = 0.0;
        for (long j = 0; j < 24; ++j) score += known.gram.at(i, j) * known.beta[j];
        CHECK_CLOSE(score - known.sign[i], known.f[i], 1e-12);
    }
    CHECK_CLOSE(std::accumulate(known.beta.begin(), known.beta.end(), 0.0), 0.0, 1e-14);
}
