#include "support/thread_pool.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"

using namespace polymargin;

namespace {

constexpr int kSizes[] = {1, 2, 4};

std::vector<int> counts_of(ThreadPool& pool, Index tasks) {
    std::vector<std::atomic<int>> runs(tasks);
    pool.for_each(tasks, [&](Index i) { runs[i].fetch_add(1); });
    return {runs.begin(), runs.end()};
}

}  // namespace

TEST(every_task_runs_once) {
    for (const int threads : kSizes) {
        ThreadPool pool(threads);
        CHECK(pool.threads() == threads);
        for (const Index tasks : {0, 1, 2, 3, 1000}) CHECK(counts_of(pool, tasks) == std::vector<int>(tasks, 1));
    }
}

TEST(one_thread_runs_in_order_on_the_caller) {
    ThreadPool pool(1);
    const auto caller = std::this_thread::get_id();
    std::vector<Index> seen;
    pool.for_each(5, [&](Index i) {
        CHECK(std::this_thread::get_id() == caller);
        seen.push_back(i);
    });
    CHECK(seen == std::vector<Index>{0, 1, 2, 3, 4});
}

TEST(nested_loops_finish) {
    for (const int threads : kSizes) {
        ThreadPool pool(threads);
        std::atomic<int> leaves{0};
        pool.for_each(
            7, [&](Index) { pool.for_each(5, [&](Index) { pool.for_each(3, [&](Index) { leaves.fetch_add(1); }); }); });
        CHECK(leaves == 7 * 5 * 3);
    }
}

TEST(exceptions_come_out_and_the_pool_lives_on) {
    for (const int threads : kSizes) {
        ThreadPool pool(threads);
        for (int repeat = 0; repeat < 20; ++repeat) {
            CHECK_THROWS(std::out_of_range, "task 3", pool.for_each(50, [](Index i) {
                if (i == 3) throw std::out_of_range("task 3");
            }));
            CHECK(counts_of(pool, 10) == std::vector<int>(10, 1));
        }
        CHECK_THROWS(std::runtime_error, "every", pool.for_each(50, [](Index) { throw std::runtime_error("every"); }));
        CHECK_THROWS(std::runtime_error, "inner", pool.for_each(4, [&](Index) {
            pool.for_each(4, [](Index) { throw std::runtime_error("inner"); });
        }));
        CHECK(counts_of(pool, 10) == std::vector<int>(10, 1));
    }
}

TEST(tasks_after_an_exception_are_dropped) {
    ThreadPool pool(1);
    int ran = 0;
    CHECK_THROWS(std::runtime_error, "", pool.for_each(10, [&](Index i) {
        ++ran;
        if (i == 4) throw std::runtime_error("stop here");
    }));
    CHECK(ran == 5);
}

TEST(many_short_jobs) {
    // Jobs that end before the helpers wake up are where a hand-over goes wrong.
    for (const int threads : {2, 4}) {
        ThreadPool pool(threads);
        std::atomic<Index> total{0};
        for (int job = 0; job < 5000; ++job) pool.for_each(1 + job % 5, [&](Index i) { total.fetch_add(i + 1); });
        CHECK(total == 1000 * (1 + 3 + 6 + 10 + 15));
    }
}

TEST(pools_come_and_go) {
    for (int i = 0; i < 200; ++i) {
        ThreadPool pool(4);
        if (i % 2 == 0) CHECK(counts_of(pool, 3) == std::vector<int>(3, 1));
    }
}
