#include "solver/example_block.hpp"

#include "solver/accumulate.hpp"
#include "support/vectors.hpp"

namespace polymargin {
namespace {

/// gradient += by row + shift, and the bounds that follow from this class.
template <class Real>
struct ClassPass {
    const Real* row;
    Real by;
    Real shift;
    Real* gradient;
    const Real* grow;
    const Real* fall;
    Real* highest;
    Real* lowest;
    Index count;
};

template <int Bytes, class Real>
POLYMARGIN_INLINE void run(const ClassPass<Real>& p) {
    for (Index t = 0; t < p.count; t += Vectors<Real, Bytes>::count) {
        const auto g = load<Bytes>(p.gradient + t) + (p.by * load<Bytes>(p.row + t) + p.shift);
        store<Bytes>(p.gradient + t, g);
        const auto top = g + load<Bytes>(p.fall + t), highest = load<Bytes>(p.highest + t);
        store<Bytes>(p.highest + t, top > highest ? top : highest);
        const auto bottom = g + load<Bytes>(p.grow + t), lowest = load<Bytes>(p.lowest + t);
        store<Bytes>(p.lowest + t, bottom < lowest ? bottom : lowest);
    }
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
}

template <class Real>
void ExampleBlock<Real>::measure_all() {
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
                               by,
                               by * static_cast<Real>(weight_),
                               gradient_.data() + at,
                               grow_.data() + at,
                               fall_.data() + at,
                               highest_.data(),
                               lowest_.data(),
                               width()};
    with_widest_vectors([&](auto bytes) POLYMARGIN_INLINED { run<bytes>(pass); });
}

template <class Real>
void ExampleBlock<Real>::refresh() {
    std::vector<const Real*> kernels;
    std::vector<double> changes, gradient(size_);
    for (Index m = 0; m < classes_; ++m) {
        kernels.clear();
        changes.clear();
        double sum = 0.0;
        for (Index s = 0; s < size_; ++s) {
            const double change = rows_[s * classes_ + m] - start_rows_[s * classes_ + m];
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
