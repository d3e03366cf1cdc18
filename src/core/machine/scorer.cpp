#include "machine/scorer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "kernel/engine.hpp"
#include "machine/query_rows.hpp"
#include "machine/rounding.hpp"
#include "machine/row_products.hpp"
#include "support/thread_pool.hpp"

namespace polymargin {
namespace {

/// Rows and support vectors of one block: its kernel values stay in the cache, and a stop request is soon seen.
constexpr Index kRowTile = 128;
constexpr Index kVectorTile = 512;
/// Numbers of converted rows that are held at a time.
constexpr Index kConverted = Index{1} << 22;
/// Products and kernel values of this much work take about a millisecond (a core of 3 GHz with AVX2): no thread is
/// worth starting for less, and no signal waits for ten times as much.
constexpr double kMillisecond = 2e6;

std::vector<Index> counted(Index count) {
    std::vector<Index> all(count);
    std::iota(all.begin(), all.end(), Index{0});
    return all;
}

bool has_products(const KernelSpec& kernel) {
    return kernel.reads() == KernelInput::products || kernel.reads() == KernelInput::squared_distances;
}

[[noreturn]] void refuse_large_values() {
    throw std::invalid_argument("the values are too large for this kernel: scale the data as the training data were");
}

void check(const ScoringModel& model) {
    if (std::holds_alternative<PrecomputedView>(model.vectors)) {
        throw std::invalid_argument("scores are computed from support vectors, not from kernel values");
    }
    const Index vectors = rows_of(model.vectors);
    if (std::ssize(model.coefficients) != model.height * vectors) {
        throw std::invalid_argument("there must be a column of coefficients for each support vector");
    }
    for (const ScoreBlock& block : model.blocks) {
        const Range range = block.vectors;
        if (range.begin < 0 || range.begin > range.end || range.end > vectors) {
            throw std::invalid_argument("a block of scores must be a range of the support vectors");
        }
        if (std::ssize(block.columns) > model.height) {
            throw std::invalid_argument("a block has more scores than there are rows of coefficients");
        }
        for (const Index column : block.columns) {
            if (column < 0 || column >= model.scores()) throw std::invalid_argument("a block names a score beyond all");
        }
    }
}

/// Workers that end what they do unless nobody waits for it: half of what is prepared is of no use to the next call.
Workers whole(Workers workers) {
    workers.thorough = true;
    return workers;
}

Index features_of(const DataView& data) {
    if (const auto* csr = std::get_if<CsrView>(&data)) return csr->features;
    return std::get<DenseView>(data).features;
}

double entries_of(const DataView& data) {
    const auto* csr = std::get_if<CsrView>(&data);
    if (csr == nullptr) return static_cast<double>(features_of(data));
    const auto stored =
        std::visit([&](const auto& starts) { return static_cast<double>(starts[csr->rows]); }, csr->row_starts);
    return stored / static_cast<double>(std::max<Index>(1, csr->rows));
}

/// Many rows: a matrix product for each block of kernel values.
template <class Real>
class EngineTile final : public KernelTile<Real> {
  public:
    EngineTile(const KernelEngine<Real>& engine, std::span<const Index> which, Index first,
               const PreparedVectors<Real>& vectors)
        : KernelTile<Real>(first, std::ssize(which), vectors), engine_(engine), which_(which) {}

    void values(Range range, Real* out, Index stride) const override {
        std::vector<Real*> to(which_.size());
        for (Index s = range.begin; s < range.end; s += kVectorTile) {
            for (std::size_t i = 0; i < to.size(); ++i) to[i] = out + static_cast<Index>(i) * stride + s - range.begin;
            engine_.block(which_, {s, std::min(range.end, s + kVectorTile)}, to);
        }
    }

    [[nodiscard]] bool is_alone() const override { return false; }

  private:
    const KernelEngine<Real>& engine_;
    std::span<const Index> which_;
};

/// One row, spread out.
template <class Real>
class RowTile final : public KernelTile<Real> {
  public:
    RowTile(const DataView& data, Index row, Index first, const PreparedVectors<Real>& vectors)
        : KernelTile<Real>(first, 1, vectors), x_(features_of(vectors.model.vectors)) {
        load_row<Real>(data, row, vectors.shift, x_.data());
        double norm = 0.0;
        for (const Real x : x_) norm += static_cast<double>(x) * static_cast<double>(x);
        norm_ = static_cast<Real>(norm);
    }

    [[nodiscard]] Real norm() const { return norm_; }
    [[nodiscard]] bool is_alone() const override { return true; }

    void values(Range range, Real* out, Index) const override {
        const auto& points = this->vectors().points;
        if (const auto* csr = std::get_if<CsrView>(&points.data())) {
            row_products<Real>(x_.data(), *csr, points.order().subspan(range.begin, range.size()), out);
        } else {
            Buffer<Real> unused;  // the points are copied
            const Index features = points.features();
            row_products<Real>(x_.data(), points.range(range, unused), range.size(), features, features, out);
        }
        apply_kernel<Real>(this->vectors().model.kernel, norm_, points.norms() + range.begin, out, out, range.size());
    }

  private:
    std::vector<Real> x_;
    Real norm_;
};

/// Adds what the vectors give to the scores.
class AddScores final : public TileTask {
  public:
    AddScores(const ScoringModel& model, std::span<double> out, const Blas& blas)
        : model_(model), out_(out), blas_(blas) {}

    void take(const KernelTile<float>& tile) override { add(tile); }
    void take(const KernelTile<double>& tile) override { add(tile); }

  private:
    template <class Real>
    void add(const KernelTile<Real>& tile) const {
        Buffer<Real> values(tile.rows() * std::min(kVectorTile, tile.vectors().size()));
        std::vector<Real> sums(tile.rows() * model_.height);
        for (const ScoreBlock& block : model_.blocks) {
            const auto height = std::ssize(block.columns);
            for (Index s = block.vectors.begin; s < block.vectors.end; s += kVectorTile) {
                const Range vectors{s, std::min(block.vectors.end, s + kVectorTile)};
                tile.values(vectors, values.data(), vectors.size());
                multiply(tile, vectors, values.data(), height, sums.data());
                scatter(block, tile, sums.data());
            }
        }
    }

    template <class Real>
    void multiply(const KernelTile<Real>& tile, Range vectors, const Real* values, Index height, Real* sums) const {
        const Index all = tile.vectors().size(), width = vectors.size();
        const Real* coefficients = tile.vectors().coefficients.data() + vectors.begin;
        if (tile.is_alone()) {
            row_products<Real>(values, coefficients, height, width, all, sums);
        } else {
            blas_.multiply_transposed<Real>(static_cast<int>(tile.rows()), static_cast<int>(height),
                                            static_cast<int>(width), values, static_cast<int>(width), coefficients,
                                            static_cast<int>(all), Real(0), sums, static_cast<int>(height));
        }
    }

    template <class Real>
    void scatter(const ScoreBlock& block, const KernelTile<Real>& tile, const Real* sums) const {
        double* out = out_.data() + tile.first() * model_.scores();
        for (Index i = 0; i < tile.rows(); ++i, out += model_.scores()) {
            for (const Index column : block.columns) out[column] += static_cast<double>(*sums++);
        }
    }

    const ScoringModel& model_;
    std::span<double> out_;
    const Blas& blas_;
};

}  // namespace

template <class Real>
PreparedVectors<Real>::PreparedVectors(const ScoringModel& of, const std::vector<double>& by, const Workers& workers)
    : model(of), points(of.vectors, counted(rows_of(of.vectors)), by, true, workers), shift(by) {
    if constexpr (std::is_same_v<Real, double>) {
        coefficients = of.coefficients;
    } else {
        converted.assign(of.coefficients.begin(), of.coefficients.end());
        coefficients = converted;
    }
}

/// What is asked of the scorer, with what it needs on the way.
struct Scorer::Request {
    const DataView& data;
    std::span<const Index> rows;
    Index tile_rows;
    Index first;  ///< the place of the first row in all that is asked for
    TileTask& task;
    const Blas& blas;
    const Control& control;
};

Scorer::Scorer(ScoringModel model) : model_(std::move(model)) {
    check(model_);
    for (const double c : model_.coefficients) largest_coefficient_ = std::max(largest_coefficient_, std::abs(c));
    entries_ = entries_of(model_.vectors);
}

double Scorer::work(Index rows) const {
    const auto vectors = static_cast<double>(rows_of(model_.vectors));
    return static_cast<double>(rows) * vectors * (entries_ + static_cast<double>(model_.height) + 8.0);
}

bool Scorer::is_short(Index rows) const {
    const std::lock_guard lock(mutex_);
    const bool ready = single_ != nullptr || double_ != nullptr;
    return work(rows) + (ready ? 0.0 : work(4)) <= 10 * kMillisecond;
}

const Scorer::Measures& Scorer::measures(const Workers& some) const {
    const std::lock_guard lock(mutex_);
    if (!measures_) {
        const Workers workers = whole(some);
        const auto order = counted(rows_of(model_.vectors));
        Measures found;
        found.shift = centre(model_.vectors, order, model_.kernel, workers);
        found.largest_square = Points<double>(model_.vectors, order, {}, false, workers).max_norm();
        found.max_norm = found.shift.empty()
                             ? found.largest_square
                             : Points<double>(model_.vectors, order, found.shift, false, workers).max_norm();
        measures_ = std::move(found);
    }
    return *measures_;
}

template <>
std::unique_ptr<PreparedVectors<float>>& Scorer::slot<float>() const {
    return single_;
}
template <>
std::unique_ptr<PreparedVectors<double>>& Scorer::slot<double>() const {
    return double_;
}

template <class Real>
const PreparedVectors<Real>& Scorer::prepared(const Workers& workers) const {
    const auto& shift = measures(workers).shift;
    const std::lock_guard lock(mutex_);
    auto& kept = slot<Real>();
    if (kept == nullptr) kept = std::make_unique<PreparedVectors<Real>>(model_, shift, whole(workers));
    return *kept;
}

template <class Real>
bool Scorer::run_few(const Request& request, Index i, const Workers& workers) const {
    const auto& vectors = prepared<Real>(workers);
    const RowTile<Real> tile(request.data, request.rows[i], i, vectors);
    if (!kernel_fits<Real>(model_.kernel, static_cast<double>(tile.norm()))) return false;
    request.task.take(tile);
    return true;
}

/// Returns false, with nothing done, if the points are too large for the precision.
template <class Real>
bool Scorer::run_many(const Request& request, const Workers& workers) const {
    const auto& vectors = prepared<Real>(workers);
    const QueryRows queries(request.data, request.rows, model_.vectors);
    const Points<Real> points(queries.data(), queries.order(), measures(workers).shift, false, workers);
    if (!kernel_fits<Real>(model_.kernel, points.max_norm())) return false;
    const KernelEngine<Real> engine(model_.kernel, points, vectors.points, request.blas);
    const std::vector<Index> all = counted(points.size());
    workers.for_parts(
        points.size(),
        [&](Range part) {
            request.task.take(EngineTile<Real>(engine, std::span(all).subspan(part.begin, part.size()),
                                               request.first + part.begin, vectors));
        },
        request.tile_rows);
    return true;
}

void Scorer::for_tiles(const DataView& data, std::span<const Index> rows, const ScoreOptions& options, Index tile_rows,
                       TileTask& task, const Blas& blas, const Control& control) const {
    const Index count = std::ssize(rows);
    if (count == 0 || rows_of(model_.vectors) == 0) return;
    std::optional<ThreadPool> pool;
    if (options.threads > 1 && !are_few(count) && work(count) > kMillisecond) pool.emplace(options.threads);
    const Workers workers{pool ? &*pool : nullptr, &control};
    const bool single =
        rows_of(model_.vectors) > kSmallProblem &&
        single_precision_suffices(model_.kernel, measures(workers).max_norm, largest_coefficient_, options.accuracy);
    const Request request{data, rows, tile_rows, 0, task, blas, control};
    if (are_few(count) && has_products(model_.kernel) && !(single && options.same_sums)) {
        for (Index i = 0; i < count; ++i) {
            if (single && run_few<float>(request, i, workers)) continue;
            if (!run_few<double>(request, i, workers)) refuse_large_values();
        }
        return;
    }
    const bool converts = QueryRows::converts(data, model_.vectors);
    const Index step = converts ? std::clamp<Index>(kConverted / features_of(data), 1, 4096) : count;
    for (Index begin = 0; begin < count && !control.stop_requested(); begin += step) {
        const Request part{data,   rows.subspan(begin, std::min(step, count - begin)), tile_rows, begin, task, blas,
                           control};
        if (single && run_many<float>(part, workers)) continue;
        if (!run_many<double>(part, workers)) refuse_large_values();
    }
}

void Scorer::sizes(const DataView& data, std::span<const Index> rows, std::span<double> out,
                   const Control& control) const {
    if (rows_of(model_.vectors) == 0) {
        std::ranges::fill(out, 0.0);
        return;
    }
    const double largest = measures({nullptr, &control}).largest_square;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double square = squared_length(data, rows[i]);
        out[i] = model_.kernel.pair_rounding(square, largest);
        if (!(square <= 1e300)) Points<double>(data, {rows[i]}, {}, false);  // throws, naming the row and the column
    }
}

void Scorer::add(const DataView& data, std::span<const Index> rows, const ScoreOptions& options, std::span<double> out,
                 const Blas& blas, const Control& control) const {
    AddScores task(model_, out, blas);
    for_tiles(data, rows, options, kRowTile, task, blas, control);
}

void Scorer::scores(const DataView& data, std::span<const Index> rows, const ScoreOptions& options,
                    std::span<double> out, std::span<double> sizes, const Blas& blas, const Control& control) const {
    this->sizes(data, rows, sizes, control);
    for (std::size_t i = 0; i < rows.size(); ++i)
        std::ranges::copy(model_.intercepts, out.begin() + i * model_.scores());
    add(data, rows, options, out, blas, control);
}

template struct PreparedVectors<float>;
template struct PreparedVectors<double>;

}  // namespace polymargin
