#include "machine/scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "kernel/engine.hpp"
#include "kernel/points.hpp"
#include "support/thread_pool.hpp"

namespace polymargin {
namespace {

/// Rows and support vectors of one block: its kernel values stay in the cache, and a stop request is soon seen.
constexpr Index kRowTile = 128;
constexpr Index kVectorTile = 512;

/// The scores of one tile of rows.
template <class Real>
class TileScorer {
  public:
    TileScorer(const ScoreRequest& request, const KernelEngine<Real>& engine, std::span<const Real> coefficients,
               const Blas& blas)
        : request_(request),
          engine_(engine),
          coefficients_(coefficients),
          blas_(blas),
          values_(kRowTile * kVectorTile),
          sums_(kRowTile * request.height) {}

    void add(std::span<const Index> rows, std::span<double> out) {
        for (const ScoreBlock& block : request_.blocks) {
            std::fill_n(sums_.data(), static_cast<Index>(rows.size()) * request_.height, Real(0));
            for (Index s = block.vectors.begin; s < block.vectors.end; s += kVectorTile) {
                add_vectors(rows, {s, std::min(block.vectors.end, s + kVectorTile)},
                            static_cast<Index>(block.columns.size()));
            }
            scatter(block, static_cast<Index>(rows.size()), out);
        }
    }

  private:
    void add_vectors(std::span<const Index> rows, Range vectors, Index height) {
        const Index width = vectors.size();
        const Index all_vectors = engine_.columns();
        std::vector<Real*> to(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) to[i] = values_.data() + static_cast<Index>(i) * width;
        engine_.block(rows, vectors, to);
        blas_.multiply_transposed<Real>(static_cast<int>(rows.size()), static_cast<int>(height),
                                        static_cast<int>(width), values_.data(), static_cast<int>(width),
                                        coefficients_.data() + vectors.begin, static_cast<int>(all_vectors), Real(1),
                                        sums_.data(), static_cast<int>(height));
    }

    void scatter(const ScoreBlock& block, Index rows, std::span<double> out) const {
        const auto height = static_cast<Index>(block.columns.size());
        for (Index i = 0; i < rows; ++i) {
            for (Index m = 0; m < height; ++m) {
                out[i * request_.scores + block.columns[m]] += static_cast<double>(sums_.data()[i * height + m]);
            }
        }
    }

    const ScoreRequest& request_;
    const KernelEngine<Real>& engine_;
    std::span<const Real> coefficients_;
    const Blas& blas_;
    Buffer<Real> values_, sums_;
};

std::vector<Index> counted(Index count) {
    std::vector<Index> all(count);
    std::iota(all.begin(), all.end(), Index{0});
    return all;
}

/// Whether squares of kernel values stay finite in the precision.
template <class Real>
bool fits(const KernelSpec& kernel, const Points<Real>& points) {
    return std::abs(kernel.diagonal(points.max_norm())) + points.max_norm() <=
           std::sqrt(std::numeric_limits<Real>::max());
}

[[noreturn]] void refuse_large_values() {
    throw std::invalid_argument("the values are too large for this kernel: scale the data as the training data were");
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

/// Returns false, with nothing done, if the points are too large for the precision.
template <class Real>
bool add_scores_in(const ScoreRequest& request, const Points<Real>& vectors, const std::vector<double>& shift,
                   std::span<double> out, ThreadPool& pool, const Blas& blas, const Control& control) {
    const Points<Real> points(request.data, request.rows, shift, false, {&pool, &control});
    if (!fits(request.kernel, points)) return false;
    const KernelEngine<Real> engine(request.kernel, points, vectors, blas);
    const std::vector<Real> coefficients(request.coefficients.begin(), request.coefficients.end());
    for_each_tile(points.size(), pool, control, [&](std::span<const Index> rows) {
        TileScorer<Real>(request, engine, coefficients, blas)
            .add(rows, out.subspan(rows.front() * request.scores, rows.size() * request.scores));
    });
    return true;
}

}  // namespace

template <class Real>
void kernel_values(const ScoreRequest& request, std::span<Real> out, const Blas& blas, const Control& control) {
    const std::vector<Index> order = counted(rows_of(request.vectors));
    ThreadPool pool(request.threads);
    const Workers workers{&pool, &control};
    const auto shift = centre(request.vectors, order, request.kernel, workers);
    const Points<Real> points(request.data, request.rows, shift, false, workers);  // first: its rows have names
    const Points<Real> vectors(request.vectors, order, shift, true, workers);
    if (!fits(request.kernel, points) || !fits(request.kernel, vectors)) refuse_large_values();
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

template void kernel_values<float>(const ScoreRequest&, std::span<float>, const Blas&, const Control&);
template void kernel_values<double>(const ScoreRequest&, std::span<double>, const Blas&, const Control&);

void add_scores(const ScoreRequest& request, std::span<double> out, const Blas& blas, const Control& control) {
    const std::vector<Index> order = counted(rows_of(request.vectors));
    ThreadPool pool(request.threads);
    const Workers workers{&pool, &control};
    const auto shift = centre(request.vectors, order, request.kernel, workers);
    double largest = 0.0;
    for (const double c : request.coefficients) largest = std::max(largest, std::abs(c));
    if (rows_of(request.vectors) > kSmallProblem) {
        const Points<float> vectors(request.vectors, order, shift, true, workers);
        if (single_precision_suffices(request.kernel, vectors.max_norm(), largest, request.accuracy) &&
            add_scores_in<float>(request, vectors, shift, out, pool, blas, control)) {
            return;
        }
    }
    const Points<double> vectors(request.vectors, order, shift, true, workers);
    if (!add_scores_in<double>(request, vectors, shift, out, pool, blas, control)) refuse_large_values();
}

}  // namespace polymargin
