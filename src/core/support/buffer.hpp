#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "support/types.hpp"

namespace polymargin {

inline constexpr std::size_t kCacheLine = 64;

/// Memory from this size on is asked for in large pages: first touches are then few.
inline constexpr std::size_t kLargePage = std::size_t{2} << 20;

namespace detail {
[[nodiscard]] void* allocate(std::size_t bytes);
void deallocate(void* memory, std::size_t bytes) noexcept;
}  // namespace detail

/// Give memory that was freed back to the system, where that can be asked for: rows of one length leave holes that rows
/// of another do not fill.
void return_freed_memory() noexcept;

/// Owned memory for plain numbers, aligned to a cache line and *not* initialised: kernel rows are written
/// once, right after they are allocated, and clearing them first would double the traffic.
template <class T>
    requires std::is_trivially_copyable_v<T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(Index size)
        : data_(static_cast<T*>(detail::allocate(static_cast<std::size_t>(size) * sizeof(T))),
                Free{static_cast<std::size_t>(size) * sizeof(T)}),
          size_(size) {}

    [[nodiscard]] T* data() { return data_.get(); }
    [[nodiscard]] const T* data() const { return data_.get(); }
    [[nodiscard]] Index size() const { return size_; }
    [[nodiscard]] std::span<T> span() { return {data_.get(), static_cast<std::size_t>(size_)}; }
    [[nodiscard]] explicit operator bool() const { return data_ != nullptr; }

    /// Grow to at least `size`; the contents are lost when it grows.
    void reserve(Index size) {
        if (size > size_) *this = Buffer(size);
    }

  private:
    struct Free {
        std::size_t bytes = 0;
        void operator()(T* p) const noexcept { detail::deallocate(p, bytes); }
    };
    std::unique_ptr<T, Free> data_;
    Index size_ = 0;
};

/// Round `n` up to whole cache lines of `T`, so that every row of a matrix starts on one.
template <class T>
[[nodiscard]] constexpr Index padded(Index n) {
    constexpr Index lane = static_cast<Index>(kCacheLine / sizeof(T));
    return (n + lane - 1) / lane * lane;
}

}  // namespace polymargin
