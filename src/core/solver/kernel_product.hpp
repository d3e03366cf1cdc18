#pragma once

#include <span>
#include <vector>

#include "problem/multiclass.hpp"
#include "support/control.hpp"
#include "support/thread_pool.hpp"

namespace polymargin {

/// Products with `K + weight 1 1'`, of which all rows are at hand. They are formed in double, whatever the rows are
/// stored in: stored values are exact enough, sums of them in single precision are not.
template <class Real>
class KernelProduct {
  public:
    KernelProduct(std::vector<const Real*> rows, double weight, ThreadPool& pool, const Control& control)
        : rows_(std::move(rows)), weight_(weight), pool_(pool), control_(control) {}

    [[nodiscard]] Index size() const { return std::ssize(rows_); }
    [[nodiscard]] double weight() const { return weight_; }
    [[nodiscard]] double value(Index i, Index j) const { return static_cast<double>(rows_[i][j]) + weight_; }
    [[nodiscard]] const Real* row(Index i) const { return rows_[i]; }

    /// `out_m = (K + weight) x_m` for every class, by all threads: 2 n^2 k operations. After a stop was requested `out`
    /// is incomplete.
    void apply(ClassMajor<const double> x, ClassMajor<double> out) const;
    /// The same for an x that is zero but for these examples, with as many fewer operations.
    void apply(ClassMajor<const double> x, std::span<const Index> which, ClassMajor<double> out) const;

  private:
    std::vector<const Real*> rows_;
    double weight_;
    ThreadPool& pool_;
    const Control& control_;
};

}  // namespace polymargin
