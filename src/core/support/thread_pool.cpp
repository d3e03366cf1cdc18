#include "support/thread_pool.hpp"

#include <algorithm>

namespace polymargin {

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
    }
    wake_.notify_all();
    work_on(job);
    std::unique_lock lock(mutex_);
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
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
        work_on(*job);
        lock.lock();
        if (--job->helpers == 0) idle_.notify_all();
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
