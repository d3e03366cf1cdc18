#include "solver/kernel_product.hpp"

#include <algorithm>
#include <numeric>

#include "support/buffer.hpp"
#include "support/vectors.hpp"

namespace polymargin {
namespace {

/// Columns of a task: their part of a few rows stays in L1 while all classes use it.
constexpr Index kStrip = 256;
/// Rows that are read together.
constexpr Index kRows = 48;
/// Classes whose sums are in registers together.
constexpr Index kGroup = 6;

template <int Bytes>
using Doubles = typename Vectors<double, Bytes>::Reals;

template <int Bytes>
POLYMARGIN_INLINE Doubles<Bytes> load_as_double(const double* from) {
    return load<Bytes>(from);
}
template <int Bytes>
POLYMARGIN_INLINE Doubles<Bytes> load_as_double(const float* from) {
    return __builtin_convertvector(load<Bytes / 2>(from), Doubles<Bytes>);
}

/// `out[c][t] += sum_r x[r * classes + c] rows[r][t]` for so many vectors of t and so many classes.
template <int Bytes, int Many, int Classes, class Real>
POLYMARGIN_INLINE void multiply_tile(const Real* const* rows, Index row_count, Index at, const double* x,
                                     double* const* out) {
    constexpr int lanes = Vectors<double, Bytes>::count;
    Doubles<Bytes> sums[Classes][Many];
    for (int c = 0; c < Classes; ++c) {
        for (int v = 0; v < Many; ++v) sums[c][v] = load<Bytes>(out[c] + at + v * lanes);
    }
    for (Index r = 0; r < row_count; ++r, x += Classes) {
        Doubles<Bytes> values[Many];
        for (int v = 0; v < Many; ++v) values[v] = load_as_double<Bytes>(rows[r] + at + v * lanes);
        for (int c = 0; c < Classes; ++c) {
            for (int v = 0; v < Many; ++v) sums[c][v] += x[c] * values[v];
        }
    }
    for (int c = 0; c < Classes; ++c) {
        for (int v = 0; v < Many; ++v) store<Bytes>(out[c] + at + v * lanes, sums[c][v]);
    }
}

template <int Classes, class Real>
POLYMARGIN_INLINE void multiply_rest(const Real* const* rows, Index row_count, Index begin, Index end, const double* x,
                                     double* const* out) {
    for (Index t = begin; t < end; ++t) {
        for (int c = 0; c < Classes; ++c) {
            double sum = out[c][t];
            for (Index r = 0; r < row_count; ++r) sum += x[r * Classes + c] * static_cast<double>(rows[r][t]);
            out[c][t] = sum;
        }
    }
}

template <int Bytes, int Classes, class Real>
POLYMARGIN_INLINE void multiply_strip(const Real* const* rows, Index row_count, Index begin, Index end, const double* x,
                                      double* const* out) {
    constexpr int many = Bytes == 64 ? 4 : 2;  // as many sums as there are registers for
    constexpr Index lanes = Vectors<double, Bytes>::count, wide = many * lanes;
    Index t = begin;
    for (; t + wide <= end; t += wide) multiply_tile<Bytes, many, Classes>(rows, row_count, t, x, out);
    for (; t + lanes <= end; t += lanes) multiply_tile<Bytes, 1, Classes>(rows, row_count, t, x, out);
    multiply_rest<Classes>(rows, row_count, t, end, x, out);
}

template <class Real>
void multiply(int classes, const Real* const* rows, Index row_count, Index begin, Index end, const double* x,
              double* const* out) {
    const auto with = [&]<int Classes>(std::integral_constant<int, Classes>) {
        with_widest_vectors([&](auto width) POLYMARGIN_INLINED {
            multiply_strip<width, Classes>(rows, row_count, begin, end, x, out);
        });
    };
    static_assert(kGroup == 6);
    switch (classes) {
        case 1:
            return with(std::integral_constant<int, 1>{});
        case 2:
            return with(std::integral_constant<int, 2>{});
        case 3:
            return with(std::integral_constant<int, 3>{});
        case 4:
            return with(std::integral_constant<int, 4>{});
        case 5:
            return with(std::integral_constant<int, 5>{});
        default:
            return with(std::integral_constant<int, 6>{});
    }
}

/// Classes in groups of much the same size, and the numbers of each group for some examples, those of an example next
/// to each other.
struct Groups {
    std::vector<Index> starts;
    Buffer<double> values;

    Groups(ClassMajor<const double> x, std::span<const Index> which) : values(x.classes * std::ssize(which)) {
        const Index n = std::ssize(which), count = (x.classes + kGroup - 1) / kGroup;
        for (Index g = 0; g <= count; ++g) starts.push_back(g * x.classes / count);
        for (Index g = 0; g < count; ++g) {
            const Index width = starts[g + 1] - starts[g];
            double* to = values.data() + starts[g] * n;
            for (Index m = 0; m < width; ++m) {
                const double* from = x.row(starts[g] + m);
                for (Index j = 0; j < n; ++j) to[j * width + m] = from[which[j]];
            }
        }
    }
};

}  // namespace

template <class Real>
void KernelProduct<Real>::apply(ClassMajor<const double> x, ClassMajor<double> out) const {
    std::vector<Index> all(rows_.size());
    std::iota(all.begin(), all.end(), Index{0});
    apply(x, all, out);
}

template <class Real>
void KernelProduct<Real>::apply(ClassMajor<const double> x, std::span<const Index> which,
                                ClassMajor<double> out) const {
    const Index n = size(), some = std::ssize(which);
    const Groups groups(x, which);
    std::vector<const Real*> rows(which.size());
    std::ranges::transform(which, rows.begin(), [&](Index i) { return rows_[i]; });
    std::vector<double> sums(x.classes, 0.0);
    for (Index m = 0; m < x.classes && weight_ != 0.0; ++m) {
        for (const Index i : which) sums[m] += weight_ * x.at(m, i);
    }
    pool_.for_each((n + kStrip - 1) / kStrip, [&](Index strip) {
        if (control_.stop_requested()) return;
        const Index begin = strip * kStrip, end = std::min(begin + kStrip, n);
        for (Index m = 0; m < x.classes; ++m) std::fill(out.row(m) + begin, out.row(m) + end, sums[m]);
        for (Index r = 0; r < some; r += kRows) {
            const Index count = std::min(kRows, some - r);
            for (std::size_t g = 0; g + 1 < groups.starts.size(); ++g) {
                const Index first = groups.starts[g], width = groups.starts[g + 1] - first;
                double* to[kGroup];
                for (Index m = 0; m < width; ++m) to[m] = out.row(first + m);
                multiply(static_cast<int>(width), rows.data() + r, count, begin, end,
                         groups.values.data() + first * some + r * width, to);
            }
        }
    });
}

template class KernelProduct<float>;
template class KernelProduct<double>;

}  // namespace polymargin
