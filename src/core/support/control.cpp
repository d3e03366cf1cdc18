#include "support/control.hpp"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace polymargin {

void run_watched(const std::function<void()>& work, Control& control, const std::function<bool()>& poll,
                 std::chrono::milliseconds interval) {
    std::mutex mutex;
    std::condition_variable finished;
    bool done = false;
    std::exception_ptr failure;

    std::jthread worker([&] {
        try {
            work();
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard lock(mutex);
        done = true;
        finished.notify_one();
    });
    std::unique_lock lock(mutex);
    while (!finished.wait_for(lock, interval, [&] { return done; })) {
        lock.unlock();
        try {
            if (!control.cancelled() && !poll()) control.cancel();
        } catch (...) {
            control.cancel();  // the worker is joined on the way out
            throw;
        }
        lock.lock();
    }
    lock.unlock();
    worker.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace polymargin
