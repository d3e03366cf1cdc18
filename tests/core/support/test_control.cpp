#include "support/control.hpp"

#include <stdexcept>
#include <thread>

#include "check.hpp"

using namespace polymargin;
using namespace std::chrono_literals;

TEST(a_fresh_control_lets_work_go_on) {
    const Control control;
    CHECK(!control.cancelled() && !control.out_of_time() && !control.stop_requested());
    CHECK(!Control(std::numeric_limits<double>::infinity()).stop_requested());
    CHECK(!Control(1e6).stop_requested());
}

TEST(cancel_and_deadline_both_stop) {
    Control cancelled;
    cancelled.cancel();
    CHECK(cancelled.cancelled() && cancelled.stop_requested() && !cancelled.out_of_time());
    const Control late(0.0);
    CHECK(late.out_of_time() && late.stop_requested() && !late.cancelled());
}

TEST(progress_is_what_was_reported) {
    Control control;
    CHECK(std::isinf(control.progress().violation));
    control.report({.done = 1, .total = 3, .iterations = 17, .violation = 0.5});
    const Progress p = control.progress();
    CHECK(p.done == 1 && p.total == 3 && p.iterations == 17 && p.violation == 0.5);
}

TEST(watched_work_runs_off_the_calling_thread) {
    Control control;
    std::thread::id worker;
    run_watched([&] { worker = std::this_thread::get_id(); }, control, [] { return true; });
    CHECK(worker != std::thread::id{} && worker != std::this_thread::get_id());
    CHECK(!control.cancelled());
}

TEST(poll_is_called_on_the_calling_thread_while_work_runs) {
    Control control;
    const auto caller = std::this_thread::get_id();
    std::atomic<int> polls{0};
    run_watched(
        [&] {
            while (polls < 3) std::this_thread::sleep_for(1ms);
        },
        control,
        [&] {
            CHECK(std::this_thread::get_id() == caller);
            ++polls;
            return true;
        },
        1ms);
    CHECK(polls >= 3);
    CHECK(!control.cancelled());
}

TEST(a_poll_that_says_no_cancels_and_is_not_asked_again) {
    Control control;
    int polls = 0;
    run_watched(
        [&] {
            while (!control.stop_requested()) std::this_thread::sleep_for(1ms);
            std::this_thread::sleep_for(10ms);
        },
        control,
        [&] {
            ++polls;
            return false;
        },
        1ms);
    CHECK(control.cancelled());
    CHECK(polls == 1);
}

TEST(exceptions_of_watched_work_come_out) {
    Control control;
    CHECK_THROWS(std::invalid_argument, "no good",
                 run_watched([] { throw std::invalid_argument("no good"); }, control, [] { return true; }));
    CHECK_THROWS(std::runtime_error, "late",
                 run_watched(
                     [] {
                         std::this_thread::sleep_for(5ms);
                         throw std::runtime_error("late");
                     },
                     control, [] { return true; }, 1ms));
}
