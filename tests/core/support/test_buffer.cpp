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

TEST(padding_is_to_whole_cache_lines) {
    CHECK(padded<double>(0) == 0);
    CHECK(padded<double>(1) == 8);
    CHECK(padded<double>(8) == 8);
    CHECK(padded<float>(17) == 32);
}
