#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernel/data.hpp"
#include "support/buffer.hpp"
#include "support/workers.hpp"

namespace polymargin {

/// One example: its non-zero values and their columns, or all values when there are no columns.
template <class Real>
struct Row {
    const Real* values;
    const std::uint32_t* columns;  ///< null for a dense row
    Index count;
};

/// The examples as a linear solver walks through them: in its own precision, sparse or dense, whichever is less to
/// read, and with the features numbered by how often they occur, so that the weights that are needed all the time are
/// neighbours and stay in the cache.
template <class Real>
class LinearRows {
  public:
    /// Example i is row `order[i]` of `data`, which must not be a kernel matrix. After a stop request the rows must not
    /// be used. With a `shift`, which only dense data may have, it is subtracted from every example.
    LinearRows(const DataView& data, std::span<const Index> order, const Workers& workers,
               std::span<const double> shift = {})
        : LinearRows(data, order, shift, workers) {
        read_to(size(), workers);
    }
    /// The same with nothing read yet but how many values there are; `read_to` does the rest while data, order and
    /// shift are there.
    [[nodiscard]] static LinearRows unread(const DataView& data, std::span<const Index> order, const Workers& workers,
                                           std::span<const double> shift = {}) {
        return {data, order, shift, workers};
    }
    /// Read the first so many examples, those that have not been. Throws std::invalid_argument, naming row and column,
    /// when a squared length overflows.
    void read_to(Index count, const Workers& workers);

    [[nodiscard]] Index size() const { return std::ssize(starts_) - 1; }
    [[nodiscard]] Index features() const { return std::ssize(original_); }
    [[nodiscard]] bool dense() const { return !columns_; }
    [[nodiscard]] Index bytes() const {
        return starts_.back() * static_cast<Index>(sizeof(Real) + (dense() ? 0 : sizeof(std::uint32_t)));
    }
    /// How many have been read.
    [[nodiscard]] Index ready() const { return ready_; }
    /// Values that are kept.
    [[nodiscard]] Index entries() const { return starts_.back(); }
    [[nodiscard]] Row<Real> row(Index i) const {
        const Index start = starts_[i];
        return {values_.data() + start, columns_ ? columns_.data() + start : nullptr, starts_[i + 1] - start};
    }
    /// Rows are in so many parts, each with features of its own: what is added to the weights of one part does not meet
    /// what is added to those of another.
    [[nodiscard]] Index parts() const { return dense() ? 1 : 2; }
    /// The p-th part of a row: of a sparse one the features that occur often, or the others.
    [[nodiscard]] Row<Real> part(Index i, Index p) const {
        const Row<Real> x = row(i);
        if (dense()) return x;
        const Index often = often_[i];
        return p == 0 ? Row<Real>{x.values, x.columns, often}
                      : Row<Real>{x.values + often, x.columns + often, x.count - often};
    }
    /// |x_i|^2
    [[nodiscard]] double norm(Index i) const { return norms_[i]; }
    /// Bring a row into the cache, in two steps, before its turn comes.
    void announce(Index i) const {
        __builtin_prefetch(&starts_[i]);
        __builtin_prefetch(&norms_[i]);
    }
    void fetch(Index i) const {
        const Row<Real> x = row(i);
        fetch(x.values, x.count);
        if (x.columns != nullptr) fetch(x.columns, x.count);
    }
    /// The caller's number of each of our features.
    [[nodiscard]] std::span<const Index> original_features() const { return original_; }

  private:
    template <class T>
    static void fetch(const T* from, Index count) {
        const auto* begin = reinterpret_cast<const char*>(from);
        const Index bytes = count * static_cast<Index>(sizeof(T));
        for (Index b = 0; b < bytes; b += static_cast<Index>(kCacheLine)) __builtin_prefetch(begin + b);
    }
    struct Source {
        DataView data;
        std::span<const Index> order;
        std::span<const double> shift;
    };
    LinearRows(const DataView& data, std::span<const Index> order, std::span<const double> shift,
               const Workers& workers);
    /// Find out whether the rows are dense, and where each begins; if not, number the features.
    void plan(const Workers& workers);
    void read(Range part, std::span<const std::uint32_t> place);
    void read_dense(Index i);
    void finish(Index i);

    Source source_;
    Index ready_ = 0;  // rows that have been read
    std::vector<Index> starts_;
    Buffer<Real> values_;
    Buffer<std::uint32_t> columns_;
    std::vector<std::uint32_t> often_;  // entries of each row in its first part, if it is sparse
    Index common_ = 0;                  // features that occur often: they have half of the entries
    std::vector<double> norms_;
    std::vector<Index> original_;
};

}  // namespace polymargin
