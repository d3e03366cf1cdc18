#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernel/engine.hpp"
#include "kernel/row_memory.hpp"
#include "support/control.hpp"
#include "support/thread_pool.hpp"
#include "support/vectors.hpp"

namespace polymargin {

/// The kernel rows of the examples `rows` against the examples `columns`, those that have been computed.
template <class Real>
class RowTable {
  public:
    [[nodiscard]] Range rows() const { return rows_; }
    [[nodiscard]] Range columns() const { return columns_; }
    /// The values k(g, c) for c in `columns`; null when the row is not here.
    [[nodiscard]] const Real* row(Index g) const { return present_[static_cast<std::size_t>(g - rows_.begin)]; }
    /// Whether all rows are there, and followed by zeros up to a multiple of `kStep`.
    [[nodiscard]] bool filled_up() const { return filled_up_; }

  private:
    template <class>
    friend class GramStore;
    template <class>
    friend class PrivateRows;
    Range rows_, columns_;
    std::vector<const Real*> present_;
    std::vector<std::int64_t> last_use_;  // empty when the table is a view of the whole matrix
    bool filled_up_ = false;
};

/// The one place where kernel values of the training examples are kept. Problems open tables, ask for rows, and all
/// rows asked for in a round are computed together, each once, in blocks, by all threads. There are two ways:
///
/// - *squares*: the full symmetric matrix, or the matrix of each class against itself, is computed up front (half the
///   work) and tables within a square are views of it;
/// - *rows*: a row is computed when first asked for and kept until the budget is needed for others, least recently
///   used first.
///
/// Requests come from one thread, in an order that does not depend on the number of threads, so that the blocks, and
/// with them the last bits of every value, do not either.
template <class Real>
class GramStore {
  public:
    GramStore(const KernelEngine<Real>& engine, Index budget_bytes, ThreadPool& pool, const Control& control);

    /// Work with other threads, and for somebody else, from now on: a store may live longer than both.
    void work_with(ThreadPool& pool, const Control& control) {
        pool_ = &pool;
        control_ = &control;
    }
    /// Forget all values. Tables opened before must not be read any more.
    void clear();

    /// Compute the matrix of each range against itself, beside those that are there; needs `square_bytes` of the
    /// budget for each. Tables opened before stay as they are.
    void compute_squares(std::span<const Range> ranges);
    void compute_whole() { compute_squares(std::vector<Range>{{0, size()}}); }
    /// Read the whole matrix, rows one after the other, where it is. It must live as long as the store.
    void adopt_whole(const Real* values);
    /// Take the whole matrix of these examples, in this order, from a store that has the whole one of all.
    void copy_whole(const GramStore& from, std::span<const Index> members);
    [[nodiscard]] bool whole() const { return has_square({0, size()}); }
    [[nodiscard]] bool has_square(Range range) const { return square_around(range, range) != nullptr; }
    static Index square_bytes(Index size) { return size * whole_steps<Real>(size) * static_cast<Index>(sizeof(Real)); }

    [[nodiscard]] std::shared_ptr<RowTable<Real>> open(Range rows, Range columns);
    /// The table of a range against itself, which is kept: one for all problems that have these examples.
    [[nodiscard]] std::shared_ptr<RowTable<Real>> shared(Range range);
    /// Free the rows of a table that nobody else will read.
    void close(RowTable<Real>& table);

    /// Ask for rows; they are there after the next `fulfil`, and until the one after it.
    void request(const std::shared_ptr<RowTable<Real>>& table, std::span<const Index> rows);
    /// Compute what is missing. Returns false if a stop was requested meanwhile: the rows are then incomplete.
    bool fulfil();

    [[nodiscard]] Index size() const { return engine_.rows(); }
    [[nodiscard]] Index evaluations() const { return evaluations_; }
    /// Rows of `length` entries that can be held at once, whatever was held before.
    [[nodiscard]] Index capacity(Index length) const;
    [[nodiscard]] ThreadPool& pool() { return *pool_; }
    [[nodiscard]] const KernelEngine<Real>& engine() const { return engine_; }
    [[nodiscard]] const Control& control() const { return *control_; }
    [[nodiscard]] Index budget() const { return budget_; }
    /// Whether rows had to make room for others.
    [[nodiscard]] bool overflowed() const { return overflowed_; }
    /// What is left of the budget.
    [[nodiscard]] Index unused_bytes() const {
        Index squares = 0;
        for (const auto& values : square_values_) squares += values.size() * static_cast<Index>(sizeof(Real));
        return budget_ - memory_.bytes() - squares;
    }
    /// Whether there are values of single rows, which no square may displace.
    [[nodiscard]] bool holds_rows() const { return memory_.bytes() > 0; }
    /// Count kernel values that were computed elsewhere for the same problems.
    void count_evaluations(Index count) { evaluations_ += count; }

  private:
    struct Missing {
        std::shared_ptr<RowTable<Real>> table;
        std::vector<Index> rows;
    };

    /// The matrix of `range` against itself.
    struct Square {
        Range range;
        Index stride;
        const Real* values;
    };

    [[nodiscard]] const Square* square_around(Range rows, Range columns) const;
    void evict_rows();
    void forget(RowTable<Real>& table, Index slot);
    static Index row_length(const RowTable<Real>& table) { return RowMemory<Real>::fitting(table.columns_.size()); }
    [[nodiscard]] Index bytes_to_come() const;

    const KernelEngine<Real>& engine_;
    Index budget_;
    ThreadPool* pool_;
    const Control* control_;
    Index evaluations_ = 0;
    std::int64_t round_ = 1;
    bool overflowed_ = false;
    std::vector<Buffer<Real>> square_values_;  // squares that were computed together in one piece: large pages
    std::vector<Square> squares_;
    RowMemory<Real> memory_;
    std::vector<std::weak_ptr<RowTable<Real>>> tables_;
    std::map<std::pair<Index, Index>, std::shared_ptr<RowTable<Real>>> shared_;
    std::vector<Missing> missing_;
};

/// The kernel rows of two ranges of examples against each other, for one problem at a time and computed by the thread
/// that asks. All of them have their place in memory from the start, so none is ever evicted.
template <class Real>
class PrivateRows {
  public:
    explicit PrivateRows(const KernelEngine<Real>& engine) : engine_(engine) {}

    /// Forget the rows of the last problem and make room for those of this one.
    void open(Range first, Range second);
    [[nodiscard]] std::shared_ptr<RowTable<Real>> table(Range rows) const {
        return tables_[tables_[0]->rows() == rows ? 0 : 1];
    }
    void compute(RowTable<Real>& table, std::span<const Index> rows);
    [[nodiscard]] Index evaluations() const { return evaluations_; }

    static Index bytes(Range first, Range second) {
        return (first.size() * padded<Real>(second.size()) + second.size() * padded<Real>(first.size())) *
               static_cast<Index>(sizeof(Real));
    }

  private:
    const KernelEngine<Real>& engine_;
    Buffer<Real> values_;
    std::shared_ptr<RowTable<Real>> tables_[2];
    Index evaluations_ = 0;
};

}  // namespace polymargin
