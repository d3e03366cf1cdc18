#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "kernel/data.hpp"
#include "kernel/engine.hpp"
#include "kernel/function.hpp"
#include "kernel/gram.hpp"
#include "kernel/points.hpp"
#include "support/blas.hpp"
#include "support/control.hpp"
#include "support/thread_pool.hpp"

namespace polymargin {

/// What a session may take.
struct Resources {
    Index budget_bytes = 0;  ///< for kernel values and the ordered copy of the data
    int threads = 1;
    bool whole = false;  ///< have the whole matrix first, if it fits or is there: many problems will follow
};

/// What every machine trains on, and what it may take.
struct TrainingData : Resources {
    DataView data;
    KernelSpec kernel;
    std::vector<Index> order;  ///< rows of `data` sorted by class; the engine's numbering
};

/// What kernel values have to be exact enough for.
struct Exactness {
    double largest_cost_bound = 0.0;  ///< no C_i is larger
    double tolerance = 1e-3;          ///< no solver goes on below this violation
    /// Answers will be compared and thrown away. Then rounding may take more of the tolerance, though less than in
    /// LIBSVM, which keeps kernel values in single precision for every C; and small problems need not be exact to the
    /// last digit.
    bool rough = false;

    /// What rounding may do to a gradient.
    [[nodiscard]] double accuracy() const { return (rough ? 2.0 : 0.5) * tolerance; }
    [[nodiscard]] static Exactness of(std::span<const double> cost_bounds, double tolerance) {
        return {
            .largest_cost_bound = cost_bounds.empty() ? 0.0 : *std::max_element(cost_bounds.begin(), cost_bounds.end()),
            .tolerance = tolerance};
    }
    [[nodiscard]] bool covers(const Exactness& other) const {
        return other.largest_cost_bound <= largest_cost_bound && other.tolerance >= tolerance;
    }
};

/// Up to how many examples the whole kernel matrix is computed up front when every problem has all examples: most rows
/// are then needed and symmetry saves half.
inline constexpr Index kWholeLimit = 16 * kSmallProblem;

/// The kernel of one data set: its examples, prepared once, and the values computed so far, which serve every later
/// call. Data, kernel, precision and budget stay; problems, bounds, limits and the one who waits come with each call.
/// One call at a time; a second thread waits.
class KernelSession {
  public:
    KernelSession(TrainingData training, Exactness exactness, const Blas& blas)
        : training_(std::move(training)), exactness_(exactness), blas_(blas) {}

    /// Call `work(store, points)`, which must return something, with the store in the precision that was chosen: small
    /// problems are solved in double, others in float if that is exact enough. The first call reads the data. A call
    /// that was stopped or failed leaves values half computed: the next one begins anew.
    template <class Work>
    auto run(const Control& control, Work&& work) {
        const std::lock_guard lock(mutex_);
        ThreadPool pool(training_.threads);
        Store kept = is_empty(store_) ? make_store(pool, control) : std::exchange(store_, {});
        auto answer = std::visit(
            [&](auto& parts) {
                parts->store.work_with(pool, control);
                return work(parts->store, parts->points);
            },
            kept);
        if (!control.stop_requested()) store_ = std::move(kept);
        return answer;
    }

    /// Throw std::invalid_argument unless bounds and tolerance are what the session was made for.
    void check(std::span<const double> cost_bounds, double tolerance) const;

    [[nodiscard]] const Blas& blas() const { return blas_; }
    [[nodiscard]] const TrainingData& training() const { return training_; }

  private:
    /// Points, engine and store refer to each other, so they stay where they are.
    template <class Real>
    struct Parts {
        Points<Real> points;
        KernelEngine<Real> engine;
        GramStore<Real> store;

        Parts(Points<Real> from, const TrainingData& training, const Blas& blas, ThreadPool& pool,
              const Control& control)
            : points(std::move(from)),
              engine(training.kernel, points, points, blas),
              store(engine, training.budget_bytes - points.owned_bytes(), pool, control) {}
    };
    using Store = std::variant<std::unique_ptr<Parts<float>>, std::unique_ptr<Parts<double>>>;

    [[nodiscard]] static bool is_empty(const Store& store) {
        return std::visit([](const auto& parts) { return parts == nullptr; }, store);
    }
    [[nodiscard]] Store make_store(ThreadPool& pool, const Control& control) const;

    TrainingData training_;
    Exactness exactness_;
    Blas blas_;
    std::mutex mutex_;
    Store store_;  // empty before the first call, and after one that was stopped
};

}  // namespace polymargin
