#include "support/buffer.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace polymargin {

void return_freed_memory() noexcept {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

namespace detail {
namespace {

std::align_val_t alignment(std::size_t bytes) {
    return std::align_val_t{bytes >= 2 * kLargePage ? kLargePage : kCacheLine};
}

}  // namespace

void* allocate(std::size_t bytes) {
    void* memory = ::operator new(bytes, alignment(bytes));
#if defined(__linux__)
    // Advice only: where it is not taken the memory is as good, a little slower to touch first.
    if (bytes >= 2 * kLargePage) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

void deallocate(void* memory, std::size_t bytes) noexcept {
    ::operator delete(memory, alignment(bytes));
}

}  // namespace detail
}  // namespace polymargin
