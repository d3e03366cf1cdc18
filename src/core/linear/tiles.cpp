#include "linear/tiles.hpp"

#include <algorithm>

namespace polymargin {

template <class Real>
RowTile<Real>::RowTile(const LinearRows<Real>& rows, std::span<const std::uint32_t> numbers, Real* room)
    : rows_(rows), count_(std::ssize(numbers)), numbers_(numbers), dense_(rows.dense() ? room : nullptr) {
    if (dense_ == nullptr) return;
    for (Index t = 0; t < count_; ++t)
        std::copy_n(rows.row(number(t)).values, rows.features(), room + t * rows.features());
}

template <class Real>
void RowTile<Real>::products(const Weights<Real>& weights, const Blas& blas, Real* out) const {
    const Index width = weights.width();
    if (dense_ == nullptr || rows_.features() == 0) {
        for (Index t = 0; t < count_; ++t) weights.products(rows_.row(number(t)), out + t * width);
        return;
    }
    const int features = static_cast<int>(rows_.features()), columns = static_cast<int>(width);
    blas.multiply<Real>(static_cast<int>(count_), columns, features, dense_, features, weights.row(0), columns, Real(0),
                        out, columns);
}

template <class Real>
void RowTile<Real>::add_to(Weights<Real>& weights, const Blas& blas, const Real* by) const {
    const Index width = weights.width();
    if (dense_ == nullptr || rows_.features() == 0) {
        for (Index t = 0; t < count_; ++t) {
            const Real* own = by + t * width;
            if (std::any_of(own, own + width, [](Real b) { return b != 0; })) weights.add(rows_.row(number(t)), own);
        }
        return;
    }
    const int features = static_cast<int>(rows_.features()), columns = static_cast<int>(width);
    blas.multiply_first_transposed<Real>(features, columns, static_cast<int>(count_), dense_, features, by, columns,
                                         Real(1), weights.row(0), columns);
}

template class RowTile<float>;
template class RowTile<double>;

}  // namespace polymargin
