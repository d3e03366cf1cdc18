#include "solver/binary.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "solver/binary_task.hpp"

namespace polymargin {
namespace {

/// How many problems advance together and how large their working sets are, so that the rows of one round fit the
/// store.
struct Plan {
    Index in_flight;
    Index capacity;
};

template <class Real>
Plan plan(std::span<const BinaryProblem> problems, const BinarySettings& settings, const GramStore<Real>& store) {
    if (settings.working_set < 2) throw std::invalid_argument("a working set has at least two variables");
    Index largest = 0;
    for (const BinaryProblem& p : problems) largest = std::max(largest, p.size());
    if (store.whole()) return {settings.in_flight, std::min(settings.working_set, largest)};
    const Index rows = store.capacity(largest + 2 * padded<Real>(1));
    constexpr Index comfortable = 128;
    const Index in_flight = std::clamp<Index>(rows / comfortable, 1, settings.in_flight);
    const Index capacity = std::min(settings.working_set, rows / in_flight);
    if (capacity < 2) {
        throw std::invalid_argument("cache_size is too small: this problem needs at least " +
                                    std::to_string(6 * largest * static_cast<Index>(sizeof(Real)) / 1'000'000 + 1) +
                                    " MB");
    }
    return {in_flight, std::min(capacity, largest)};
}

}  // namespace

template <class Real>
std::vector<BinaryResult> solve_binary(std::span<const BinaryProblem> problems, std::span<const double> upper,
                                       GramStore<Real>& store, const BinarySettings& requested, Control& control,
                                       std::span<const BinaryStart> starts) {
    BinarySettings settings = requested;
    if (!store.whole()) settings.polish = nullptr;  // the rows of all free variables may not be there
    const auto total = static_cast<Index>(problems.size());
    const auto [in_flight, capacity] = plan(problems, settings, store);
    std::vector<BinaryResult> results(problems.size());
    SharedTables<Real> shared(store);
    struct Active {
        Index index;
        std::unique_ptr<BinaryTask<Real>> task;
    };
    std::vector<Active> active;
    std::vector<SmoBlock<Real>> spare_blocks;  // large, so they go from problem to problem
    Index next = 0, done = 0, past_iterations = 0;
    const auto for_unfinished = [&](auto&& work) {
        store.pool().for_each(static_cast<Index>(active.size()), [&](Index i) {
            if (!active[i].task->finished()) work(*active[i].task);
        });
    };
    while (done < total) {
        while (next < total && static_cast<Index>(active.size()) < in_flight) {
            SmoBlock<Real> block;
            if (!spare_blocks.empty()) {
                block = std::move(spare_blocks.back());
                spare_blocks.pop_back();
            }
            auto task = std::make_unique<BinaryTask<Real>>(problems[next], upper, settings, capacity, std::move(block));
            task->open_tables(store, shared);
            if (!starts.empty()) task->start_from(starts[next]);
            task->choose();
            active.push_back({next++, std::move(task)});
        }
        // The largest first: when threads share few problems, the small ones fill the gaps at the end.
        std::stable_sort(active.begin(), active.end(), [&](const Active& a, const Active& b) {
            return problems[a.index].size() > problems[b.index].size();
        });
        for (auto& [index, task] : active) {
            if (!task->finished()) task->request_rows(store);
        }
        if (store.fulfil()) {
            // A problem goes on alone as long as the rows that it wants are there.
            for_unfinished([&](BinaryTask<Real>& task) {
                do {
                    task.advance();
                    if (!task.finished()) task.choose();
                } while (!task.finished() && task.has_rows() && !control.stop_requested());
            });
        } else {
            const Status reason = control.cancelled() ? Status::stopped : Status::time_limit;
            for_unfinished([&](BinaryTask<Real>& task) { task.finish(reason); });
        }
        Progress progress{.done = done, .total = total, .iterations = past_iterations, .violation = 0.0};
        for (auto& [index, task] : active) {
            progress.iterations += task->iterations();
            progress.violation = std::max(progress.violation, task->violation_size());
            if (!task->finished()) continue;
            task->close_tables(store);
            past_iterations += task->iterations();
            results[index] = task->take_result();
            spare_blocks.push_back(task->take_block());
            task.reset();
            ++done;
        }
        std::erase_if(active, [](const Active& entry) { return entry.task == nullptr; });
        progress.done = done;
        control.report(progress);
    }
    return results;
}

template std::vector<BinaryResult> solve_binary<float>(std::span<const BinaryProblem>, std::span<const double>,
                                                       GramStore<float>&, const BinarySettings&, Control&,
                                                       std::span<const BinaryStart>);
template std::vector<BinaryResult> solve_binary<double>(std::span<const BinaryProblem>, std::span<const double>,
                                                        GramStore<double>&, const BinarySettings&, Control&,
                                                        std::span<const BinaryStart>);

}  // namespace polymargin
