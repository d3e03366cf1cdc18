#include "solver/example_block.hpp"

#include "solver/accumulate.hpp"
#include "support/vectors.hpp"

namespace polymargin {
namespace {

/// gradient += by row + shift, and the bounds that follow from this class.
template <class Real>
struct ClassPass {
    const Real* row;
    const Real* less;  // another row to take from it, or null
    Real by;
    Real shift;
    Real* gradient;
    const Real* grow;
    const Real* fall;
    Real* highest;
    Real* lowest;
    Index count;
};

template <int Bytes, class Real, class Change>
POLYMARGIN_INLINE void run(const ClassPass<Real>& p, const Change& change) {
    for (Index t = 0; t < p.count; t += Vectors<Real, Bytes>::count) {
        const auto g = load<Bytes>(p.gradient + t) + change(t);
        store<Bytes>(p.gradient + t, g);
        const auto top = g + load<Bytes>(p.fall + t), highest = load<Bytes>(p.highest + t);
        store<Bytes>(p.highest + t, top > highest ? top : highest);
        const auto bottom = g + load<Bytes>(p.grow + t), lowest = load<Bytes>(p.lowest + t);
        store<Bytes>(p.lowest + t, bottom < lowest ? bottom : lowest);
    }
}

template <int Bytes, class Real>
POLYMARGIN_INLINE void add_row(const ClassPass<Real>& p) {
    run<Bytes>(p, [&](Index t) POLYMARGIN_INLINED { return p.by * load<Bytes>(p.row + t) + p.shift; });
}

template <int Bytes, class Real>
POLYMARGIN_INLINE void add_rows(const ClassPass<Real>& p) {
    run<Bytes>(p,
               [&](Index t) POLYMARGIN_INLINED { return p.by * (load<Bytes>(p.row + t) - load<Bytes>(p.less + t)); });
}

template <int Bytes, class Real>
POLYMARGIN_INLINE Found<Real> largest_difference(const Real* highest, const Real* lowest, Index width) {
    using V = Vectors<Real, Bytes>;
    typename V::Ints index = V::lanes;
    Best<Real, Bytes> best[kChains];
    for (int c = 0; c < kChains; ++c) best[c] = {typename V::Reals{}, index};
    for (Index t = 0; t < width; t += kChains * V::count) {
        for (int c = 0; c < kChains; ++c) {
            const Index p = t + V::count * c;
            const auto difference =
                load<Bytes>(lowest + p) - load<Bytes>(highest + p);  // negated: the smallest is wanted
            const auto better = difference < best[c].value;
            best[c].value = better ? difference : best[c].value;
            best[c].at = better ? index : best[c].at;
            index += V::count;
        }
    }
    return smallest(best[0], best[1]);
}

/// What examples gain by an exchange with one.
template <class Real>
struct PartnerPass {
    const Real* row;  // of the one
    const Real* diagonal;
    const Real* gaining;  // gradients of the class that gains in the one, and falls in the others
    const Real* fall;
    const Real* losing;
    const Real* grow;
    Real slope;  // of the one
    Real own;    // its kernel with itself
    Real least;  // smallest curvature
    Index count;
};

/// Negated, and times four.
template <int Bytes, class Real>
POLYMARGIN_INLINE Found<Real> largest_gain(const PartnerPass<Real>& p) {
    using V = Vectors<Real, Bytes>;
    typename V::Ints index = V::lanes;
    Best<Real, Bytes> best[kChains];
    for (int c = 0; c < kChains; ++c) best[c] = {typename V::Reals{}, index};
    const typename V::Reals least = typename V::Reals{} + p.least, none{};
    for (Index start = 0; start < p.count; start += kChains * V::count) {
        for (int c = 0; c < kChains; ++c) {
            const Index t = start + V::count * c;
            const auto their = (load<Bytes>(p.gaining + t) + load<Bytes>(p.fall + t)) -
                               (load<Bytes>(p.losing + t) + load<Bytes>(p.grow + t));
            const auto both = their + p.slope;
            const auto slope = both > none ? both : none;
            const auto bend = load<Bytes>(p.diagonal + t) + p.own - 2 * load<Bytes>(p.row + t);
            const auto gain = -(slope * slope) / (bend > least ? bend : least);
            const auto better = gain < best[c].value;
            best[c].value = better ? gain : best[c].value;
            best[c].at = better ? index : best[c].at;
            index += V::count;
        }
    }
    return smallest(best[0], best[1]);
}

}  // namespace

template <class Real>
ExampleBlock<Real>::ExampleBlock(Index capacity, Index classes, const BlockSettings& settings)
    : classes_(classes),
      settings_(settings),
      // One cache line more than needed: rows a power of two apart would share the sets of the cache.
      stride_((capacity + kStep<Real> - 1) / kStep<Real> * kStep<Real> + padded<Real>(1)),
      kernel_(capacity * stride_),
      gradient_(classes * stride_),
      grow_(classes * stride_),
      fall_(classes * stride_),
      highest_(stride_),
      lowest_(stride_),
      diagonal_(stride_),
      change_(classes, 0.0),
      rows_(capacity * classes, 0.0),
      start_(classes * stride_),
      start_rows_(capacity * classes, 0.0),
      examples_(capacity) {}

template <class Real>
Index ExampleBlock<Real>::width() const {
    return (size_ + kStep<Real> - 1) / kStep<Real> * kStep<Real>;
}

template <class Real>
void ExampleBlock<Real>::resize(Index size, double weight) {
    size_ = size;
    weight_ = weight;
    // The padding takes part in the arithmetic: it must be finite, and promise nothing.
    for (Index t = size; t < width(); ++t) {
        for (Index m = 0; m < classes_; ++m) {
            gradient_.data()[m * stride_ + t] = Real(0);
            grow_.data()[m * stride_ + t] = kInfinity;
            fall_.data()[m * stride_ + t] = -kInfinity;
        }
    }
    for (Index s = 0; s < size; ++s) std::fill(kernel(s) + size, kernel(s) + width(), Real(0));
    std::fill_n(diagonal_.data() + size, width() - size, Real(0));
}

template <class Real>
void ExampleBlock<Real>::measure_all() {
    for (Index s = 0; s < size_; ++s) diagonal_.data()[s] = kernel(s)[s];
    std::fill_n(highest_.data(), width(), -partner_);
    std::fill_n(lowest_.data(), width(), partner_);
    for (Index m = 0; m < classes_; ++m) add(0, m, Real(0));
}

template <class Real>
void ExampleBlock<Real>::measure(Index s) {
    Real highest = -partner_, lowest = partner_;
    for (Index at = s, m = 0; m < classes_; ++m, at += stride_) {
        const Real g = gradient_.data()[at];
        highest = std::max(highest, g + fall_.data()[at]);
        lowest = std::min(lowest, g + grow_.data()[at]);
    }
    highest_.data()[s] = highest;
    lowest_.data()[s] = lowest;
}

template <class Real>
void ExampleBlock<Real>::add(Index s, Index m, Real by) {
    work_ += settings_.pass_cost * static_cast<double>(size_);
    const Index at = m * stride_;
    const ClassPass<Real> pass{kernel(s),
                               nullptr,
                               by,
                               by * static_cast<Real>(weight_),
                               gradient_.data() + at,
                               grow_.data() + at,
                               fall_.data() + at,
                               highest_.data(),
                               lowest_.data(),
                               width()};
    with_widest_vectors([&](auto bytes) POLYMARGIN_INLINED { add_row<bytes>(pass); });
}

template <class Real>
void ExampleBlock<Real>::add_difference(Index s, Index t, Index m, Real by) {
    work_ += settings_.pass_cost * static_cast<double>(size_);
    const Index at = m * stride_;
    const ClassPass<Real> pass{
        kernel(s),       kernel(t),      by,     Real(0), gradient_.data() + at, grow_.data() + at, fall_.data() + at,
        highest_.data(), lowest_.data(), width()};
    with_widest_vectors([&](auto bytes) POLYMARGIN_INLINED { add_rows<bytes>(pass); });
}

template <class Real>
auto ExampleBlock<Real>::best_exchange(Index s) -> Exchange {
    Exchange best;
    Real high = -kInfinity, low = kInfinity;
    for (Index at = s, m = 0; m < classes_; ++m, at += stride_) {
        const Real g = gradient_.data()[at], top = g + fall_.data()[at], bottom = g + grow_.data()[at];
        if (top > high) high = top, best.loses = m;
        if (bottom < low) low = bottom, best.gains = m;
    }
    const Index gains = best.gains * stride_, loses = best.loses * stride_;
    const Real own = kernel(s)[s];
    work_ += settings_.pass_cost * static_cast<double>(size_);
    const PartnerPass<Real> pass{kernel(s),
                                 diagonal_.data(),
                                 gradient_.data() + gains,
                                 fall_.data() + gains,
                                 gradient_.data() + loses,
                                 grow_.data() + loses,
                                 high - low,
                                 own,
                                 8 * std::numeric_limits<Real>::epsilon() * std::abs(own),
                                 width()};
    const Found<Real> found =
        with_widest_vectors([&](auto bytes) POLYMARGIN_INLINED { return largest_gain<bytes>(pass); });
    const double slope = static_cast<double>(high) - static_cast<double>(low);
    best.alone = slope * slope / (4 * (static_cast<double>(own) + weight_));
    if (!(-static_cast<double>(found.value) > 4 * best.alone)) return best;
    const Index t = found.at;
    best.with = t;
    best.slope =
        slope + static_cast<double>(gradient_.data()[gains + t]) - static_cast<double>(gradient_.data()[loses + t]);
    best.curvature = 2 * std::max(static_cast<double>(own) + static_cast<double>(diagonal_.data()[t]) -
                                      2 * static_cast<double>(kernel(s)[t]),
                                  static_cast<double>(pass.least));
    return best;
}

template <class Real>
void ExampleBlock<Real>::refresh() {
    std::vector<const Real*> kernels;
    std::vector<double> changes, gradient(size_), means(size_, 0.0);
    for (Index s = 0; s < size_ && !means_count_; ++s) {
        for (Index m = 0; m < classes_; ++m) {
            means[s] += (rows_[s * classes_ + m] - start_rows_[s * classes_ + m]) / static_cast<double>(classes_);
        }
    }
    for (Index m = 0; m < classes_; ++m) {
        kernels.clear();
        changes.clear();
        double sum = 0.0;
        for (Index s = 0; s < size_; ++s) {
            const double change = rows_[s * classes_ + m] - start_rows_[s * classes_ + m] - means[s];
            if (change == 0.0) continue;
            kernels.push_back(kernel(s));
            changes.push_back(change);
            sum += change;
        }
        const double* start = start_.data() + m * stride_;
        for (Index s = 0; s < size_; ++s) gradient[s] = start[s] + weight_ * sum;
        accumulate<Real>(kernels, changes, gradient.data(), size_);
        work_ += settings_.sum_cost * static_cast<double>(size_ * std::ssize(kernels));
        for (Index s = 0; s < size_; ++s) gradient_.data()[m * stride_ + s] = static_cast<Real>(gradient[s]);
    }
}

template <class Real>
Index ExampleBlock<Real>::next(double tolerance) {
    while (true) {
        work_ += settings_.choice_cost * static_cast<double>(size_);
        const Found<Real> found = with_widest_vectors([&](auto bytes) POLYMARGIN_INLINED {
            return largest_difference<bytes>(highest_.data(), lowest_.data(), width());
        });
        if (!(-found.value > tolerance)) return -1;
        measure(found.at);
        const Real exact = highest_.data()[found.at] - lowest_.data()[found.at];
        if (exact > tolerance && exact >= static_cast<Real>(settings_.close) * -found.value) return found.at;
    }
}

template class ExampleBlock<float>;
template class ExampleBlock<double>;

}  // namespace polymargin
