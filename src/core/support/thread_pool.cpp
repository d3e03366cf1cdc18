#include "support/thread_pool.hpp"

#include <algorithm>

namespace polymargin {
namespace {

/// How often a thread that waits gives way to others before it goes to sleep: about as long as it takes to wake it, so
/// that short tasks that follow one another find it awake.
constexpr int kPatience = 256;

template <class Ready>
void wait_awake(Ready&& ready) {
    for (int turn = 0; turn < kPatience && !ready(); ++turn) std::this_thread::yield();
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
    for (int t = 1; t < threads; ++t) {
        helpers_.emplace_back([this](const std::stop_token& stop) { help(stop); });
    }
}

ThreadPool::~ThreadPool() {
    for (auto& helper : helpers_) helper.request_stop();
    wake_.notify_all();
}

void ThreadPool::for_each(Index count, const std::function<void(Index)>& task) {
    if (helpers_.empty() || count <= 1) {
        for (Index i = 0; i < count; ++i) task(i);
        return;
    }
    Job job{.task = &task, .count = count};
    {
        const std::lock_guard lock(mutex_);
        jobs_.push_back(&job);
        posted_.fetch_add(1);
    }
    wake_.notify_all();
    work_on(job);
    std::unique_lock lock(mutex_);
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
    if (job.helpers != 0) {
        lock.unlock();
        wait_awake([&] { return job.helpers.load() == 0; });
        lock.lock();
    }
    idle_.wait(lock, [&] { return job.helpers == 0; });
    if (job.failure) std::rethrow_exception(job.failure);
}

void ThreadPool::help(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (true) {
        Job* job = nullptr;
        if (!wake_.wait(lock, stop, [&] { return (job = open_job()) != nullptr; })) return;
        ++job->helpers;
        lock.unlock();
        const unsigned known = posted_.load();
        work_on(*job);
        lock.lock();
        if (--job->helpers == 0) idle_.notify_all();
        lock.unlock();
        wait_awake([&] { return stop.stop_requested() || posted_.load() != known; });
        lock.lock();
    }
}

void ThreadPool::work_on(Job& job) {
    try {
        for (Index i; (i = job.next.fetch_add(1)) < job.count;) (*job.task)(i);
    } catch (...) {
        job.next.store(job.count);
        const std::lock_guard lock(mutex_);
        if (!job.failure) job.failure = std::current_exception();
    }
}

ThreadPool::Job* ThreadPool::open_job() {
    // The newest first: nested work is what another task waits for.
    const auto open =
        std::find_if(jobs_.rbegin(), jobs_.rend(), [](const Job* job) { return job->next.load() < job->count; });
    return open == jobs_.rend() ? nullptr : *open;
}

}  // namespace polymargin
