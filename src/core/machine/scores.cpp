#include "machine/scores.hpp"

#include <numeric>
#include <stdexcept>

#include "kernel/engine.hpp"
#include "kernel/points.hpp"
#include "machine/rounding.hpp"
#include "support/thread_pool.hpp"

namespace polymargin {
namespace {

/// Rows and columns of one block: it stays in the cache, and a stop request is soon seen.
constexpr Index kRowTile = 128;
constexpr Index kVectorTile = 512;

std::vector<Index> counted(Index count) {
    std::vector<Index> all(count);
    std::iota(all.begin(), all.end(), Index{0});
    return all;
}

/// Calls `work(numbers of the rows)` for one tile of rows after the other, on all threads.
template <class Work>
void for_each_tile(Index rows, ThreadPool& pool, const Control& control, const Work& work) {
    const std::vector<Index> all = counted(rows);
    pool.for_each((rows + kRowTile - 1) / kRowTile, [&](Index tile) {
        if (control.stop_requested()) return;
        const Index first = tile * kRowTile;
        work(std::span(all).subspan(first, std::min(kRowTile, rows - first)));
    });
}

}  // namespace

template <class Real>
void kernel_values(const ValueRequest& request, std::span<Real> out, const Blas& blas, const Control& control) {
    const std::vector<Index> order = counted(rows_of(request.vectors));
    ThreadPool pool(request.threads);
    const Workers workers{&pool, &control};
    const auto shift = centre(request.vectors, order, request.kernel, workers);
    const Points<Real> points(request.data, request.rows, shift, false, workers);  // first: its rows have names
    const Points<Real> vectors(request.vectors, order, shift, true, workers);
    if (!kernel_fits<Real>(request.kernel, std::max(points.max_norm(), vectors.max_norm()))) {
        throw std::invalid_argument(
            "the values are too large for this kernel: scale the data as the training data were");
    }
    const KernelEngine<Real> engine(request.kernel, points, vectors, blas);
    const Index width = vectors.size();
    for_each_tile(points.size(), pool, control, [&](std::span<const Index> rows) {
        std::vector<Real*> to(rows.size());
        for (Index s = 0; s < width; s += kVectorTile) {
            for (std::size_t i = 0; i < rows.size(); ++i) to[i] = out.data() + rows[i] * width + s;
            engine.block(rows, {s, std::min(width, s + kVectorTile)}, to);
        }
    });
}

template void kernel_values<float>(const ValueRequest&, std::span<float>, const Blas&, const Control&);
template void kernel_values<double>(const ValueRequest&, std::span<double>, const Blas&, const Control&);

}  // namespace polymargin
