#include "kernel/row_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace polymargin {

template <class Real>
Index RowMemory<Real>::fitting(Index count) const {
    if (!ample_) return padded<Real>(count);
    const auto line = padded<Real>(1);
    const auto octave = static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(std::max(count, line))));
    const Index step = std::max(octave / 4, line);
    return (count + step - 1) / step * step;
}

template <class Real>
Real* RowMemory<Real>::take(Index length) {
    if (auto& waiting = waiting_[length]; !waiting.empty()) {
        Real* row = waiting.back();
        waiting.pop_back();
        return row;
    }
    if (ample_) return cut(length);
    Buffer<Real> piece(length);
    Real* row = piece.data();
    bytes_ += length * static_cast<Index>(sizeof(Real));
    pieces_.emplace(row, std::move(piece));
    return row;
}

template <class Real>
Real* RowMemory<Real>::cut(Index length) {
    constexpr Index chunk = 4'194'304 / static_cast<Index>(sizeof(Real));
    if (left_ < length) {
        chunks_.emplace_back(std::max(chunk, length));
        left_ = chunks_.back().size();
    }
    Real* row = chunks_.back().data() + chunks_.back().size() - left_;
    left_ -= length;
    bytes_ += length * static_cast<Index>(sizeof(Real));
    return row;
}

template <class Real>
void RowMemory<Real>::give_back(Real* row, Index length) {
    if (ample_) {
        waiting_[length].push_back(row);
        return;
    }
    pieces_.erase(row);
    bytes_ -= length * static_cast<Index>(sizeof(Real));
}

template class RowMemory<float>;
template class RowMemory<double>;

}  // namespace polymargin
