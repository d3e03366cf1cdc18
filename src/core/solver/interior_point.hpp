#pragma once

#include <limits>
#include <span>
#include <vector>

#include "solver/barrier_rows.hpp"
#include "solver/coupled_inverse.hpp"
#include "solver/kernel_product.hpp"
#include "solver/sampled_inverse.hpp"
#include "solver/status.hpp"

namespace polymargin {

/// Measured on overlapping classes (1,000 examples in 10 classes, 3,000 in 20) with C from 1 to 10^4.
struct InteriorPointSettings {
    double start = 5.0;      ///< mu at the beginning, in units of C times the margin
    double boundary = 0.98;  ///< how much of the way to the boundary a step takes
    Index max_steps = 100;
    Index patience = 10;  ///< steps in a row that gain nothing
    /// Where so many steps in a row are shorter than this, rounding lets them come no nearer. (Wide kernels: 18 of 52
    /// steps went on so.)
    double shortest = 1e-3;
    Index most_short = 2;
    /// How much larger the gap of the rows may be, in which what is nearly at a limit is there.
    double rounded = 10.0;
    /// What is left of a linear system, in the norm of K, in units of the root of the complementarity; so many times as
    /// much in a predictor. (With 0.05 in both, products took twice the time.)
    double residual = 0.3, predictor = 3.0;
    Index max_products = 60;  ///< for a linear system
    /// Rows of a class that the preconditioner has at first, in units of n^(2/3), which is where a factorisation and a
    /// few products take the same; and how that changes when what its use takes is less, or more, than so many times
    /// what it took.
    double sample = 3.0, more = 1.35, fewer = 0.75, least_share = 0.7, most_share = 3.0;
    /// A factorisation of all that matters is made where it takes no more than so many products, or than the last step
    /// without it.
    double cheap = 40.0;
    Index most_sample = 1536;   ///< a factorisation that takes much longer would keep a stop waiting
    double factor_worth = 2.0;  ///< of an operation of a factorisation, in those of a product
    /// The same of absolute margins, whose conjugate gradients take up to three times as many products in each step as
    /// in the last one.
    double centred_worth = 0.5;
    double negligible = 0.3;    ///< diagonal entries that the preconditioner leaves out, in units of 1 / K_ii
    double free_weight = 10.0;  ///< of a free bias while it is sought, in units of a kernel value
};

/// What an interior-point method starts from: a joint problem whose rows have a box and a simplex for limits.
struct InteriorPointProblem {
    std::span<const Index> labels;
    std::vector<RowLimits> limits;
    Plane slopes;      ///< what offsets add to the gradient of `a = |B|`, as `BarrierRows` has it: `o_y - o_m`,
    bool absolute;     ///< or, where margins are absolute, `o_y` and `-o_m`
    bool free_bias;    ///< then the columns sum to zero
    double unit;       ///< a kernel value
    Index most_bytes;  ///< of the preconditioner
};

struct InteriorPointResult {
    Status status = Status::converged;
    double primal = std::numeric_limits<double>::infinity(), dual = -primal;  ///< the best of each
    double gap = primal;                                                      ///< relative
    Index steps = 0, products = 0;  ///< steps; products of the kernel with all classes
    std::vector<double> bias;       ///< of each class, if it is free
};

/// A primal-dual interior-point method for
///
///     min_B  1/2 tr(B'KB) + sum_im o_im B_im   subject to   B_i in F_i
///
/// with the rows of `BarrierRows`. It takes much the same number of steps for every kernel and every C, where a
/// decomposition may crawl, and each step costs far more.
///
/// The primal's `w = phi'V` and its scores `S = K V` are kept apart from the dual's B: their difference `R = B - V` is
/// what is left of one of the conditions, and a Newton step takes it out as far as it is gone,
///
///     (I + M K) dV = R + P Theta^-1 c,    dS = K dV,
///
/// so that whatever rounding and an inexact solution leave is in R, measured by `tr(R'KR)`, and both objectives are
/// those of feasible points. The system is solved by conjugate gradients in the inner product `tr(X'KY)`, in which its
/// matrix is self-adjoint; products with K are kept with every vector. `SampledInverse` preconditions as long as most
/// coefficients are free, vectors being centred over the classes, as the rows of the solution are; then
/// `CoupledInverse`. A step is predictor and corrector
/// (Mehrotra, SIAM Journal on Optimization 2, 1992), the corrector's system started from the predictor's solution.
///
/// A free bias is found by proximal steps, one with each step of the method: the kernel has a large `weight` added, and
/// the scores a shift, to which the bias of the last step goes.
template <class Real>
class InteriorPoint {
  public:
    InteriorPoint(InteriorPointProblem problem, const KernelProduct<Real>& kernel, ThreadPool& pool, const Blas& blas,
                  Control& control, const InteriorPointSettings& settings = {});

    /// Go on, from where the last run ended, until the relative gap is at most `gap`.
    InteriorPointResult run(double gap);
    /// The rows of coefficients of the best dual point, what is nearly at a limit being there.
    [[nodiscard]] const Plane& rows() const { return best_rows_; }

    /// Memory for so many examples and classes, beside that of the preconditioner.
    [[nodiscard]] static Index bytes(Index n, Index classes);
    /// Of a preconditioner that has so many rows of a class, and of the one that takes its place.
    [[nodiscard]] static Index sample_bytes(Index rows, Index classes) {
        return 2 * rows * rows * classes * static_cast<Index>(sizeof(double));
    }

  private:
    struct Objectives {
        double primal, dual;
    };

    /// The largest C times the margin: the unit of mu.
    [[nodiscard]] static double largest_product(const InteriorPointProblem& problem);
    [[nodiscard]] Objectives measure();
    bool step();
    /// A step to mu from here, the scores of which change by `kx_`.
    [[nodiscard]] BarrierRows::Step step_to(double mu, bool correct) const;
    void set_residual(double mu, bool correct);
    /// Conjugate gradients until `sqrt(tr(r'Kr))` is so small; the number of their steps.
    Index solve(double accuracy);
    /// `z` from `r`, and their products with K.
    void precondition();
    void go(double length);
    [[nodiscard]] bool rows_are_near(double gap);
    /// Make a preconditioner for the present point; false if that is not possible.
    [[nodiscard]] bool factor();
    [[nodiscard]] bool factor_sample();
    [[nodiscard]] bool coupled_pays() const;
    void choose_sample(Index iterations);
    /// Operations of a product of the kernel with all classes.
    [[nodiscard]] double product_cost() const { return 2.0 * static_cast<double>(n_) * static_cast<double>(n_ * k_); }
    InteriorPointResult ended(Status status);

    void multiply(const Plane& x, Plane& kx);
    [[nodiscard]] double dot(const Plane& x, const Plane& y) const;
    void centre_classes(Plane& x) const;
    /// Call `part(m, begin, end)` for all classes of all strips of examples.
    template <class Part>
    void for_strips(const Part& part) const;

    const KernelProduct<Real>& kernel_;
    ThreadPool& pool_;
    Control& control_;
    InteriorPointSettings settings_;
    Index n_, k_;
    bool free_bias_, absolute_;
    double negligible_, mu_;
    Index short_steps_ = 0;  // in a row
    BarrierRows barrier_;
    SampledInverse<Real> inverse_;
    CoupledInverse<Real> coupled_;
    Index most_bytes_;
    bool complete_ = false;      // whether the coupled one is used
    double sampled_cost_ = 0.0;  // of the last step without it
    Index most_sample_, sample_;
    Plane v_, s_, b_, kb_;                              // V, S = K V + shift, B = P a, K B
    Plane x_, kx_, r_, kr_, p_, kp_, z_, kz_, y_, ky_;  // of the linear system, and their products with K
    Plane diagonal_, weights_, best_rows_;
    std::vector<double> shift_, extra_;  // of the scores, and what a full step adds to it
    InteriorPointResult result_;
};

}  // namespace polymargin
