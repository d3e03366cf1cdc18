#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/engine.hpp"
#include "kernel/row_memory.hpp"
#include "support/control.hpp"
#include "support/thread_pool.hpp"

namespace polymargin {

/// The kernel rows of the examples `rows` against the examples `columns`, those that have been computed.
template <class Real>
class RowTable {
  public:
    [[nodiscard]] Range rows() const { return rows_; }
    [[nodiscard]] Range columns() const { return columns_; }
    /// The values k(g, c) for c in `columns`; null when the row is not here.
    [[nodiscard]] const Real* row(Index g) const { return present_[static_cast<std::size_t>(g - rows_.begin)]; }

  private:
    template <class>
    friend class GramStore;
    Range rows_, columns_;
    std::vector<Real*> present_;
    std::vector<std::int64_t> last_use_;  // empty when the table is a view of the whole matrix
};

/// The one place where kernel values of the training examples are kept. Problems open tables, ask for rows, and all
/// rows asked for in a round are computed together, each once, in blocks, by all threads. There are two modes:
///
/// - *whole*: the full symmetric matrix is computed up front (half the work) and tables are views of it;
/// - *rows*: a row is computed when first asked for and kept until the budget is needed for others, least recently
///   used first.
///
/// Requests come from one thread, in an order that does not depend on the number of threads, so that the blocks, and
/// with them the last bits of every value, do not either.
template <class Real>
class GramStore {
  public:
    GramStore(const KernelEngine<Real>& engine, Index budget_bytes, ThreadPool& pool, const Control& control);

    /// Compute the whole matrix; needs `size^2` entries of the budget. Tables opened before stay as they are.
    void compute_whole();
    [[nodiscard]] bool whole() const { return static_cast<bool>(matrix_); }
    static Index whole_bytes(Index size) { return size * padded<Real>(size) * static_cast<Index>(sizeof(Real)); }

    [[nodiscard]] std::shared_ptr<RowTable<Real>> open(Range rows, Range columns);
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
    [[nodiscard]] ThreadPool& pool() { return pool_; }

  private:
    struct Missing {
        std::shared_ptr<RowTable<Real>> table;
        std::vector<Index> rows;
    };

    void make_room();
    void forget(RowTable<Real>& table, Index slot);
    static Index row_length(const RowTable<Real>& table) { return RowMemory<Real>::fitting(table.columns_.size()); }
    [[nodiscard]] Index bytes_to_come() const;

    const KernelEngine<Real>& engine_;
    Index budget_;
    ThreadPool& pool_;
    const Control& control_;
    Index evaluations_ = 0;
    std::int64_t round_ = 1;
    Buffer<Real> matrix_;
    RowMemory<Real> memory_;
    std::vector<std::weak_ptr<RowTable<Real>>> tables_;
    std::vector<Missing> missing_;
};

}  // namespace polymargin
