#include "solver/working_set.hpp"

#include <algorithm>

#include "check.hpp"
#include "fixtures.hpp"
#include "solver/smallest.hpp"

using namespace polymargin;
using fixtures::Random;

namespace {

using Numbers = std::vector<Index>;

Numbers members(const WorkingSet& set) {
    return {set.members().begin(), set.members().end()};
}
Numbers added(const WorkingSet& set) {
    return {set.added().begin(), set.added().end()};
}

bool never(Index) {
    return false;
}

Numbers taken(Smallest& smallest) {
    Numbers out;
    smallest.append_to(out);
    std::ranges::sort(out);
    return out;
}

}  // namespace

TEST(slots_are_given_in_order_while_there_is_room) {
    WorkingSet set(10, 4);
    CHECK(set.size() == 0 && set.capacity() == 4);
    set.take_in(Numbers{7, 2}, never);
    CHECK(members(set) == (Numbers{7, 2}) && added(set) == (Numbers{0, 1}));
    set.take_in(Numbers{2, 5}, never);
    CHECK(members(set) == (Numbers{7, 2, 5}) && added(set) == (Numbers{2}));
    set.take_in(Numbers{}, never);
    CHECK(set.size() == 3 && added(set).empty());
}

TEST(every_example_has_the_slot_of_its_number) {
    WorkingSet set(3, 3);
    set.take_all();
    CHECK(members(set) == (Numbers{0, 1, 2}) && added(set) == (Numbers{0, 1, 2}));
    set.take_all();
    CHECK(set.size() == 3 && added(set).empty());
}

TEST(examples_at_rest_go_first) {
    WorkingSet set(10, 4);
    set.take_in(Numbers{0, 1, 2, 3}, never);
    set.take_in(Numbers{8}, [](Index i) { return i == 1; });
    CHECK(members(set) == (Numbers{0, 8, 2, 3}) && added(set) == (Numbers{1}));
    // One at rest and one more: the one at rest goes, and of the others any that is not wanted.
    set.take_in(Numbers{5, 6, 8, 0}, [](Index i) { return i == 3; });
    CHECK(members(set)[0] == 0 && members(set)[1] == 8);
    CHECK(added(set).size() == 2 && added(set)[0] == 3);
    CHECK(members(set)[3] == 5 && members(set)[2] == 6);
}

TEST(wanted_examples_are_never_evicted) {
    WorkingSet set(10, 3);
    set.take_in(Numbers{0, 1, 2}, never);
    set.take_in(Numbers{2, 1, 9}, [](Index) { return true; });
    CHECK(members(set) == (Numbers{9, 1, 2}) && added(set) == (Numbers{0}));
}

TEST(more_than_fit_are_left_out) {
    WorkingSet set(10, 3);
    set.take_in(Numbers{4, 5, 6, 7, 8}, never);
    CHECK(members(set) == (Numbers{4, 5, 6}));
    set.take_in(Numbers{9, 8, 7, 6, 5}, never);
    CHECK(set.size() == 3 && added(set).size() == 1 && members(set) == (Numbers{9, 5, 6}));
}

TEST(working_sets_keep_their_promises) {
    Random random(231);
    WorkingSet set(40, 12);
    for (int round = 0; round < 500; ++round) {
        auto order = random.permutation(40);
        const Numbers wanted(order.begin(), order.begin() + random.below(13)), before = members(set);
        std::vector<char> at_vertex(40);
        for (char& r : at_vertex) r = random.uniform() < 0.5;
        set.take_in(wanted, [&](Index i) { return at_vertex[i] != 0; });
        const Numbers after = members(set), filled = added(set);
        CHECK(set.size() <= 12);
        for (const Index t : wanted) CHECK(std::ranges::count(after, t) == 1);
        bool moving_evicted = false, resting_kept = false;
        for (Index s = 0; s < set.size(); ++s) {
            const bool changed = s >= std::ssize(before) || before[s] != after[s];
            CHECK(changed == (std::ranges::count(filled, s) == 1));
            CHECK(std::ranges::count(after, after[s]) == 1);
            if (changed && s < std::ssize(before)) moving_evicted = moving_evicted || !at_vertex[before[s]];
            if (!changed && at_vertex[after[s]] && std::ranges::count(wanted, after[s]) == 0) resting_kept = true;
        }
        CHECK(!(moving_evicted && resting_kept));
    }
}

TEST(the_smallest_keys_are_kept) {
    Random random(232);
    for (int repeat = 0; repeat < 200; ++repeat) {
        const Index n = 1 + random.below(200), count = 1 + random.below(40);
        const double limit = random.uniform() < 0.5 ? 0.3 : 2.0;
        Smallest smallest(count, limit);
        std::vector<std::pair<double, Index>> all;
        for (Index t = 0; t < n; ++t) {
            const double key = random.uniform();
            smallest.offer(key, t);
            if (key < limit) all.emplace_back(key, t);
        }
        std::ranges::sort(all);
        Numbers expected;
        for (std::size_t i = 0; i < all.size() && std::ssize(expected) < count; ++i) expected.push_back(all[i].second);
        std::ranges::sort(expected);
        CHECK(taken(smallest) == expected);
    }
}

TEST(the_limit_itself_does_not_count) {
    Smallest smallest(3, -1.0);
    for (const double key : {-1.0, 0.0, std::numeric_limits<double>::quiet_NaN()}) smallest.offer(key, 0);
    CHECK(taken(smallest).empty());
    smallest.offer(-1.5, 4);
    CHECK(taken(smallest) == (Numbers{4}));
}

TEST(equal_keys_fill_the_count) {
    Smallest smallest(5, 0.0);
    for (Index t = 0; t < 100; ++t) smallest.offer(-2.0, t);
    const Numbers out = taken(smallest);
    CHECK(out.size() == 5);
    for (std::size_t i = 1; i < out.size(); ++i) CHECK(out[i] != out[i - 1]);
}

TEST(the_smallest_are_appended) {
    Smallest smallest(2, 0.0);
    smallest.offer(-1.0, 3);
    Numbers out{9};
    smallest.append_to(out);
    CHECK(out == (Numbers{9, 3}));
}
