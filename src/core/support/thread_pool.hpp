#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "support/types.hpp"

namespace polymargin {

/// A few threads that live as long as one call into the core. The thread that calls `for_each` works too, so a
/// pool of one starts no thread at all. `for_each` may be called from inside a task; idle threads then help there.
/// Tasks are handed out in order but may end in any order: results must not depend on who ran what.
class ThreadPool {
  public:
    explicit ThreadPool(int threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    [[nodiscard]] int threads() const { return static_cast<int>(helpers_.size()) + 1; }

    /// Call `task(i)` for i in [0, count) and return when all have ended. The first exception is thrown again here
    /// and the tasks that had not started are dropped.
    void for_each(Index count, const std::function<void(Index)>& task);

  private:
    struct Job {
        const std::function<void(Index)>* task;
        Index count;
        std::atomic<Index> next{0};
        std::atomic<int> helpers{0};           // changed under the pool's mutex
        std::exception_ptr failure = nullptr;  // likewise
    };

    void help(const std::stop_token& stop);
    void work_on(Job& job);
    [[nodiscard]] Job* open_job();

    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::condition_variable idle_;
    std::vector<Job*> jobs_;
    std::atomic<unsigned> posted_{0};  // jobs so far
    std::vector<std::jthread> helpers_;
};

}  // namespace polymargin
