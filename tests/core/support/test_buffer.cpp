#include "support/buffer.hpp"

#include <cstdint>

#include "check.hpp"

using namespace polymargin;

TEST(buffers_start_on_a_cache_line) {
    for (const Index size : {1, 7, 64, 1000}) {
        Buffer<float> buffer(size);
        CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % kCacheLine == 0);
        CHECK(buffer.size() == size && buffer.span().size() == static_cast<std::size_t>(size));
        for (float& v : buffer.span()) v = 1.0f;  // the last element is ours
    }
}

TEST(reserve_grows_but_never_shrinks) {
    Buffer<double> buffer;
    CHECK(!buffer);
    buffer.reserve(10);
    CHECK(buffer && buffer.size() == 10);
    buffer.data()[9] = 3.0;
    const double* before = buffer.data();
    buffer.reserve(5);
    CHECK(buffer.data() == before && buffer.size() == 10 && buffer.data()[9] == 3.0);
    buffer.reserve(11);
    CHECK(buffer.size() == 11);
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(freed_memory_serves_the_next_buffer_of_its_size) {
    const auto* first = Buffer<double>(100'000).data();
    Buffer<double> second(100'000);
    CHECK(second.data() == first);
    for (double& v : second.span()) v = 1.0;
    const Buffer<double> third(100'000);  // the one that was kept is in use
    CHECK(third.data() != first);
    return_freed_memory();
    for (const double v : second.span()) CHECK(v == 1.0);
}
#endif

TEST(padding_is_to_whole_cache_lines) {
    CHECK(padded<double>(0) == 0);
    CHECK(padded<double>(1) == 8);
    CHECK(padded<double>(8) == 8);
    CHECK(padded<float>(17) == 32);
}
