#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "problem/multiclass.hpp"
#include "support/buffer.hpp"

namespace polymargin {

/// The dense problem of some examples of an all-together machine: their kernel, gradients and rows of coefficients.
///
/// An example can be improved when some class may give to another whose gradient is lower. With `highest` the largest
/// gradient among its classes that may fall and `lowest` the smallest among those that may grow, `highest - lowest`
/// says how much is to be gained. Of each example a bound of it is kept from above: a step changes few classes, so only
/// their gradients are looked at, and the largest bound is made exact when it is its example's turn.
template <class Real>
class ExampleBlock {
  public:
    ExampleBlock(Index capacity, Index classes);

    [[nodiscard]] Real* kernel(Index s) { return kernel_.data() + s * stride_; }
    [[nodiscard]] const Real* kernel(Index s) const { return kernel_.data() + s * stride_; }
    /// The coefficients of the example in slot s.
    [[nodiscard]] std::span<double> row(Index s) {
        return {rows_.data() + s * classes_, static_cast<std::size_t>(classes_)};
    }
    void set_size(Index size);
    /// Fill a slot: the example, its gradients by `gradient(m)`, its row already being there.
    template <MulticlassLoss Loss, class Gradient>
    void load(const Loss& loss, Index s, const Example& example, Gradient&& gradient) {
        examples_[s] = example;
        for (Index m = 0; m < classes_; ++m) gradient_.data()[m * stride_ + s] = static_cast<Real>(gradient(m));
        set_limits(loss, s);
    }

    /// Exact steps on one example after the other, the one that promises most first, until none promises more than
    /// `tolerance` or `limit` steps were taken. Their number, or -1 if a step has no end.
    template <MulticlassLoss Loss>
    Index solve(const Loss& loss, double tolerance, Index limit) {
        measure_all();
        std::vector<double> gradient(classes_), row(classes_);
        for (Index steps = 0; steps < limit; ++steps) {
            const Index s = next(tolerance);
            if (s < 0) return steps;
            const auto before = this->row(s);
            std::copy(before.begin(), before.end(), row.begin());
            for (Index m = 0; m < classes_; ++m) gradient[m] = static_cast<double>(gradient_.data()[m * stride_ + s]);
            if (!loss.step(gradient, static_cast<double>(kernel(s)[s]), examples_[s], row)) return -1;
            for (Index m = 0; m < classes_; ++m) row[m] -= std::exchange(before[m], row[m]);
            set_limits(loss, s);
            for (Index m = 0; m < classes_; ++m) {
                if (row[m] != 0.0) add(s, m, static_cast<Real>(row[m]));
            }
            measure(s);
            settle(s);
        }
        return limit;
    }

  private:
    static constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
    /// A bound that is at most so much too large is taken for exact.
    static constexpr Real kClose = Real(0.9);

    template <MulticlassLoss Loss>
    void set_limits(const Loss& loss, Index s) {
        const Example& example = examples_[s];
        for (Index m = 0; m < classes_; ++m) {
            const bool own = m == example.label;
            const double b = rows_[s * classes_ + m];
            grow_.data()[m * stride_ + s] = loss.may_grow(b, own, example.bound) ? Real(0) : kInfinity;
            fall_.data()[m * stride_ + s] = loss.may_fall(b, own, example.bound) ? Real(0) : -kInfinity;
        }
    }
    /// The size, padded to whole vectors: what the passes go over.
    [[nodiscard]] Index width() const;
    /// The example to step next, -1 if none promises more than `tolerance`.
    [[nodiscard]] Index next(double tolerance);
    void measure_all();
    /// Make the bound of one example exact.
    void measure(Index s);
    /// After its step an example is optimal, whatever rounding says: its turn comes when others have moved.
    void settle(Index s) { lowest_.data()[s] = std::max(lowest_.data()[s], highest_.data()[s]); }
    void add(Index s, Index m, Real by);

    Index classes_;
    Index stride_;
    Index size_ = 0;
    Buffer<Real> kernel_;
    Buffer<Real> gradient_, grow_, fall_;  // class-major; 0 where the coefficient may grow (fall), else +inf (-inf)
    Buffer<Real> highest_, lowest_;
    std::vector<double> rows_;  // example-major
    std::vector<Example> examples_;
};

}  // namespace polymargin
