#include "kernel/pair_sums.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "kernel/engine.hpp"
#include "kernel/points.hpp"

namespace polymargin {
namespace {

constexpr Index kRows = 64;       // of a part: what a thread does at once
constexpr Index kColumns = 1024;  // of a block, whose sums stay in the cache

}  // namespace

template <class Real>
void pair_sums(const KernelSpec& kernel, const DataView& data, std::span<Real> out, const Blas& blas,
               const Workers& workers) {
    const Index n = rows_of(data);
    if (kernel.reads() != KernelInput::feature_sums) {
        throw std::invalid_argument("this kernel is no function of sums over features");
    }
    if (std::ssize(out) != n * n) throw std::invalid_argument("out must have a place for each pair of rows");
    std::vector<Index> order(n);
    std::iota(order.begin(), order.end(), Index{0});
    const Points<Real> points(data, order, centre(data, order, kernel, workers), true, workers);
    const KernelEngine<Real> engine(kernel, points, points, blas);
    const auto fill = [&](Range part) {
        std::vector<Real*> to(part.size());
        for (Index begin = 0; begin < n; begin += kColumns) {
            for (Index i = 0; i < part.size(); ++i) to[i] = out.data() + (part.begin + i) * n + begin;
            engine.feature_sums(std::span(order).subspan(part.begin, part.size()),
                                {begin, std::min(n, begin + kColumns)}, to);
        }
    };
    workers.for_parts(n, fill, kRows);
}

template void pair_sums<float>(const KernelSpec&, const DataView&, std::span<float>, const Blas&, const Workers&);
template void pair_sums<double>(const KernelSpec&, const DataView&, std::span<double>, const Blas&, const Workers&);

}  // namespace polymargin
