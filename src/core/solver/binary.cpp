#include "solver/binary.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>

#include "solver/binary_task.hpp"

namespace polymargin {
namespace {

/// What one thread works with, handed from problem to problem because it is large.
template <class Real>
struct Workspace {
    PrivateRows<Real> rows;
    SmoBlock<Real> block;
};

template <class Real>
class Workspaces {
  public:
    explicit Workspaces(const KernelEngine<Real>& engine) : engine_(engine) {}

    std::unique_ptr<Workspace<Real>> borrow() {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) return std::make_unique<Workspace<Real>>(Workspace<Real>{PrivateRows<Real>(engine_), {}});
        auto workspace = std::move(idle_.back());
        idle_.pop_back();
        return workspace;
    }
    void give_back(std::unique_ptr<Workspace<Real>> workspace) {
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(workspace));
    }
    [[nodiscard]] Index evaluations() const {
        Index sum = 0;
        for (const auto& workspace : idle_) sum += workspace->rows.evaluations();
        return sum;
    }

  private:
    const KernelEngine<Real>& engine_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Workspace<Real>>> idle_;
};

/// Whether every problem finds the kernel within its segments in the store, and has at most two of them, whose values
/// with each other it can compute alone: then it needs nothing of the others.
template <class Real>
bool independent(std::span<const std::vector<Range>> segments, const GramStore<Real>& store) {
    return store.whole() || std::ranges::all_of(segments, [&](const std::vector<Range>& own) {
               return own.size() <= 2 && std::ranges::all_of(own, [&](Range s) { return store.has_square(s); });
           });
}

/// What there is to solve: the problems or, with paths of costs, every problem for each path.
class Jobs {
  public:
    Jobs(std::span<const BinaryProblem> problems, std::span<const std::vector<Range>> segments,
         std::span<const CostPath> paths)
        : problems_(problems),
          segments_(segments),
          paths_(paths),
          stages_(paths.empty() ? 1 : std::ssize(paths.front().cost_bounds)),
          results_(stages_ * size()) {
        for (const CostPath& path : paths) {
            if (std::ssize(path.cost_bounds) != stages_) throw std::invalid_argument("all paths need the same costs");
        }
    }

    [[nodiscard]] Index size() const { return std::ssize(problems_) * std::max<Index>(1, std::ssize(paths_)); }
    [[nodiscard]] std::span<const BinaryProblem> problems() const { return problems_; }
    [[nodiscard]] const BinaryProblem& problem(Index job) const { return problems_[job % std::ssize(problems_)]; }
    [[nodiscard]] std::span<const Range> segments(Index job) const { return segments_[job % std::ssize(segments_)]; }
    [[nodiscard]] const CostPath* path(Index job) const {
        return paths_.empty() ? nullptr : &paths_[job / std::ssize(problems_)];
    }
    /// Put the results of a job to their places; the violation of the last one.
    double keep(std::vector<BinaryResult> found, Index job) {
        const Index problems = std::ssize(problems_), first = job / problems * stages_ * problems + job % problems;
        double violation = 0.0;
        for (std::size_t stage = 0; stage < found.size(); ++stage) {
            violation = found[stage].violation;
            results_[first + static_cast<Index>(stage) * problems] = std::move(found[stage]);
        }
        return violation;
    }
    std::vector<BinaryResult> take_results() { return std::move(results_); }

  private:
    std::span<const BinaryProblem> problems_;
    std::span<const std::vector<Range>> segments_;
    std::span<const CostPath> paths_;
    Index stages_;
    std::vector<BinaryResult> results_;
};

/// How many problems advance together and how large their working sets are, so that the rows of one round fit the
/// store.
struct Plan {
    Index in_flight;
    Index capacity;
};

template <class Real>
Plan plan(const Jobs& jobs, const BinarySettings& settings, const GramStore<Real>& store) {
    if (settings.working_set < 2) throw std::invalid_argument("a working set has at least two variables");
    Index largest = 0, most_segments = 2;
    for (Index p = 0; p < std::ssize(jobs.problems()); ++p) {
        largest = std::max(largest, jobs.problem(p).size());
        most_segments = std::max<Index>(most_segments, std::ssize(jobs.segments(p)));
    }
    if (store.whole()) return {settings.in_flight, std::min(settings.working_set, largest)};
    const Index rows = store.capacity(largest + most_segments * padded<Real>(1));
    const Index in_flight = std::clamp<Index>(rows / settings.rows_in_flight, 1, settings.in_flight);
    const Index capacity = std::min(settings.working_set, rows / in_flight);
    if (capacity < 2) {
        throw std::invalid_argument("cache_size is too small: this problem needs at least " +
                                    std::to_string(6 * largest * static_cast<Index>(sizeof(Real)) / 1'000'000 + 1) +
                                    " MB");
    }
    return {in_flight, std::min(capacity, largest)};
}

/// One problem from start to end, by the thread that calls.
template <class Real>
void solve_alone(BinaryTask<Real>& task, PrivateRows<Real>& rows, const Control& control) {
    task.choose();
    while (!task.finished()) {
        if (control.stop_requested()) return task.stop(stop_reason(control));
        if (!task.has_rows()) {
            task.request_rows(
                [&](const Table<Real>& table, std::span<const Index> which) { rows.compute(*table, which); });
        }
        task.advance();
        if (!task.finished()) task.choose();
    }
}

/// A point to begin with for each problem, or none.
template <class Real>
std::vector<SharedPoint> begin_together(const Jobs& jobs, std::span<const double> cost_bounds, GramStore<Real>& store,
                                        const BinarySettings& settings, Control& control) {
    const Index bytes = shared_start_bytes(jobs.size(), store.size());
    if (!settings.shares_start || bytes > store.unused_bytes()) return {};
    const double gap = settings.gap > 0.0 ? settings.gap : settings.closing.open;
    return shared_start(jobs.problems(), cost_bounds, store, {settings.tolerance, gap}, settings.sharing, control);
}

template <class Real>
std::vector<BinaryResult> solve_apart(Jobs jobs, std::span<const double> cost_bounds, GramStore<Real>& store,
                                      const BinarySettings& settings, Control& control,
                                      std::span<const BinaryStart> starts) {
    const Index total = jobs.size();
    Workspaces<Real> workspaces(store.engine());
    // The largest first: the small ones fill the gaps at the end.
    std::vector<Index> queue(total);
    std::iota(queue.begin(), queue.end(), Index{0});
    std::stable_sort(queue.begin(), queue.end(),
                     [&](Index a, Index b) { return jobs.problem(a).size() > jobs.problem(b).size(); });
    for (Index job = 0; job < std::ssize(jobs.problems()); ++job) {
        for (const Range segment : jobs.segments(job)) static_cast<void>(store.shared(segment));  // not by many threads
    }
    std::vector<SharedPoint> points = begin_together(jobs, cost_bounds, store, settings, control);
    std::atomic<Index> next = 0, done = 0, iterations = 0;
    const auto solve_one = [&](Index job) {
        const BinaryProblem& problem = jobs.problem(job);
        const auto segments = jobs.segments(job);
        auto workspace = workspaces.borrow();
        const Index capacity = std::min(settings.working_set, problem.size());
        BinaryTask<Real> task(problem, segments, cost_bounds, jobs.path(job), settings, capacity,
                              std::move(workspace->block), control);
        if (segments.size() > 1 && !store.whole()) workspace->rows.open(segments[0], segments[1]);
        task.open_tables([&](Range a, Range b) {
            if (a == b) return store.shared(a);
            return store.whole() ? store.open(a, b) : workspace->rows.table(a);
        });
        if (!starts.empty()) task.start_from(starts[job]);
        task.start_evenly();
        if (!points.empty() && !points[job].state.beta.empty()) {
            task.begin_at(std::move(points[job].state), points[job].products);
        }
        solve_alone(task, workspace->rows, control);
        iterations += task.iterations();
        const double violation = jobs.keep(task.take_results(), job);
        workspace->block = task.take_block();
        workspaces.give_back(std::move(workspace));
        control.report({.done = ++done, .total = total, .iterations = iterations, .violation = violation});
    };
    store.pool().for_each(std::min(total, settings.most_apart), [&](Index) {
        for (Index turn; (turn = next++) < total;) solve_one(queue[turn]);
    });
    store.count_evaluations(workspaces.evaluations());
    return jobs.take_results();
}

/// Some problems at a time, which advance a round after the other on the rows that the store computes for all of them.
template <class Real>
class SideBySide {
  public:
    SideBySide(Jobs jobs, std::span<const double> cost_bounds, GramStore<Real>& store, const BinarySettings& settings,
               Control& control, std::span<const BinaryStart> starts)
        : jobs_(std::move(jobs)),
          cost_bounds_(cost_bounds),
          store_(store),
          settings_(settings),
          control_(control),
          starts_(starts),
          plan_(plan(jobs_, settings, store)) {}

    std::vector<BinaryResult> run() {
        while (done_ < jobs_.size()) {
            while (next_ < jobs_.size() && std::ssize(active_) < plan_.in_flight) open_next();
            // The largest first: when threads share few problems, the small ones fill the gaps at the end.
            std::stable_sort(active_.begin(), active_.end(), [&](const Active& a, const Active& b) {
                return jobs_.problem(a.job).size() > jobs_.problem(b.job).size();
            });
            advance();
            close_finished();
        }
        return jobs_.take_results();
    }

  private:
    struct Active {
        Index job;
        std::unique_ptr<BinaryTask<Real>> task;
    };

    void open_next() {
        SmoBlock<Real> block;
        if (!spare_blocks_.empty()) {
            block = std::move(spare_blocks_.back());
            spare_blocks_.pop_back();
        }
        auto task = std::make_unique<BinaryTask<Real>>(jobs_.problem(next_), jobs_.segments(next_), cost_bounds_,
                                                       jobs_.path(next_), settings_, plan_.capacity, std::move(block),
                                                       control_);
        task->open_tables([&](Range a, Range b) { return a == b ? store_.shared(a) : store_.open(a, b); });
        if (!starts_.empty()) task->start_from(starts_[next_]);
        task->choose();
        active_.push_back({next_++, std::move(task)});
    }

    template <class Work>
    void for_unfinished(Work&& work) {
        store_.pool().for_each(std::ssize(active_), [&](Index i) {
            if (!active_[i].task->finished()) work(*active_[i].task);
        });
    }

    /// Compute the rows that are asked for, and go on.
    void advance() {
        for (auto& [job, task] : active_) {
            if (task->finished()) continue;
            task->request_rows(
                [&](const Table<Real>& table, std::span<const Index> rows) { store_.request(table, rows); });
        }
        if (!store_.fulfil()) {
            return for_unfinished([&](BinaryTask<Real>& task) { task.stop(stop_reason(control_)); });
        }
        // A problem goes on alone as long as the rows that it wants are there.
        for_unfinished([&](BinaryTask<Real>& task) {
            do {
                task.advance();
                if (!task.finished()) task.choose();
            } while (!task.finished() && task.has_rows() && !control_.stop_requested());
        });
    }

    void close_finished() {
        Progress progress{.done = done_, .total = jobs_.size(), .iterations = past_iterations_, .violation = 0.0};
        for (auto& [job, task] : active_) {
            progress.iterations += task->iterations();
            progress.violation = std::max(progress.violation, task->violation_size());
            if (!task->finished()) continue;
            task->close_tables(store_);
            past_iterations_ += task->iterations();
            jobs_.keep(task->take_results(), job);
            spare_blocks_.push_back(task->take_block());
            task.reset();
            ++done_;
        }
        std::erase_if(active_, [](const Active& entry) { return entry.task == nullptr; });
        progress.done = done_;
        control_.report(progress);
    }

    Jobs jobs_;
    std::span<const double> cost_bounds_;
    GramStore<Real>& store_;
    const BinarySettings& settings_;
    Control& control_;
    std::span<const BinaryStart> starts_;
    Plan plan_;
    std::vector<Active> active_;
    std::vector<SmoBlock<Real>> spare_blocks_;  // large, so they go from problem to problem
    Index next_ = 0, done_ = 0, past_iterations_ = 0;
};

}  // namespace

template <class Real>
std::vector<BinaryResult> solve_binary(std::span<const BinaryProblem> problems, std::span<const double> cost_bounds,
                                       GramStore<Real>& store, const BinarySettings& requested, Control& control,
                                       std::span<const BinaryStart> starts) {
    BinarySettings settings = requested;
    if (!store.whole()) settings.polish = settings.finish = nullptr;  // the rows of all free variables may be missing
    const auto segments = segments_of(problems, store.size());
    Jobs jobs(problems, segments, settings.paths);
    if (independent<Real>(segments, store)) {
        return solve_apart<Real>(std::move(jobs), cost_bounds, store, settings, control, starts);
    }
    return SideBySide<Real>(std::move(jobs), cost_bounds, store, settings, control, starts).run();
}

template std::vector<BinaryResult> solve_binary<float>(std::span<const BinaryProblem>, std::span<const double>,
                                                       GramStore<float>&, const BinarySettings&, Control&,
                                                       std::span<const BinaryStart>);
template std::vector<BinaryResult> solve_binary<double>(std::span<const BinaryProblem>, std::span<const double>,
                                                        GramStore<double>&, const BinarySettings&, Control&,
                                                        std::span<const BinaryStart>);

}  // namespace polymargin
