#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <functional>
#include <vector>

#include "kernel/data.hpp"
#include "kernel/function.hpp"
#include "support/blas.hpp"
#include "support/control.hpp"

namespace polymargin::bindings {

namespace nb = nanobind;

template <class T, class... Options>
using Array = nb::ndarray<nb::numpy, T, nb::c_contig, nb::device::cpu, Options...>;
template <class T>
using Vector = Array<const T, nb::ndim<1>>;

/// Examples as the core reads them, with the arrays they live in kept alive.
struct Data {
    DataView view;
    std::vector<nb::object> owners;
};

/// SciPy's BLAS and LAPACK, as function pointers.
[[nodiscard]] const Blas& scipy_blas();

/// Run `work` without the GIL while this thread watches for signals and, if `progress` is not None, calls it a
/// few times a second with (done, total, iterations, violation). If it returns False the work is asked to stop where it
/// is. A Python error (KeyboardInterrupt) stops the work too and comes out of here.
void run_without_gil(const std::function<void()>& work, Control& control, const nb::object& progress);

/// A vector of numbers as an array that owns them.
template <class T>
nb::object to_numpy(std::vector<T> values) {
    auto* owner = new std::vector<T>(std::move(values));
    nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owner->data(), {owner->size()}, capsule));
}

template <class T>
std::span<const T> as_span(const Vector<T>& array) {
    return {array.data(), array.size()};
}

void bind_data(nb::module_& m);
void bind_session(nb::module_& m);
void bind_exact_step(nb::module_& m);
void bind_train_linear(nb::module_& m);
void bind_scores(nb::module_& m);
void bind_storage(nb::module_& m);
void bind_runtime(nb::module_& m);

}  // namespace polymargin::bindings
