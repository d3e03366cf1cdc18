#include "support/buffer.hpp"

#include <bit>
#include <mutex>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace polymargin {
namespace detail {
namespace {

std::align_val_t alignment(std::size_t bytes) {
    return std::align_val_t{bytes >= 2 * kLargePage ? kLargePage : kCacheLine};
}

void release(void* memory, std::size_t bytes) noexcept {
    ::operator delete(memory, alignment(bytes));
}

/// Memory that was freed, for the next fit: the system clears every page that it hands out, which is half the time of a
/// fit to 569 examples. It knows no more of a block than its size, so sizes are rounded up to a few.
class Reserve {
  public:
    Reserve() { blocks_.reserve(kMostBlocks); }

    static std::size_t rounded(std::size_t bytes) {
        if (!covers(bytes)) return bytes;
        const std::size_t step = std::bit_floor(bytes) / 4;
        return (bytes + step - 1) / step * step;
    }

    /// A block of so many bytes, rounded up; null if there is none.
    void* take(std::size_t bytes) noexcept {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock || !covers(bytes)) return nullptr;
        for (Block& block : blocks_) {
            if (block.bytes != bytes) continue;
            void* memory = block.memory;
            total_ -= bytes;
            std::swap(block, blocks_.back());
            blocks_.pop_back();
            return memory;
        }
        return nullptr;
    }
    /// Whether the block is kept.
    bool keep(void* memory, std::size_t bytes) noexcept {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock || !covers(bytes) || total_ + bytes > kMostBytes || blocks_.size() == kMostBlocks) return false;
        blocks_.push_back({memory, bytes});
        total_ += bytes;
        return true;
    }
    void clear() noexcept {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock) return;
        for (const Block& block : blocks_) release(block.memory, block.bytes);
        blocks_.clear();
        total_ = 0;
    }

  private:
    struct Block {
        void* memory;
        std::size_t bytes;
    };
    /// Less is soon cleared, more is rare and not to be kept from others.
    static constexpr std::size_t kLeast = std::size_t{1} << 17, kMost = std::size_t{1} << 24;
#if defined(__SANITIZE_ADDRESS__)
    static constexpr std::size_t kMostBytes = 0, kMostBlocks = 0;  // whoever uses freed memory is to be found
#else
    static constexpr std::size_t kMostBytes = std::size_t{1} << 25, kMostBlocks = 16;
#endif
    static bool covers(std::size_t bytes) { return bytes >= kLeast && bytes <= kMost; }

    std::mutex mutex_;  // only tried: a process forked while it was held goes without
    std::vector<Block> blocks_;
    std::size_t total_ = 0;
};

Reserve& reserve() {
    static Reserve& one = *new Reserve;  // never destroyed: there may be buffers to the very end
    return one;
}

}  // namespace

void* allocate(std::size_t bytes) {
    bytes = Reserve::rounded(bytes);
    if (void* kept = reserve().take(bytes)) return kept;
    void* memory = ::operator new(bytes, alignment(bytes));
#if defined(__linux__)
    // Advice only: where it is not taken the memory is as good, a little slower to touch first.
    if (bytes >= 2 * kLargePage) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

void deallocate(void* memory, std::size_t bytes) noexcept {
    bytes = Reserve::rounded(bytes);
    if (memory != nullptr && !reserve().keep(memory, bytes)) release(memory, bytes);
}

}  // namespace detail

void return_freed_memory() noexcept {
    detail::reserve().clear();
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

}  // namespace polymargin
