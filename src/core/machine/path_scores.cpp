#include "machine/path_scores.hpp"

#include <algorithm>
#include <stdexcept>
#include <variant>

#include "support/buffer.hpp"

namespace polymargin {
namespace {

/// Rows that are scored together: enough for products at full speed, few enough for the cache and for all threads.
constexpr Index kTile = 256;

void check(const PrecomputedView& matrix, std::span<const Index> order, std::span<const Index> rows,
           const PathSolution& solution, std::span<double> out) {
    const auto within = [](std::span<const Index> which, Index end) {
        return std::ranges::all_of(which, [end](Index i) { return 0 <= i && i < end; });
    };
    const Index values = solution.costs() * std::ssize(solution.problems);
    if (std::ssize(solution.intercept) != values || std::ssize(solution.starts) != values + 1 ||
        solution.support.size() != solution.beta.size() || solution.starts.front() != 0 ||
        !std::ranges::is_sorted(solution.starts) || solution.starts.back() != std::ssize(solution.beta)) {
        throw std::invalid_argument("the solution does not fit together");
    }
    for (std::size_t at = 0; at + 1 < solution.starts.size(); ++at) {
        const auto first = solution.support.begin() + solution.starts[at];
        if (!std::is_sorted(first, solution.support.begin() + solution.starts[at + 1])) {
            throw std::invalid_argument("the support vectors of a problem must ascend");
        }
    }
    if (!within(solution.support, std::ssize(order))) throw std::invalid_argument("there is no such support vector");
    if (!within(rows, matrix.rows) || !within(order, matrix.columns)) {
        throw std::invalid_argument("the kernel matrix lacks a row or column");
    }
    check_within(solution.problems, std::ssize(order));
    if (std::ssize(out) != values * std::ssize(rows))
        throw std::invalid_argument("out must have a place for each score");
}

/// The examples that are support vectors of any problem at any cost.
class SupportVectors {
  public:
    SupportVectors(std::span<const Index> support, Index examples) : before_(examples + 1, 0) {
        for (const Index g : support) before_[g + 1] = 1;
        for (Index g = 0; g < examples; ++g) {
            if (before_[g + 1] != 0) examples_.push_back(g);
            before_[g + 1] += before_[g];
        }
    }

    [[nodiscard]] Index size() const { return std::ssize(examples_); }
    /// The example that a vector is.
    [[nodiscard]] Index example(Index vector) const { return examples_[vector]; }
    /// The vectors that have come before an example: its own number if it is one.
    [[nodiscard]] Index before(Index example) const { return before_[example]; }
    [[nodiscard]] Range of(Range examples) const { return {before(examples.begin), before(examples.end)}; }

  private:
    std::vector<Index> before_, examples_;
};

/// A range of examples, with the problems that have it: one product serves all of them.
struct Segment {
    Range range;
    std::vector<Index> problems;
};

std::vector<Segment> shared_segments(std::span<const BinaryProblem> problems, Index examples) {
    std::vector<Segment> segments;
    const auto ranges = segments_of(problems, examples);
    for (Index p = 0; p < std::ssize(problems); ++p) {
        for (const Range range : ranges[p]) {
            auto found = std::ranges::find(segments, range, &Segment::range);
            if (found == segments.end()) found = segments.insert(found, {range, {}});
            found->problems.push_back(p);
        }
    }
    return segments;
}

/// The coefficients of the vectors of a segment, a row for each problem that has it and each cost.
void spread(const PathSolution& solution, const SupportVectors& vectors, const Segment& segment,
            std::vector<double>& dense) {
    const Range range = segment.range, columns = vectors.of(range);
    dense.assign(segment.problems.size() * solution.costs() * columns.size(), 0.0);
    double* row = dense.data();
    for (const Index p : segment.problems) {
        for (Index c = 0; c < solution.costs(); ++c, row += columns.size()) {
            const Index at = c * std::ssize(solution.problems) + p;
            const auto support =
                solution.support.subspan(solution.starts[at], solution.starts[at + 1] - solution.starts[at]);
            auto i = static_cast<std::size_t>(std::ranges::lower_bound(support, range.begin) - support.begin());
            for (; i < support.size() && range.contains(support[i]); ++i) {
                row[vectors.before(support[i]) - columns.begin] = solution.beta[solution.starts[at] + i];
            }
        }
    }
}

/// Scores of some rows, a tile of them.
class Tile {
  public:
    Tile(const PrecomputedView& matrix, std::span<const Index> order, std::span<const Index> rows,
         const SupportVectors& vectors)
        : vectors_(vectors), rows_(std::ssize(rows)), values_(rows_ * vectors.size()) {
        const auto copy = [&](const auto& all) {
            for (Index i = 0; i < rows_; ++i) {
                const auto* row = all.data() + rows[i] * matrix.columns;
                double* to = values_.data() + i * vectors.size();
                for (Index v = 0; v < vectors.size(); ++v) to[v] = static_cast<double>(row[order[vectors.example(v)]]);
            }
        };
        std::visit(copy, matrix.values);
    }

    /// Add what the vectors of a segment give to the scores; those of problem p begin at `out(p)`.
    template <class Out>
    void add(const PathSolution& solution, const Segment& segment, const Blas& blas, Out&& out) {
        spread(solution, vectors_, segment, coefficients_);
        const Index costs = solution.costs(), width = std::ssize(segment.problems) * costs;
        const Range columns = vectors_.of(segment.range);
        if (columns.size() == 0) return;
        const auto size = static_cast<int>(columns.size());
        products_.reserve(rows_ * width);
        blas.multiply_transposed<double>(static_cast<int>(rows_), static_cast<int>(width), size,
                                         values_.data() + columns.begin, static_cast<int>(vectors_.size()),
                                         coefficients_.data(), size, 0.0, products_.data(), static_cast<int>(width));
        for (std::size_t m = 0; m < segment.problems.size(); ++m) {
            double* scores = out(segment.problems[m]);
            const double* products = products_.data() + static_cast<Index>(m) * costs;
            for (Index i = 0; i < rows_; ++i, scores += costs, products += width) {
                for (Index c = 0; c < costs; ++c) scores[c] += products[c];
            }
        }
    }

  private:
    const SupportVectors& vectors_;
    Index rows_;
    Buffer<double> values_, products_;
    std::vector<double> coefficients_;
};

}  // namespace

void path_scores(const PrecomputedView& matrix, std::span<const Index> order, std::span<const Index> rows,
                 const PathSolution& solution, std::span<double> out, const Blas& blas, const Workers& workers) {
    check(matrix, order, rows, solution, out);
    const Index count = std::ssize(rows), costs = solution.costs(), problems = std::ssize(solution.problems);
    const auto segments = shared_segments(solution.problems, std::ssize(order));
    const SupportVectors vectors(solution.support, std::ssize(order));
    const auto score = [&](Range part) {
        Tile tile(matrix, order, rows.subspan(part.begin, part.size()), vectors);
        const auto place = [&](Index p) { return out.data() + (p * count + part.begin) * costs; };
        for (Index p = 0; p < problems; ++p) {
            double* scores = place(p);
            for (Index i = 0; i < part.size() * costs; ++i) scores[i] = solution.intercept[i % costs * problems + p];
        }
        for (const Segment& segment : segments) tile.add(solution, segment, blas, place);
    };
    workers.for_parts(count, score, kTile);
}

}  // namespace polymargin
