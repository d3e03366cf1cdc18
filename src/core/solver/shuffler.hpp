#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace polymargin {

/// Random orders that are the same on every machine.
class Shuffler {
  public:
    explicit Shuffler(std::uint64_t seed) : state_(seed) {}

    template <class T>
    void operator()(std::span<T> items) {
        for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
    }
    /// A random order of blocks of neighbours, and within each block: almost as good as any, and memory is read almost
    /// from begin to end.
    void in_blocks(std::vector<std::uint32_t>& items) {
        const std::size_t blocks = (items.size() + kBlock - 1) / kBlock;
        order_.resize(blocks);
        for (std::size_t b = 0; b < blocks; ++b) order_[b] = static_cast<std::uint32_t>(b);
        (*this)(std::span(order_));
        shuffled_.clear();
        for (const std::uint32_t b : order_) {
            const std::size_t start = b * kBlock, count = std::min(kBlock, items.size() - start);
            const auto block = std::span(items).subspan(start, count);
            (*this)(block);
            shuffled_.insert(shuffled_.end(), block.begin(), block.end());
        }
        items.swap(shuffled_);
    }

    /// A number below `count`, which is at most 2^32.
    std::size_t below(std::size_t count) { return static_cast<std::size_t>(((next() >> 32) * count) >> 32); }

  private:
    static constexpr std::size_t kBlock = 64;

    std::uint64_t next() {  // splitmix64
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

    std::uint64_t state_;
    std::vector<std::uint32_t> order_, shuffled_;
};

}  // namespace polymargin
