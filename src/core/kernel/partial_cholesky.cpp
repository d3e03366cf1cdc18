#include "kernel/partial_cholesky.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

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

/// The first `rank` columns alone.
void pack(std::vector<double>& values, Index rows, Index stride, Index rank) {
    for (Index i = 0; i < rows; ++i) std::copy_n(values.begin() + i * stride, rank, values.begin() + i * rank);
    values.resize(rows * rank);
    values.shrink_to_fit();
}

}  // namespace

template <class Real>
KernelFeatures partial_cholesky(GramStore<Real>& store, Index most, double share) {
    const Index n = store.size();
    const auto table = store.open({0, n}, {0, n});
    std::vector<double> left(n), values(n * most);
    for (Index i = 0; i < n; ++i) left[i] = std::max(0.0, static_cast<double>(table->row(i)[i]));
    double spread = 0.0;
    for (Index rank = 0; rank <= most; ++rank) {
        const double open = std::accumulate(left.begin(), left.end(), 0.0);
        if (rank <= 1) spread = open;
        if (rank > 0 && open <= share * spread) {
            pack(values, n, most, rank);
            return {std::move(values), rank};
        }
        if (rank == most || open > spread * line(rank, most, share) || store.control().stop_requested()) break;
        const Index pivot = std::ranges::max_element(left) - left.begin();
        if (!(left[pivot] > 0.0)) break;
        const std::vector<double> row(values.begin() + pivot * most, values.begin() + pivot * most + rank);
        const Real* kernel = table->row(pivot);
        const double scale = 1.0 / std::sqrt(left[pivot]);
        store.pool().for_each((n + kRows - 1) / kRows, [&](Index chunk) {
            for (Index i = chunk * kRows; i < std::min(n, (chunk + 1) * kRows); ++i) {
                double* own = values.data() + i * most;
                const double value =
                    scale * (static_cast<double>(kernel[i]) - std::inner_product(row.begin(), row.end(), own, 0.0));
                own[rank] = value;
                left[i] = std::max(0.0, left[i] - value * value);
            }
        });
        left[pivot] = 0.0;
    }
    return {};
}

template KernelFeatures partial_cholesky(GramStore<float>&, Index, double);
template KernelFeatures partial_cholesky(GramStore<double>&, Index, double);

}  // namespace polymargin
