#include "kernel/row_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace polymargin {

template <class Real>
Index RowMemory<Real>::fitting(Index count) {
    const Index line = padded<Real>(1);
    const auto octave = static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(std::max(count, line))));
    const Index step = std::max(octave / 4, line);
    return (count + step - 1) / step * step;
}

template <class Real>
Real* RowMemory<Real>::take(Index length) {
    if (auto waiting = waiting_.find(length); waiting != waiting_.end() && !waiting->second.empty()) {
        Real* row = waiting->second.back();
        waiting->second.pop_back();
        return row;
    }
    entries_ += length;
    if (length <= chunk_entries_) return cut(length);
    Buffer<Real> piece(length);
    Real* row = piece.data();
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
    chunk_entries_ -= length;
    cuts_.emplace(row, std::span(row, static_cast<std::size_t>(length)));
    return row;
}

template <class Real>
void RowMemory<Real>::give_back(const Real* row) {
    if (const auto cut = cuts_.find(row); cut != cuts_.end()) {
        waiting_[std::ssize(cut->second)].push_back(cut->second.data());
        return;
    }
    const auto piece = pieces_.find(row);
    entries_ -= piece->second.size();
    pieces_.erase(piece);
}

template <class Real>
Index RowMemory<Real>::waiting(Index length) const {
    const auto waiting = waiting_.find(length);
    return waiting == waiting_.end() ? 0 : std::ssize(waiting->second);
}

template class RowMemory<float>;
template class RowMemory<double>;

}  // namespace polymargin
