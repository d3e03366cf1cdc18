#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "problem/multiclass.hpp"
#include "support/buffer.hpp"
#include "support/thread_pool.hpp"

namespace polymargin {

/// Numbers for each class and example, a class after the other.
class Plane {
  public:
    Plane(Index classes, Index n) : classes_(classes), stride_(padded<double>(n)), values_(classes * stride_) {
        std::fill_n(values_.data(), values_.size(), 0.0);
    }
    Plane(const Plane& other) : classes_(other.classes_), stride_(other.stride_), values_(other.values_.size()) {
        std::copy_n(other.values_.data(), values_.size(), values_.data());
    }
    Plane(Plane&&) = default;
    [[nodiscard]] ClassMajor<double> view() { return {values_.data(), classes_, stride_}; }
    [[nodiscard]] ClassMajor<const double> view() const { return {values_.data(), classes_, stride_}; }
    [[nodiscard]] double& at(Index m, Index i) { return values_.data()[m * stride_ + i]; }
    [[nodiscard]] double at(Index m, Index i) const { return values_.data()[m * stride_ + i]; }
    [[nodiscard]] Index classes() const { return classes_; }

  private:
    Index classes_, stride_;
    Buffer<double> values_;
};

/// Examples that a task takes, in all loops over them: sums are formed strip by strip, in this order, whoever has
/// formed which.
inline constexpr Index kExampleStrip = 256;

/// Call `part(begin, end)` for all strips of n examples.
template <class Part>
void for_example_strips(ThreadPool& pool, Index n, const Part& part) {
    pool.for_each((n + kExampleStrip - 1) / kExampleStrip,
                  [&](Index s) { part(s * kExampleStrip, std::min((s + 1) * kExampleStrip, n)); });
}

/// The same for parts that return a number; the sum.
template <class Part>
[[nodiscard]] double sum_of_strips(ThreadPool& pool, Index n, const Part& part) {
    std::vector<double> sums((n + kExampleStrip - 1) / kExampleStrip);
    for_example_strips(pool, n, [&](Index begin, Index end) { sums[begin / kExampleStrip] = part(begin, end); });
    double sum = 0.0;
    for (const double v : sums) sum += v;
    return sum;
}

/// The interior of the feasible rows of a joint problem, and what Newton's method asks of it, example by example.
///
/// A row is feasible if `a_m = -B_m` is in `[0, L]` for all wrong classes and `sum a <= A` (`RowLimits`). With the
/// gradient `h = P'g` of a, which is `g_y - g_m`, and multipliers z, w of the bounds of each and u of that of the sum,
/// a row is optimal if
///
///     h - z + w + u = 0,   a z = 0,   (L - a) w = 0,   (A - sum a) u = 0,
///
/// all factors being at least 0; on the central path the products are mu instead of 0. A Newton step to `mu` gives
///
///     Theta da = c - dh,   Theta = diag(z / a + w / (L - a)) + u / (A - sum a) 1 1',
///     c = mu / a - mu / (L - a) - mu / (A - sum a) - h
///
/// (less the products of the last step's parts, in a corrector), and with `B = P a` for the row of coefficients,
/// `dB = P Theta^-1 (c - P'dS)`: the matrix `M = P Theta^-1 P'` is all that couples an example with the others' steps.
///
/// With absolute margins the own class has a multiplier too, in `[0, L_y]`, and P multiplies by sigma (1 for the own
/// class, -1 for the others) and takes the mean of the row away: h is `sigma_m g_m`, for g has no mean.
class BarrierRows {
  public:
    /// `slopes` are what the offsets add to h. Rows without room, of which a limit is 0, stay at 0.
    BarrierRows(std::span<const Index> labels, std::vector<RowLimits> limits, Plane slopes, bool absolute,
                ThreadPool& pool);

    [[nodiscard]] Index size() const { return std::ssize(labels_); }
    [[nodiscard]] Index classes() const { return classes_; }
    /// Products that are mu on the central path.
    [[nodiscard]] double products() const { return products_; }

    /// A Newton step: from these scores, which change, to mu.
    struct Step {
        ClassMajor<const double> scores, change;
        std::span<const double> shift;
        double mu;
        bool correct;
    };

    /// Put every row where it is on the central path with these scores.
    void centre(const Plane& scores, double mu);
    /// Their sum, mu times their number on the central path.
    [[nodiscard]] double complementarity() const;
    /// Theta at the present point; for each class the diagonal of M, and the weights D with which
    /// `M = D - D 1 1'D / 1'D 1`: those of the wrong classes are 1 / (z / a + w / (L - a)), that of the example's own
    /// is (A - sum a) / u, or infinite without such a limit. With absolute margins they are the first of all classes,
    /// but where sums have limits 0 for the own one, which seldom counts then: its sign in them is another.
    void linearise(Plane& diagonal, Plane& weights);
    /// (A - sum a) / u of all examples, infinite where nothing can move; empty without limits of sums.
    [[nodiscard]] std::vector<double> spare() const;
    /// `out = P Theta^-1 (c - P'change)` for a step to mu: what coefficients do when the scores change by `change` and
    /// `shift`. With `correct`, c is less the products of the parts of the last direction.
    void respond(const Step& step, ClassMajor<double> out) const;
    /// `out = M x`
    void apply(ClassMajor<const double> x, ClassMajor<double> out) const;
    /// Make that the direction.
    void set_direction(const Step& step);
    /// How far the direction can be gone until some number is 0; at most 1.
    [[nodiscard]] double longest_step() const;
    [[nodiscard]] double complementarity_after(double step) const;
    void go(double step);
    /// `out = P a`
    void coefficients(Plane& out) const;
    /// The rows, what is nearer to a limit than its multiplier is to 0 being put there. Those of absolute margins have
    /// their means.
    void snapped_coefficients(Plane& out) const;
    /// `sum o_m B_m`, the linear part of the objective, of the present point and of such rows.
    [[nodiscard]] double linear() const;
    [[nodiscard]] double linear(const Plane& rows) const;
    /// The loss of all examples at these scores (plus `shift`): what the feasible rows are the conjugate of.
    [[nodiscard]] double loss(ClassMajor<const double> scores, std::span<const double> shift) const;

  private:
    [[nodiscard]] double limit(Index m, Index i) const { return m == labels_[i] ? limits_[i].own : limits_[i].largest; }
    [[nodiscard]] bool on(Index m, Index i) const { return open_[i] && limit(m, i) > 0.0; }
    /// What margin m of example i is of `x(m)`: an entry of P'x.
    template <class Values>
    [[nodiscard]] double margin(Values&& x, Index m, Index i) const {
        const Index y = labels_[i];
        if (absolute_) return m == y ? x(y) : -x(m);
        return x(y) - x(m);
    }
    [[nodiscard]] double gradient(ClassMajor<const double> scores, std::span<const double> shift, Index m,
                                  Index i) const {
        const double moved = shift.empty() ? 0.0 : margin([&](Index c) { return shift[c]; }, m, i);
        return margin([&](Index c) { return scores.at(c, i); }, m, i) + moved + slopes_.at(m, i);
    }
    void centre_row(Index i, const Plane& scores, double mu);
    /// da of a row, and its sum.
    double response(Index i, const Step& step, std::span<double> da) const;
    /// Row i of P a.
    void put_row(Index i, std::span<const double> a, double sum, ClassMajor<double> out) const;
    void put_diagonal(Index i, double sum, Plane& diagonal) const;
    void apply_relative(Index begin, Index end, ClassMajor<const double> x, ClassMajor<double> out) const;
    void apply_absolute(Index begin, Index end, ClassMajor<const double> x, ClassMajor<double> out) const;
    void snap_row(Index i, Plane& out) const;
    [[nodiscard]] double row_loss(Index i, std::vector<double>& rewards) const;

    std::span<const Index> labels_;
    std::vector<RowLimits> limits_;
    Plane slopes_;
    bool absolute_;
    ThreadPool& pool_;
    Index classes_;
    std::vector<char> open_;  // rows that have room
    bool each_, together_;    // which limits there are
    double products_ = 0.0;
    double margin_ = 0.0;      // the largest
    Plane a_, z_, above_, w_;  // above: L - a
    std::vector<double> slack_, u_;
    Plane inverse_;                // 1 / (z / a + w / (L - a)), 0 where there is no variable
    std::vector<double> damping_;  // of the sum: A - sum a over u, plus the sum of the row of inverse_
    Plane da_, dz_, dw_;
    std::vector<double> dsum_, du_;
};

}  // namespace polymargin
