#pragma once

#include <map>
#include <vector>

#include "support/buffer.hpp"

namespace polymargin {

/// Memory for kernel rows, handed out and given back one row at a time.
///
/// Where memory is ample, rows are cut from large chunks and a row that is given back waits for the next one of its
/// length: a fit touches each page once, and large pages at that. Where it is scarce, every row is a piece of its own
/// and can be freed to make room for rows of another length.
template <class Real>
class RowMemory {
  public:
    explicit RowMemory(bool ample) : ample_(ample) {}

    /// The length to ask for when `count` entries are needed. Where memory is ample it is up to a quarter more, so that
    /// rows of similar length can take each other's place.
    [[nodiscard]] Index fitting(Index count) const;

    [[nodiscard]] Real* take(Index length);
    void give_back(Real* row, Index length);

    /// Bytes of the rows that are out, or waiting to be used again.
    [[nodiscard]] Index bytes() const { return bytes_; }
    [[nodiscard]] bool ample() const { return ample_; }

  private:
    [[nodiscard]] Real* cut(Index length);

    bool ample_;
    Index bytes_ = 0;
    std::vector<Buffer<Real>> chunks_;
    Index left_ = 0;                               // entries of the last chunk not handed out yet
    std::map<Index, std::vector<Real*>> waiting_;  // by length
    std::map<Real*, Buffer<Real>> pieces_;         // scarce memory: the rows that are out
};

}  // namespace polymargin
