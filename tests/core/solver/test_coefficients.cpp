#include "solver/coefficients.hpp"

#include <map>

#include "check.hpp"
#include "fixtures.hpp"
#include "solver/shuffler.hpp"

using namespace polymargin;
using fixtures::Random;
using Entry = Coefficients::Entry;

namespace {

std::vector<Entry> random_entries(Index count, Random& random) {
    std::vector<Entry> entries;
    for (Index e = 0; e < count; ++e) {
        entries.push_back({static_cast<std::int32_t>(random.below(1000)), random.normal()});
    }
    return entries;
}

void check_equal(const Coefficients& coefficients, const std::map<Index, std::vector<Entry>>& expected) {
    for (Index i = 0; i < coefficients.rows(); ++i) {
        coefficients.announce(i);
        coefficients.fetch(i);
        const auto row = coefficients.row(i);
        const auto found = expected.find(i);
        if (found == expected.end()) CHECK(row.empty());
        if (found == expected.end()) continue;
        CHECK(std::ranges::equal(row, found->second, [](const Entry& a, const Entry& b) {
            return a.column == b.column && a.value == b.value;
        }));
    }
}

/// What is between the first and the last entry of all rows.
Index extent(const Coefficients& coefficients) {
    const Entry *first = coefficients.row(0).data(), *last = first;
    for (Index i = 0; i < coefficients.rows(); ++i) {
        first = std::min(first, coefficients.row(i).data());
        last = std::max(last, coefficients.row(i).data() + coefficients.row(i).size());
    }
    return last - first;
}

}  // namespace

TEST(coefficients_are_what_they_were_set_to) {
    Random random(331);
    Coefficients coefficients(50);
    std::map<Index, std::vector<Entry>> expected;
    CHECK(coefficients.rows() == 50);
    check_equal(coefficients, expected);
    for (int step = 0; step < 3000; ++step) {
        const Index i = random.below(45), count = random.uniform() < 0.2 ? 0 : random.below(1 + random.below(60));
        expected[i] = random_entries(count, random);
        coefficients.set(i, expected[i]);
        if (step % 50 == 0) check_equal(coefficients, expected);
    }
    check_equal(coefficients, expected);
    const Coefficients copy = coefficients;
    coefficients.set(0, {});
    check_equal(copy, expected);
}

TEST(coefficients_that_grow_do_not_leave_holes_forever) {
    Random random(332);
    const Index n = 300, longest = 500;
    Coefficients coefficients(n);
    std::map<Index, std::vector<Entry>> expected;
    std::vector<Index> capacity(n, 0);
    expected[0] = random_entries(1, random);  // the first in memory, and it stays there
    coefficients.set(0, expected[0]);
    for (Index count = 1; count <= longest; count += 7) {
        const auto entries = random_entries(count, random);
        for (const Index i : random.permutation(n)) {
            if (i == 0 || random.uniform() < 0.3) continue;
            expected[i] = entries;
            coefficients.set(i, entries);
            if (count > capacity[i]) capacity[i] = count + count / 2;
        }
        check_equal(coefficients, expected);
        // Rows have room for half as much again; holes are no more than all of that, and a little.
        CHECK(extent(coefficients) <= 2 * std::accumulate(capacity.begin(), capacity.end(), Index{1}) + (1 << 16));
    }
}

TEST(shuffled_orders_are_the_same_everywhere) {
    const auto order_of = [](std::uint64_t seed, Index n) {
        auto items = fixtures::identity(n);
        Shuffler shuffle(seed);
        shuffle(std::span(items));
        return items;
    };
    // By splitmix64 and Fisher-Yates, computed elsewhere.
    CHECK(order_of(0, 10) == std::vector<Index>{4, 9, 2, 5, 1, 7, 6, 0, 3, 8});
    CHECK(order_of(7, 10) == std::vector<Index>{9, 5, 8, 6, 1, 2, 4, 7, 0, 3});
    for (const Index n : {0, 1, 2, 100}) {
        auto items = order_of(3, n);
        CHECK(items == order_of(3, n));
        if (n == 100) CHECK(items != order_of(4, n));
        std::ranges::sort(items);
        CHECK(items == fixtures::identity(n));
    }
}

TEST(every_order_is_as_likely) {
    Shuffler shuffle(11);
    std::map<std::vector<int>, int> seen;
    for (int repeat = 0; repeat < 24000; ++repeat) {
        std::vector<int> items{0, 1, 2, 3};
        shuffle(std::span(items));
        ++seen[items];
    }
    CHECK(seen.size() == 24);
    for (const auto& [order, times] : seen) CHECK(times > 850 && times < 1150);  // more than four deviations
}

TEST(blocks_of_neighbours_stay_together) {
    constexpr std::uint32_t block = 64;
    for (const std::uint32_t n : {0U, 1U, 63U, 64U, 65U, 1000U}) {
        std::vector<std::uint32_t> items(n), again(n);
        std::iota(items.begin(), items.end(), 0U);
        again = items;
        const auto sorted = items;
        Shuffler first(5), second(5);
        first.in_blocks(items);
        second.in_blocks(again);
        CHECK(items == again);
        std::uint32_t changes = 0, kept = 0;
        for (std::uint32_t t = 0; t < n; ++t) {
            changes += t > 0 && items[t] / block != items[t - 1] / block;
            kept += items[t] == t;
        }
        CHECK(n == 0 || changes == (n - 1) / block);
        CHECK(n < block || kept < n / 4);
        first.in_blocks(again);
        if (n >= block) CHECK(again != items);  // anew each time
        std::ranges::sort(items);
        CHECK(items == sorted);
    }
}
