#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "kernel/data.hpp"
#include "kernel/function.hpp"
#include "kernel/points.hpp"
#include "support/blas.hpp"
#include "support/control.hpp"

namespace polymargin {

/// Coefficients of a range of support vectors in some of the scores: score `columns[m]` gets
/// `sum_s coefficients(m, s) k(x, s)` over the range. Coefficients are the rows of one matrix with a column for each
/// vector.
struct ScoreBlock {
    Range vectors;
    std::vector<Index> columns;
};

/// What scores are made of. The caller keeps the vectors and the coefficients alive, and unchanged.
struct ScoringModel {
    DataView vectors;
    KernelSpec kernel;
    std::span<const double> coefficients;  ///< height x vectors, row-major
    Index height = 0;
    std::vector<ScoreBlock> blocks;
    std::vector<double> intercepts;  ///< one for each score

    [[nodiscard]] Index scores() const { return std::ssize(intercepts); }
};

struct ScoreOptions {
    double accuracy = 1e-4;  ///< rounding allowed in a score; decides the precision of the kernel
    int threads = 1;
    /// In single precision one row too goes through BLAS, whose sums have one order for any number of rows: its scores
    /// are then the same alone as among others to far more digits than single precision has. Off, it is faster.
    bool same_sums = true;
};

/// Support vectors and coefficients in the precision of the scores: dense vectors gathered, converted and centred,
/// sparse ones where they are, squared lengths of both.
template <class Real>
struct PreparedVectors {
    PreparedVectors(const ScoringModel& model, const std::vector<double>& shift, const Workers& workers);

    const ScoringModel& model;
    Points<Real> points;
    std::span<const double> shift;
    std::vector<Real> converted;         ///< coefficients, unless the model has them in this precision
    std::span<const Real> coefficients;  ///< height x vectors

    [[nodiscard]] Index size() const { return points.size(); }
};

/// Some rows of what is asked for, consecutive ones, with all vectors.
template <class Real>
class KernelTile {
  public:
    KernelTile(Index first, Index rows, const PreparedVectors<Real>& vectors)
        : first_(first), rows_(rows), vectors_(vectors) {}
    virtual ~KernelTile() = default;
    KernelTile(const KernelTile&) = delete;
    KernelTile& operator=(const KernelTile&) = delete;

    /// Write the kernel values of all rows with a range of vectors, row i from `out + i * stride` on.
    virtual void values(Range range, Real* out, Index stride) const = 0;
    /// Whether it is one row that is to be handled without BLAS.
    [[nodiscard]] virtual bool is_alone() const = 0;

    [[nodiscard]] Index first() const { return first_; }
    [[nodiscard]] Index rows() const { return rows_; }
    [[nodiscard]] const PreparedVectors<Real>& vectors() const { return vectors_; }

  private:
    Index first_, rows_;
    const PreparedVectors<Real>& vectors_;
};

/// What is done with kernel values, tile by tile, in whichever precision; threads call it for different tiles.
class TileTask {
  public:
    virtual ~TileTask() = default;
    virtual void take(const KernelTile<float>& tile) = 0;
    virtual void take(const KernelTile<double>& tile) = 0;
};

/// A model that is ready to score. What every prediction needs is computed when the first one needs it and kept: at
/// most a copy of dense vectors, and beside it one in single precision if that is ever used; of sparse vectors and of
/// double coefficients nothing is copied. Threads may share it.
class Scorer {
  public:
    /// Throws std::invalid_argument if the parts of the model do not fit each other.
    explicit Scorer(ScoringModel model);

    [[nodiscard]] const ScoringModel& model() const { return model_; }

    /// So few rows are taken one after the other, without packed matrix products and without threads. From about 5 on
    /// a product is faster (letter, 8,943 vectors of 16 features; digits, 1,327 of 64).
    static constexpr Index kFewRows = 4;
    [[nodiscard]] static bool are_few(Index rows) { return rows <= kFewRows; }
    /// Whether the work on so many rows is over before anybody would want to interrupt it.
    [[nodiscard]] bool is_short(Index rows) const;

    /// Write the scores of the rows to `out` (rows x scores, row-major) and how large rounding makes the error of the
    /// kernel values of each row, in units of the last place of 1, to `sizes`. A stop leaves the rest undone.
    void scores(const DataView& data, std::span<const Index> rows, const ScoreOptions& options, std::span<double> out,
                std::span<double> sizes, const Blas& blas, const Control& control) const;

    /// Add the scores, without the intercepts, to `out`.
    void add(const DataView& data, std::span<const Index> rows, const ScoreOptions& options, std::span<double> out,
             const Blas& blas, const Control& control) const;

    /// Write those sizes alone.
    void sizes(const DataView& data, std::span<const Index> rows, std::span<double> out, const Control& control) const;

    /// Call `task` for tiles of at most `tile_rows` rows, in the precision that the accuracy asks for.
    void for_tiles(const DataView& data, std::span<const Index> rows, const ScoreOptions& options, Index tile_rows,
                   TileTask& task, const Blas& blas, const Control& control) const;

  private:
    /// Found in one pass over the vectors.
    struct Measures {
        std::vector<double> shift;    ///< what is subtracted from every point
        double max_norm = 0.0;        ///< largest squared length of a vector after that,
        double largest_square = 0.0;  ///< and before
    };
    struct Request;

    [[nodiscard]] double work(Index rows) const;
    [[nodiscard]] const Measures& measures(const Workers& workers) const;
    template <class Real>
    [[nodiscard]] const PreparedVectors<Real>& prepared(const Workers& workers) const;
    template <class Real>
    [[nodiscard]] std::unique_ptr<PreparedVectors<Real>>& slot() const;
    template <class Real>
    bool run_few(const Request& request, Index row, const Workers& workers) const;
    template <class Real>
    bool run_many(const Request& request, const Workers& workers) const;

    ScoringModel model_;
    double largest_coefficient_ = 0.0;
    double entries_ = 0.0;  ///< of a vector, on average
    mutable std::mutex mutex_;
    mutable std::optional<Measures> measures_;
    mutable std::unique_ptr<PreparedVectors<float>> single_;
    mutable std::unique_ptr<PreparedVectors<double>> double_;
};

}  // namespace polymargin
