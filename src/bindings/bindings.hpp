#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <functional>
#include <optional>
#include <span>
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

/// Whoever watches a run: see `run_without_gil`.
using Watcher = std::optional<nb::typed<nb::callable, bool(Index, Index, Index, double)>>;
inline void run_without_gil(const std::function<void()>& work, Control& control, const Watcher& progress) {
    run_without_gil(work, control, progress ? nb::object(*progress) : nb::object(nb::none()));
}

/// What counts as short, in multiplications or what takes as long: some two milliseconds.
constexpr double kShortWork = 4e6;

/// Run short work here and now, where a thread of its own would take longer to start; everything else leaves this
/// thread free for signals.
template <class Work>
void run_here_if(bool is_short, const Work& work) {
    Control control;
    if (!is_short) return run_without_gil([&] { work(control); }, control, nb::none());
    const nb::gil_scoped_release release;
    work(control);
}

template <class T>
std::span<const T> as_span(const Vector<T>& array) {
    return {array.data(), array.size()};
}
template <class T, class... Options>
std::vector<T> copied(const Array<const T, Options...>& array) {
    return {array.data(), array.data() + array.size()};
}

/// An array of a result, which owns its memory alone: whoever drops the result keeps the arrays that were taken.
template <class T, std::size_t dimensions = 1>
using Owned = nb::ndarray<nb::numpy, T, nb::ndim<dimensions>>;

/// Hand a vector over; all dimensions but the first are named.
template <class T, class... Size>
Owned<T, 1 + sizeof...(Size)> owned(std::vector<T> values, Size... columns) {
    auto* owner = new std::vector<T>(std::move(values));
    const nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    const auto width = (std::size_t{1} * ... * static_cast<std::size_t>(columns));
    return {owner->data(), {width == 0 ? 0 : owner->size() / width, static_cast<std::size_t>(columns)...}, capsule};
}

void bind_data(nb::module_& m);
void bind_losses(nb::module_& m);
void bind_session(nb::module_& m);
void bind_train_linear(nb::module_& m);
void bind_scores(nb::module_& m);
void bind_storage(nb::module_& m);
void bind_runtime(nb::module_& m);

}  // namespace polymargin::bindings
