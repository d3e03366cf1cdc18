#pragma once

#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "support/buffer.hpp"

namespace polymargin {

/// Memory for kernel rows, handed out and given back one row at a time.
///
/// The first rows are cut from large chunks, up to a limit, and a row of a chunk that is given back waits for the next
/// one of its length: a fit then touches each page once, and large pages at that. Rows beyond the limit are pieces of
/// their own and are freed when they are given back, which makes room for rows of any length.
template <class Real>
class RowMemory {
  public:
    /// At most `chunk_bytes` are cut from chunks.
    explicit RowMemory(Index chunk_bytes) : chunk_entries_(chunk_bytes / static_cast<Index>(sizeof(Real))) {}

    /// The length to ask for when `count` entries are needed: up to a quarter more, so that rows of similar length can
    /// take each other's place.
    [[nodiscard]] static Index fitting(Index count);

    [[nodiscard]] Real* take(Index length);
    void give_back(const Real* row);

    /// Bytes of all rows, those that wait included.
    [[nodiscard]] Index bytes() const { return entries_ * static_cast<Index>(sizeof(Real)); }
    /// Rows of this length that wait.
    [[nodiscard]] Index waiting(Index length) const;

  private:
    [[nodiscard]] Real* cut(Index length);

    Index chunk_entries_;  // still allowed in chunks
    Index entries_ = 0;
    std::vector<Buffer<Real>> chunks_;
    Index left_ = 0;                                         // entries of the last chunk not handed out yet
    std::map<Index, std::vector<Real*>> waiting_;            // by length
    std::unordered_map<const Real*, std::span<Real>> cuts_;  // the rows cut from chunks
    std::unordered_map<const Real*, Buffer<Real>> pieces_;
};

}  // namespace polymargin
