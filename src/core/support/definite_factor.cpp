#include "support/definite_factor.hpp"

#include <algorithm>
#include <cmath>

#include "support/block_cholesky.hpp"
#include "support/multiversion.hpp"

namespace polymargin {
namespace {

/// Turn two columns against each other, the first one to another place:
/// `to = cosine * from + sine * carried, carried = cosine * carried - sine * from`.
POLYMARGIN_MULTIVERSION void rotate(const double* from, double* to, double* carried, Index count, double cosine,
                                    double sine) {
    for (Index i = 0; i < count; ++i) {
        const double a = from[i], b = carried[i];
        to[i] = cosine * a + sine * b;
        carried[i] = cosine * b - sine * a;
    }
}

/// `out -= factor * values`.
POLYMARGIN_MULTIVERSION void subtract(const double* values, double* out, Index count, double factor) {
    for (Index i = 0; i < count; ++i) out[i] -= factor * values[i];
}

}  // namespace

void DefiniteFactor::reserve(Index size) {
    size_ = 0;
    if (size <= stride_) return;
    stride_ = size + size / 4 + 8;  // with room for some that come
    values_.resize(stride_ * stride_);
}

bool DefiniteFactor::finish() {
    char lower = 'L';
    int m = static_cast<int>(size_), stride = static_cast<int>(stride_), info = 0;
    if (m > 0) blas_.dpotrf(&lower, &m, values_.data(), &stride, &info);
    if (info != 0) clear();
    return info == 0;
}

/// Without its row and column the matrix loses nothing but what the column of the factor gave to those after it, which
/// goes back to them by a rotation each.
void DefiniteFactor::remove(Index variable) {
    for (Index k = 0; k < variable; ++k) {
        std::copy(column(k) + variable + 1, column(k) + size_, column(k) + variable);
    }
    carried_.assign(column(variable) + variable + 1, column(variable) + size_);
    --size_;
    for (Index k = variable; k < size_; ++k) {
        const double* from = column(k + 1) + k + 1;
        double* carried = carried_.data() + k - variable;
        const double diagonal = std::hypot(from[0], carried[0]);
        rotate(from, column(k) + k, carried, size_ - k, from[0] / diagonal, carried[0] / diagonal);
    }
}

bool DefiniteFactor::append(std::span<double> values, double own) {
    if (size_ == stride_) return false;
    double rest = own;
    for (Index k = 0; k < size_; ++k) {
        const double* l = column(k) + k;
        values[k] /= l[0];
        rest -= values[k] * values[k];
        subtract(l + 1, values.data() + k + 1, size_ - k - 1, values[k]);
    }
    if (!(rest > 0.0)) return false;
    for (Index k = 0; k < size_; ++k) column(k)[size_] = values[k];
    column(size_)[size_] = std::sqrt(rest);
    ++size_;
    return true;
}

void DefiniteFactor::solve(std::span<double> right) const {
    solve_triangles(values_.data(), size_, stride_, right.data());
}

}  // namespace polymargin
