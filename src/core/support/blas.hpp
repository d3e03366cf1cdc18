#pragma once

#include <concepts>
#include <type_traits>

namespace polymargin {

/// The few BLAS and LAPACK routines the core calls, by their Fortran interface. The caller brings them: in the
/// Python module they are SciPy's own, so that no second BLAS is loaded; in the C++ tests they are plain loops.
struct Blas {
    template <class T>
    using Gemm = void (*)(char* transa, char* transb, int* m, int* n, int* k, T* alpha, T* a, int* lda, T* b, int* ldb,
                          T* beta, T* c, int* ldc);
    using Gelsy = void (*)(int* m, int* n, int* nrhs, double* a, int* lda, double* b, int* ldb, int* jpvt,
                           double* rcond, int* rank, double* work, int* lwork, int* info);

    using Posv = void (*)(char* uplo, int* n, int* nrhs, double* a, int* lda, double* b, int* ldb, int* info);
    using Potrf = void (*)(char* uplo, int* n, double* a, int* lda, int* info);

    Gemm<float> sgemm = nullptr;
    Gemm<double> dgemm = nullptr;
    Gelsy dgelsy = nullptr;  ///< minimum-norm least squares by a rank-revealing QR
    Posv dposv = nullptr;    ///< a positive definite system by Cholesky's method,
    Potrf dpotrf = nullptr;  ///< its first half: the factor alone,
    Posv dpotrs = nullptr;   ///< its second,
    Potrf dpotri = nullptr;  ///< and the inverse from the factor

    /// Row-major `c (m x n) = a (m x k) b' (n x k) + beta c`, leading dimensions in elements.
    template <class Real>
    void multiply_transposed(int m, int n, int k, const Real* a, int lda, const Real* b, int ldb, Real beta, Real* c,
                             int ldc) const {
        gemm<Real>('T', 'N', n, m, k, b, ldb, a, lda, beta, c, ldc);
    }

    /// Row-major `c (m x n) = a (m x k) b (k x n) + beta c`.
    template <class Real>
    void multiply(int m, int n, int k, const Real* a, int lda, const Real* b, int ldb, Real beta, Real* c,
                  int ldc) const {
        gemm<Real>('N', 'N', n, m, k, b, ldb, a, lda, beta, c, ldc);
    }

    /// Row-major `c (m x n) = a' (k x m) b (k x n) + beta c`.
    template <class Real>
    void multiply_first_transposed(int m, int n, int k, const Real* a, int lda, const Real* b, int ldb, Real beta,
                                   Real* c, int ldc) const {
        gemm<Real>('N', 'T', n, m, k, b, ldb, a, lda, beta, c, ldc);
    }

  private:
    template <class Real>
    void gemm(char ta, char tb, int m, int n, int k, const Real* a, int lda, const Real* b, int ldb, Real beta, Real* c,
              int ldc) const {
        Real one = 1;
        Gemm<Real> routine;
        if constexpr (std::same_as<Real, float>) {
            routine = sgemm;
        } else {
            routine = dgemm;
        }
        // Fortran takes everything by non-const pointer but writes only to c.
        routine(&ta, &tb, &m, &n, &k, &one, const_cast<Real*>(a), &lda, const_cast<Real*>(b), &ldb, &beta, c, &ldc);
    }
};

}  // namespace polymargin
