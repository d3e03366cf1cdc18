#include "linear/class_blocks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace polymargin {
namespace {

/// A block is made of at least so many rows for each of its features, if there are: enough to stand for all. Up to so
/// many products all rows are taken: few may be the only ones with some feature.
constexpr Index kRowsPerFeature = 2;
constexpr Index kProducts = Index{1} << 22;
/// How much longer a multiplication takes that is not one of a product of matrices.
constexpr double kScattered = 4.0;
/// Rows that are multiplied at once, and rows of the upper half of a block.
constexpr int kChunk = 256;
/// Sums of single precision are taken over by double after so many rows.
constexpr Index kShort = 4 * kChunk;

/// The rows of some class, at most `most`, evenly spread; `share` is by how much more each then counts.
struct Chosen {
    std::vector<const CurvedRow*> rows;
    double share = 1.0;

    Chosen(Index m, std::span<const CurvedRow> curved, Index most) {
        std::vector<const CurvedRow*> all;
        for (const CurvedRow& row : curved) {
            if ((row.classes >> m & 1) != 0) all.push_back(&row);
        }
        const Index count = std::ssize(all);
        if (count <= most) {
            rows = std::move(all);
            return;
        }
        for (Index c = 0; c < most; ++c) rows.push_back(all[count * c / most]);
        share = static_cast<double>(count) / static_cast<double>(most);
    }
};

/// How much of its curvature an example has on the diagonal of a class.
double share_of(Index m, const CurvedRow& row, bool coupled) {
    const auto classes = static_cast<double>(std::popcount(row.classes));
    if (row.own >= 0) return m == row.own ? classes - 1.0 : 1.0;
    return coupled ? 1.0 - 1.0 / classes : 1.0;
}

}  // namespace

template <class Real>
ClassBlocks<Real>::ClassBlocks(const LinearRows<Real>& rows, Index classes, double bias, const Blas& blas,
                               ThreadPool& pool, const Control& control)
    : rows_(rows),
      bias_(bias),
      size_(rows.features() + (bias > 0.0 ? 1 : 0)),
      blas_(blas),
      pool_(pool),
      control_(control),
      blocks_(classes) {}

template <class Real>
Index ClassBlocks<Real>::most_rows() const {
    return std::max(kRowsPerFeature * size_, kProducts / (size_ * size_));
}

template <class Real>
double ClassBlocks<Real>::work(Index curved) const {
    const auto size = static_cast<double>(size_), rows = static_cast<double>(std::min(curved, most_rows()));
    return static_cast<double>(blocks_.size()) * size * size * (rows + kScattered * size / 3.0);
}

template <class Real>
double ClassBlocks<Real>::work_of_division() const {
    const auto size = static_cast<double>(size_);
    return kScattered * static_cast<double>(blocks_.size()) * 2.0 * size * size;
}

template <class Real>
void ClassBlocks<Real>::factor(std::span<const CurvedRow> curved, bool coupled, std::span<const double> diagonal,
                               Index width) {
    pool_.for_each(std::ssize(blocks_), [&](Index m) { factor(m, curved, coupled, diagonal, width); });
}

template <class Real>
void ClassBlocks<Real>::factor(Index m, std::span<const CurvedRow> curved, bool coupled,
                               std::span<const double> diagonal, Index width) {
    const Chosen chosen(m, curved, most_rows());
    const Index rows = std::ssize(chosen.rows);
    std::vector<Real> columns(size_ * kChunk), sums(size_ * size_, Real(0));
    std::vector<double> block(size_ * size_, 0.0);
    for (Index first = 0; first < rows; first += kChunk) {
        if (control_.cancelled()) return;
        const Index count = std::min<Index>(kChunk, rows - first);
        std::ranges::fill(columns, Real(0));
        for (Index c = 0; c < count; ++c) {
            const CurvedRow& row = *chosen.rows[first + c];
            const auto scale = static_cast<Real>(std::sqrt(share_of(m, row, coupled) * row.by * chosen.share));
            const Row<Real> x = rows_.row(row.row);
            for (Index p = 0; p < x.count; ++p) {
                columns[(x.columns == nullptr ? p : static_cast<Index>(x.columns[p])) * kChunk + c] =
                    scale * x.values[p];
            }
            if (bias_ > 0.0) columns[(size_ - 1) * kChunk + c] = scale * static_cast<Real>(bias_);
        }
        for (Index top = 0; top < size_; top += kChunk) {
            const Real* from = columns.data() + top * kChunk;
            blas_.multiply_transposed(static_cast<int>(std::min<Index>(kChunk, size_ - top)),
                                      static_cast<int>(size_ - top), static_cast<int>(count), from, kChunk, from,
                                      kChunk, Real(1), sums.data() + top * size_ + top, static_cast<int>(size_));
        }
        if ((first + kChunk) % kShort == 0 || first + kChunk >= rows) {
            for (Index t = 0; t < size_ * size_; ++t) block[t] += static_cast<double>(sums[t]);
            std::ranges::fill(sums, Real(0));
        }
    }
    // Rows of the upper half are columns of the lower one, which is how Fortran sees them.
    for (Index f = 0; f < size_; ++f) block[f * size_ + f] += diagonal[f * width + m];
    char lower = 'L';
    int n = static_cast<int>(size_), info = 0;
    blas_.dpotrf(&lower, &n, block.data(), &n, &info);
    if (info != 0) block.clear();
    blocks_[m] = std::move(block);
}

template <class Real>
void ClassBlocks<Real>::divide(std::span<double> vector, Index width) const {
    pool_.for_each(std::ssize(blocks_), [&](Index m) {
        if (blocks_[m].empty()) return;
        std::vector<double> column(size_);
        for (Index f = 0; f < size_; ++f) column[f] = vector[f * width + m];
        char lower = 'L';
        int n = static_cast<int>(size_), one = 1, info = 0;
        blas_.dpotrs(&lower, &n, &one, const_cast<double*>(blocks_[m].data()), &n, column.data(), &n, &info);
        for (Index f = 0; f < size_; ++f) vector[f * width + m] = column[f];
    });
}

template class ClassBlocks<float>;
template class ClassBlocks<double>;

}  // namespace polymargin
