#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "support/blas.hpp"

/// BLAS and LAPACK as the core calls them, in plain loops.
namespace plain {

/// Column-major `c = alpha op(a) op(b) + beta c`. As in BLAS, `c` is not read when beta is zero.
template <class T>
void gemm(char* transa, char* transb, int* m, int* n, int* k, T* alpha, T* a, int* lda, T* b, int* ldb, T* beta, T* c,
          int* ldc) {
    const auto at = [](const T* x, long ld, bool transposed, long row, long column) {
        return transposed ? x[column + row * ld] : x[row + column * ld];
    };
    const bool ta = *transa != 'N' && *transa != 'n', tb = *transb != 'N' && *transb != 'n';
    for (long j = 0; j < *n; ++j) {
        for (long i = 0; i < *m; ++i) {
            T sum = 0;
            for (long p = 0; p < *k; ++p) sum += at(a, *lda, ta, i, p) * at(b, *ldb, tb, p, j);
            T& out = c[i + j * static_cast<long>(*ldc)];
            out = *alpha * sum + (*beta == T(0) ? T(0) : *beta * out);
        }
    }
}

using Vector = std::vector<double>;

inline double dot(const Vector& a, const Vector& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Columns = Q R with orthonormal `q`; the rows of R keep the order of the columns, and column `pivot[s]`
/// ends at row s.
struct Qr {
    std::vector<Vector> q, r;
    std::vector<std::size_t> pivot;
};

/// Gram-Schmidt, the longest remainder first and each new direction cleaned twice, until what remains is
/// short.
inline Qr factor(std::vector<Vector> columns, double rcond) {
    Qr qr;
    std::vector<char> taken(columns.size(), 0);
    double first = 0.0;
    while (qr.q.size() < columns.size()) {
        std::size_t best = columns.size();
        double longest = 0.0;
        for (std::size_t j = 0; j < columns.size(); ++j) {
            const double length = taken[j] ? 0.0 : std::sqrt(dot(columns[j], columns[j]));
            if (length > longest) longest = length, best = j;
        }
        if (qr.q.empty()) first = longest;
        if (best == columns.size() || longest <= rcond * first) return qr;
        Vector direction = columns[best];
        for (std::size_t s = 0; s < qr.q.size(); ++s) {
            const double again = dot(qr.q[s], direction);
            qr.r[s][best] += again;
            for (std::size_t i = 0; i < direction.size(); ++i) direction[i] -= again * qr.q[s][i];
        }
        const double length = std::sqrt(dot(direction, direction));
        for (double& d : direction) d /= length;
        taken[best] = 1;
        Vector row(columns.size(), 0.0);
        row[best] = length;
        for (std::size_t j = 0; j < columns.size(); ++j) {
            if (taken[j]) continue;
            row[j] = dot(direction, columns[j]);
            for (std::size_t i = 0; i < direction.size(); ++i) columns[j][i] -= row[j] * direction[i];
        }
        qr.q.push_back(std::move(direction));
        qr.r.push_back(std::move(row));
        qr.pivot.push_back(best);
    }
    return qr;
}

/// The shortest x that minimises |a x - b|: a = Q R gives R x = Q'b, and R' = Q2 R2 the shortest such x.
inline void gelsy(int* m, int* n, int* nrhs, double* a, int* lda, double* b, int* ldb, int* jpvt, double* rcond,
                  int* rank, double* work, int* lwork, int* info) {
    *info = 0;
    work[0] = 1.0;
    if (*lwork == -1) return;  // a question for the size of `work`
    std::vector<Vector> columns;
    for (long j = 0; j < *n; ++j) columns.emplace_back(a + j * *lda, a + j * *lda + *m);
    const Qr outer = factor(std::move(columns), *rcond);
    const Qr inner = factor(outer.r, 0.0);
    *rank = static_cast<int>(outer.q.size());
    std::iota(jpvt, jpvt + *n, 1);
    for (long k = 0; k < *nrhs; ++k) {
        const std::span<double> column(b + k * *ldb, static_cast<std::size_t>(std::max(*m, *n)));
        const Vector right(column.begin(), column.begin() + *m);
        std::fill_n(column.begin(), *n, 0.0);
        Vector z;
        for (std::size_t s = 0; s < inner.q.size(); ++s) {
            double rest = dot(outer.q[inner.pivot[s]], right);
            for (std::size_t t = 0; t < s; ++t) rest -= inner.r[t][inner.pivot[s]] * z[t];
            z.push_back(rest / inner.r[s][inner.pivot[s]]);
            for (long i = 0; i < *n; ++i) column[i] += z[s] * inner.q[s][i];
        }
    }
}

/// a = L L' in place of its lower half; info is the first pivot that is not positive.
inline void potrf(char*, int* n, double* a, int* lda, int* info) {
    const long size = *n, step = *lda;
    *info = 0;
    for (long j = 0; j < size; ++j) {
        for (long k = 0; k < j; ++k) {
            for (long i = j; i < size; ++i) a[j * step + i] -= a[k * step + i] * a[k * step + j];
        }
        if (!(a[j * step + j] > 0.0)) {
            *info = static_cast<int>(j + 1);
            return;
        }
        const double root = std::sqrt(a[j * step + j]);
        for (long i = j; i < size; ++i) a[j * step + i] /= root;
    }
}

/// Two triangular solves with such a factor.
inline void potrs(char*, int* n, int* nrhs, double* a, int* lda, double* b, int* ldb, int* info) {
    const long size = *n, step = *lda;
    *info = 0;
    for (long c = 0; c < *nrhs; ++c) {
        double* x = b + c * *ldb;
        for (long i = 0; i < size; ++i) {
            for (long k = 0; k < i; ++k) x[i] -= a[k * step + i] * x[k];
            x[i] /= a[i * step + i];
        }
        for (long i = size - 1; i >= 0; --i) {
            for (long k = i + 1; k < size; ++k) x[i] -= a[i * step + k] * x[k];
            x[i] /= a[i * step + i];
        }
    }
}

/// The inverse of L L', in place of the lower half of L.
inline void potri(char* uplo, int* n, double* a, int* lda, int* info) {
    const long size = *n, step = *lda;
    int one = 1;
    Vector inverse(static_cast<std::size_t>(size * size), 0.0);
    for (long j = 0; j < size; ++j) {
        inverse[j * size + j] = 1.0;
        potrs(uplo, n, &one, a, lda, inverse.data() + j * size, n, info);
    }
    for (long j = 0; j < size; ++j) std::copy_n(inverse.data() + j * size + j, size - j, a + j * step + j);
}

inline void posv(char* uplo, int* n, int* nrhs, double* a, int* lda, double* b, int* ldb, int* info) {
    potrf(uplo, n, a, lda, info);
    if (*info == 0) potrs(uplo, n, nrhs, a, lda, b, ldb, info);
}

inline polymargin::Blas blas() {
    polymargin::Blas routines;
    routines.sgemm = &gemm<float>;
    routines.dgemm = &gemm<double>;
    routines.dgelsy = &gelsy;
    routines.dposv = &posv;
    routines.dpotrf = &potrf;
    routines.dpotrs = &potrs;
    routines.dpotri = &potri;
    return routines;
}

}  // namespace plain
