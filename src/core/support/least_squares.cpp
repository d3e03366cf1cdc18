#include "support/least_squares.hpp"

namespace polymargin {

std::vector<double> least_squares(const Blas& blas, std::vector<double> matrix, std::vector<double> right) {
    auto m = static_cast<int>(right.size());
    if (m == 0) return right;
    std::vector<int> pivots(m, 0);
    int one = 1, rank = 0, info = 0, work_size = -1;
    double condition = 1e-12, best_size = 0.0;
    blas.dgelsy(&m, &m, &one, matrix.data(), &m, right.data(), &m, pivots.data(), &condition, &rank, &best_size,
                &work_size, &info);
    work_size = static_cast<int>(best_size);
    std::vector<double> work(work_size);
    blas.dgelsy(&m, &m, &one, matrix.data(), &m, right.data(), &m, pivots.data(), &condition, &rank, work.data(),
                &work_size, &info);
    return right;
}

std::vector<double> solve_definite(const Blas& blas, std::vector<double> matrix, std::vector<double> right,
                                   double least_pivot) {
    char lower = 'L';
    int m = static_cast<int>(right.size()), one = 1, info = 0;
    if (m == 0) return right;
    std::vector<double> least(m);
    for (int a = 0; a < m; ++a) least[a] = least_pivot * matrix[static_cast<std::size_t>(a) * m + a];
    blas.dposv(&lower, &m, &one, matrix.data(), &m, right.data(), &m, &info);
    if (info != 0) return {};
    for (int a = 0; a < m; ++a) {
        const double pivot = matrix[static_cast<std::size_t>(a) * m + a];
        if (pivot * pivot < least[a]) return {};
    }
    return right;
}

}  // namespace polymargin
