#include "kernel/partial_cholesky.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/buffer.hpp"
#include "support/dot.hpp"
#include "support/multiversion.hpp"

namespace polymargin {
namespace {

/// Rows that a thread brings up to date at a time.
constexpr Index kRows = 512;

/// What may be left after so many columns if `most` are to be enough: anything at first, then less by the same factor
/// each time. What falls more slowly at first hardly falls faster at the end.
double line(Index rank, Index most, double share) {
    const auto part = static_cast<double>(4 * rank - most) / static_cast<double>(3 * most);
    return part > 0.0 ? std::pow(share, part) : 1.0;
}

/// Some rows of the next column, of which `column` has the kernel values, and what they leave of the diagonal.
POLYMARGIN_MULTIVERSION void add_column(double* values, Index stride, Index rank, const double* pivot, double scale,
                                        const double* column, double* left, Index count) {
    for (Index i = 0; i < count; ++i) {
        double* row = values + i * stride;
        const double value = scale * (column[i] - dot_in_lanes(row, pivot, rank));
        row[rank] = value;
        left[i] = std::max(0.0, left[i] - value * value);
    }
}

/// The first columns alone.
std::vector<double> packed(const Buffer<double>& values, Index rows, Index stride, Index rank) {
    std::vector<double> result(rows * rank);
    for (Index i = 0; i < rows; ++i) std::copy_n(values.data() + i * stride, rank, result.begin() + i * rank);
    return result;
}

}  // namespace

template <class Real>
KernelFeatures partial_cholesky(GramStore<Real>& store, Index most, double share) {
    const Index n = store.size();
    const auto table = store.shared({0, n});
    const auto& engine = store.engine();
    Buffer<double> values(n * most);
    std::vector<double> left(n), column(n);
    for (Index i = 0; i < n; ++i) left[i] = std::max(0.0, engine.kernel().diagonal(engine.row_points().norms()[i]));
    double spread = 0.0;
    for (Index rank = 0; rank <= most; ++rank) {
        const double open = std::accumulate(left.begin(), left.end(), 0.0);
        if (rank <= 1) spread = open;
        if (rank > 0 && open <= share * spread) return {packed(values, n, most, rank), rank};
        if (rank == most || open > spread * line(rank, most, share) || store.control().stop_requested()) break;
        const Index pivot = std::ranges::max_element(left) - left.begin();
        if (!(left[pivot] > 0.0)) break;
        store.request(table, std::span(&pivot, 1));
        if (!store.fulfil()) break;
        std::copy_n(table->row(pivot), n, column.begin());
        const std::vector<double> row(values.data() + pivot * most, values.data() + pivot * most + rank);
        const double scale = 1.0 / std::sqrt(left[pivot]);
        store.pool().for_each((n + kRows - 1) / kRows, [&](Index chunk) {
            const Index first = chunk * kRows, count = std::min(kRows, n - first);
            add_column(values.data() + first * most, most, rank, row.data(), scale, column.data() + first,
                       left.data() + first, count);
        });
        left[pivot] = 0.0;
    }
    return {};
}

template KernelFeatures partial_cholesky(GramStore<float>&, Index, double);
template KernelFeatures partial_cholesky(GramStore<double>&, Index, double);

}  // namespace polymargin
