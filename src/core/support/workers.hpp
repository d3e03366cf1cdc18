#pragma once

#include <algorithm>
#include <functional>

#include "support/control.hpp"
#include "support/thread_pool.hpp"

namespace polymargin {

/// Who does a long pass over examples, and who may end it early: with neither, it is one plain loop.
struct Workers {
    ThreadPool* pool = nullptr;
    const Control* control = nullptr;
    bool thorough = false;  ///< a stop does not end the pass, only that nobody waits for it

    /// Examples in a part, but for the last one.
    static constexpr Index kPart = 1024;

    /// Call `work(part)` for consecutive parts of [0, count) of at most `size`. Parts do not depend on the number of
    /// threads. After a stop request the rest is left undone, unless the workers are thorough.
    void for_parts(Index count, const std::function<void(Range)>& work, Index size = kPart) const {
        const auto task = [&](Index part) {
            if (control != nullptr) {
                control->throw_if_abandoned();
                if (!thorough && control->stop_requested()) return;
            }
            work({part * size, std::min(count, (part + 1) * size)});
        };
        const Index parts = (count + size - 1) / size;
        if (pool != nullptr) return pool->for_each(parts, task);
        for (Index part = 0; part < parts; ++part) task(part);
    }
};

}  // namespace polymargin
