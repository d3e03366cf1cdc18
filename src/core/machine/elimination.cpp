#include "machine/elimination.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "machine/row_products.hpp"

namespace polymargin {
namespace {

/// Kernel values of a tile: they stay in the cache until its rows have been decided.
constexpr Index kTileBytes = Index{1} << 20;

Index pair_index(Index i, Index j, Index classes) {
    return i * (2 * classes - i - 1) / 2 + j - i - 1;
}

/// The classes that are left after a round of `adag`, the winners first.
template <class Keeps>
void play_round(std::vector<Index>& left, const Keeps& keeps) {
    const std::size_t matches = left.size() / 2;
    for (std::size_t m = 0; m < matches; ++m) {
        const auto [low, high] = std::minmax(left[m], left[left.size() - 1 - m]);
        left[m] = keeps(low, high) ? low : high;
    }
    left.resize(left.size() - matches);
}

/// The class that is left; `keeps(i, j)`, i < j, says whether the pair answers with i.
template <class Keeps>
Index last_one(Elimination rule, Index classes, std::vector<Index>& left, const Keeps& keeps) {
    if (rule == Elimination::dag) {
        Index first = 0, last = classes - 1;
        while (first < last) {
            if (keeps(first, last)) {
                --last;
            } else {
                ++first;
            }
        }
        return first;
    }
    left.resize(classes);
    std::iota(left.begin(), left.end(), Index{0});
    while (left.size() > 1) play_round(left, keeps);
    return left.front();
}

class Eliminate final : public TileTask {
  public:
    Eliminate(const ScoringModel& model, Elimination rule, const ScoreErrors& errors, std::span<const double> sizes,
              std::span<Index> classes, std::span<std::uint8_t> uncertain)
        : model_(model), rule_(rule), errors_(errors), sizes_(sizes), classes_(classes), uncertain_(uncertain) {}

    void take(const KernelTile<float>& tile) override { decide(tile); }
    void take(const KernelTile<double>& tile) override { decide(tile); }

  private:
    template <class Real>
    void decide(const KernelTile<Real>& tile) const {
        const Index width = tile.vectors().size();
        auto memory = borrow();
        memory.reserve(tile.rows() * width * static_cast<Index>(sizeof(Real)));
        auto* values = reinterpret_cast<Real*>(memory.data());
        tile.values({0, width}, values, width);
        std::vector<Index> left;
        for (Index i = 0; i < tile.rows(); ++i) {
            const Real* row = values + i * width;
            const Index at = tile.first() + i;
            bool uncertain = false;
            classes_[at] = last_one(rule_, std::ssize(model_.blocks), left, [&](Index first, Index second) {
                const Index pair = pair_index(first, second, std::ssize(model_.blocks));
                const double value = value_of(first, second, row, tile.vectors()) + model_.intercepts[pair];
                uncertain = uncertain || !(std::abs(value) > error(pair, at) ||
                                           is_certain(first, second, value, at, row, tile.vectors()));
                return value > 0.0;
            });
            uncertain_[at] = uncertain;
        }
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(memory));
    }

    /// Memory of an earlier tile, if there is some: what is allocated anew has to be touched page by page.
    Buffer<std::byte> borrow() const {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) return {};
        auto memory = std::move(idle_.back());
        idle_.pop_back();
        return memory;
    }

    template <class Real>
    double value_of(Index first, Index second, const Real* row, const PreparedVectors<Real>& vectors) const {
        return part_of(first, second - 1, row, vectors) + part_of(second, first, row, vectors);
    }

    /// What the vectors of a class give, by their coefficients in one row of the matrix.
    template <class Real>
    double part_of(Index owner, Index of, const Real* row, const PreparedVectors<Real>& vectors) const {
        const Range range = model_.blocks[owner].vectors;
        const Real* coefficients = vectors.coefficients.data() + of * vectors.size();
        constexpr Index strip = 512;  // sums in single precision stay short
        double sum = 0.0;
        for (Index s = range.begin; s < range.end; s += strip) {
            sum += static_cast<double>(dot(row + s, coefficients + s, std::min(strip, range.end - s)));
        }
        return sum;
    }

    [[nodiscard]] double error(Index pair, Index row) const {
        const double bound = errors_.unit * (sizes_[row] * errors_.masses[pair] + std::abs(model_.intercepts[pair]));
        return std::min(bound, errors_.largest);
    }

    /// A row that is far from the vectors of a pair has small kernel values, and errors as small: those of a kernel
    /// that is an exponential are relative. Nothing is rounded in zeros.
    template <class Real>
    bool is_certain(Index first, Index second, double value, Index at, const Real* row,
                    const PreparedVectors<Real>& vectors) const {
        if (!model_.kernel.is_exponential()) return false;
        const double terms =
            absolute_part_of(first, second - 1, row, vectors) + absolute_part_of(second, first, row, vectors);
        const double offset = std::abs(model_.intercepts[pair_index(first, second, std::ssize(model_.blocks))]);
        return terms == 0.0 || std::abs(value) > errors_.unit * (sizes_[at] * terms + offset);
    }

    template <class Real>
    double absolute_part_of(Index owner, Index of, const Real* row, const PreparedVectors<Real>& vectors) const {
        const Range range = model_.blocks[owner].vectors;
        const Real* coefficients = vectors.coefficients.data() + of * vectors.size();
        double sum = 0.0;
        for (Index s = range.begin; s < range.end; ++s) sum += std::abs(static_cast<double>(row[s] * coefficients[s]));
        return sum;
    }

    const ScoringModel& model_;
    Elimination rule_;
    const ScoreErrors& errors_;
    std::span<const double> sizes_;
    std::span<Index> classes_;
    std::span<std::uint8_t> uncertain_;
    mutable std::mutex mutex_;
    mutable std::vector<Buffer<std::byte>> idle_;
};

}  // namespace

bool scores_all_pairs(const ScoringModel& model) {
    const Index classes = std::ssize(model.blocks);
    if (classes < 2 || model.scores() != classes * (classes - 1) / 2) return false;
    for (Index i = 0; i < classes; ++i) {
        const auto& columns = model.blocks[i].columns;
        if (std::ssize(columns) != classes - 1) return false;
        for (Index j = 0; j < classes; ++j) {
            if (j != i && columns[j - (j > i)] != pair_index(std::min(i, j), std::max(i, j), classes)) return false;
        }
    }
    return true;
}

void eliminate(const Scorer& scorer, const DataView& data, std::span<const Index> rows, Elimination rule,
               const ScoreErrors& errors, const ScoreOptions& options, std::span<Index> classes,
               std::span<std::uint8_t> uncertain, const Blas& blas, const Control& control) {
    const ScoringModel& model = scorer.model();
    if (!scores_all_pairs(model)) throw std::invalid_argument("elimination needs a score for every pair of classes");
    if (std::ssize(errors.masses) != model.scores()) throw std::invalid_argument("every pair needs a mass");
    std::vector<double> sizes(rows.size());
    scorer.sizes(data, rows, sizes, control);
    Eliminate task(model, rule, errors, sizes, classes, uncertain);
    const Index row_bytes = static_cast<Index>(sizeof(double)) * std::max<Index>(1, rows_of(model.vectors));
    ScoreOptions faster = options;
    faster.same_sums = false;  // nobody sees the scores
    scorer.for_tiles(data, rows, faster, std::clamp<Index>(kTileBytes / row_bytes, 16, 128), task, blas, control);
}

}  // namespace polymargin
