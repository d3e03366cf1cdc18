#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <limits>

#include "support/types.hpp"

namespace polymargin {

/// What a running solver shows of itself.
struct Progress {
    Index done = 0;                                              ///< sub-problems finished
    Index total = 0;                                             ///< sub-problems in all
    Index iterations = 0;                                        ///< steps taken so far, over all sub-problems
    double violation = std::numeric_limits<double>::infinity();  ///< largest violation among those under way
    double gap = std::numeric_limits<double>::infinity();        ///< relative duality gap, of solvers that go by it

    /// What is still open, by the measure that the solver goes by.
    [[nodiscard]] double open() const { return std::min(violation, gap); }
};

/// Thrown by a computation that nobody waits for any more.
struct Abandoned : std::exception {
    [[nodiscard]] const char* what() const noexcept override { return "nobody waits for the answer"; }
};

/// The link between a computation and whoever waits for it: the computation reads `stop_requested` at every
/// convenient point and writes its progress; the waiting side sets the stop. After a stop there is still an answer,
/// with its certificate; a computation that is abandoned may end without one, and where that takes long it does.
class Control {
  public:
    using Clock = std::chrono::steady_clock;

    Control() = default;
    explicit Control(double time_limit_seconds) {
        if (time_limit_seconds < std::numeric_limits<double>::infinity()) {
            has_deadline_ = true;
            deadline_ = Clock::now() +
                        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time_limit_seconds));
        }
    }

    void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
    void abandon() {
        abandoned_.store(true, std::memory_order_relaxed);
        cancel();
    }
    void throw_if_abandoned() const {
        if (abandoned_.load(std::memory_order_relaxed)) throw Abandoned();
    }
    [[nodiscard]] bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool out_of_time() const { return has_deadline_ && Clock::now() >= deadline_; }
    [[nodiscard]] bool stop_requested() const { return cancelled() || out_of_time(); }

    void report(const Progress& p) {
        done_.store(p.done, std::memory_order_relaxed);
        total_.store(p.total, std::memory_order_relaxed);
        iterations_.store(p.iterations, std::memory_order_relaxed);
        violation_.store(p.violation, std::memory_order_relaxed);
        gap_.store(p.gap, std::memory_order_relaxed);
    }
    [[nodiscard]] Progress progress() const {
        return {done_.load(std::memory_order_relaxed), total_.load(std::memory_order_relaxed),
                iterations_.load(std::memory_order_relaxed), violation_.load(std::memory_order_relaxed),
                gap_.load(std::memory_order_relaxed)};
    }

  private:
    std::atomic<bool> cancelled_{false}, abandoned_{false};
    bool has_deadline_ = false;
    Clock::time_point deadline_;
    std::atomic<Index> done_{0}, total_{0}, iterations_{0};
    std::atomic<double> violation_{std::numeric_limits<double>::infinity()};
    std::atomic<double> gap_{std::numeric_limits<double>::infinity()};
};

/// Run `work` on a thread of its own while the calling thread waits and calls `poll` every `interval`; a `poll` that
/// returns false cancels. Exceptions of `work` come out here. The caller's thread stays free for signals.
void run_watched(const std::function<void()>& work, Control& control, const std::function<bool()>& poll,
                 std::chrono::milliseconds interval = std::chrono::milliseconds(20));

}  // namespace polymargin
