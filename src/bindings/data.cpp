#include <stdexcept>

#include "bindings.hpp"
#include "kernel/pair_sums.hpp"
#include "support/thread_pool.hpp"

// Arrays of several types, as type checkers know them.
#define FLOATS "numpy.typing.NDArray[numpy.floating[typing.Any]]"
#define INTEGERS "numpy.typing.NDArray[numpy.integer[typing.Any]]"

namespace polymargin::bindings {
namespace {

using AnyArray = nb::ndarray<nb::numpy, nb::ro, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> typed(const AnyArray& array) {
    return {static_cast<const T*>(array.data()), array.size()};
}

Reals reals(const AnyArray& array) {
    if (array.dtype() == nb::dtype<float>()) return typed<float>(array);
    if (array.dtype() == nb::dtype<double>()) return typed<double>(array);
    throw std::invalid_argument("values must be float32 or float64");
}

Indices indices(const AnyArray& array) {
    if (array.dtype() == nb::dtype<std::int32_t>()) return typed<std::int32_t>(array);
    if (array.dtype() == nb::dtype<std::int64_t>()) return typed<std::int64_t>(array);
    throw std::invalid_argument("indices must be int32 or int64");
}

void require_matrix(const AnyArray& array) {
    if (array.ndim() != 2) throw std::invalid_argument("expected a matrix");
}

Data dense(const AnyArray& values) {
    require_matrix(values);
    return {DenseView{reals(values), static_cast<Index>(values.shape(0)), static_cast<Index>(values.shape(1))},
            {nb::cast(values)}};
}

Data precomputed(const AnyArray& values) {
    require_matrix(values);
    return {PrecomputedView{reals(values), static_cast<Index>(values.shape(0)), static_cast<Index>(values.shape(1))},
            {nb::cast(values)}};
}

Data csr(const AnyArray& values, const AnyArray& columns, const AnyArray& row_starts, Index rows, Index features) {
    const CsrView view{reals(values), indices(columns), indices(row_starts), rows, features};
    check_structure(view.columns, view.row_starts, static_cast<Index>(values.size()), rows, features);
    return {view, {nb::cast(values), nb::cast(columns), nb::cast(row_starts)}};
}

/// Call `work(workers)` on some threads, without the GIL, and watch for signals unless it is short.
template <class Work>
void with_workers(int threads, bool is_short, const Work& work) {
    run_here_if(is_short, [&](Control& control) {
        ThreadPool pool(is_short ? 1 : threads);
        work(Workers{&pool, &control});
    });
}

void check_csr(const AnyArray& columns, const AnyArray& row_starts, Index stored, Index rows, Index features) {
    check_structure(indices(columns), indices(row_starts), stored, rows, features);
}

template <class Real>
void bound_apply(const KernelSpec& kernel, const Array<const Real, nb::ndim<2>>& inputs,
                 const Array<Real, nb::ndim<2>>& out, int threads) {
    const std::span<const Real> from(inputs.data(), inputs.size());
    const std::span<Real> to(out.data(), out.size());
    const bool is_short = 8.0 * static_cast<double>(to.size()) <= kShortWork;
    with_workers(threads, is_short, [&](const Workers& workers) { apply_kernel<Real>(kernel, from, to, workers); });
}

template <class Real>
void bound_sums(const KernelSpec& kernel, const Data& data, const Array<Real, nb::ndim<2>>& out, int threads) {
    const Blas& blas = scipy_blas();
    const std::span<Real> to(out.data(), out.size());
    with_workers(threads, false,
                 [&](const Workers& workers) { pair_sums<Real>(kernel, data.view, to, blas, workers); });
}

template <class Real>
void bind_matrices(nb::module_& m) {
    m.def("apply_kernel", &bound_apply<Real>, nb::arg("kernel"), nb::arg("inputs"), nb::arg("out"), nb::arg("threads"),
          "Write the kernel values of what the kernel reads (its `reads`) to `out`.");
    m.def("pair_sums", &bound_sums<Real>, nb::arg("kernel"), nb::arg("data"), nb::arg("out"), nb::arg("threads"),
          "Write the sums over features that the kernel reads, of all pairs of examples, to `out`.");
}

/// A kernel is known by the name that the core has for it.
void bind_kernel(nb::module_& m) {
    nb::enum_<KernelInput>(m, "KernelInput", "What the values of a kernel are a function of.")
        .value("products", KernelInput::products)
        .value("squared_distances", KernelInput::squared_distances)
        .value("feature_sums", KernelInput::feature_sums)
        .value("matrix", KernelInput::matrix);
    nb::enum_<KernelType> types(m, "KernelType");
    for (const KernelName& kernel : kernel_names()) types.value(kernel.name, kernel.type);
    nb::class_<KernelSpec>(m, "Kernel", "A kernel function and its parameters.")
        .def(
            "__init__",
            [](KernelSpec* self, KernelType type, double gamma, double coef0, int degree) {
                new (self) KernelSpec{type, gamma, coef0, degree};
            },
            nb::arg("type"), nb::arg("gamma"), nb::arg("coef0"), nb::arg("degree"))
        .def_prop_ro("reads", &KernelSpec::reads)
        .def_prop_ro("is_translation_invariant", &KernelSpec::is_translation_invariant)
        .def("diagonal", &KernelSpec::diagonal, nb::arg("norm"), "Return k(x, x) of a point with a squared length.");
    bind_matrices<float>(m);
    bind_matrices<double>(m);
}

}  // namespace

void bind_data(nb::module_& m) {
    nb::class_<Data>(m, "Data", "Examples, or their kernel values, as the core reads them: without a copy.")
        .def_static("dense", &dense, nb::arg("values"), nb::sig("def dense(values: " FLOATS ") -> Data"))
        .def_static("csr", &csr, nb::arg("values"), nb::arg("columns"), nb::arg("row_starts"), nb::arg("rows"),
                    nb::arg("features"),
                    nb::sig("def csr(values: " FLOATS ", columns: " INTEGERS ", row_starts: " INTEGERS
                            ", rows: int, features: int) -> Data"))
        .def_static("precomputed", &precomputed, nb::arg("values"),
                    nb::sig("def precomputed(values: " FLOATS ") -> Data"));
    m.def("check_csr", &check_csr, nb::arg("columns"), nb::arg("row_starts"), nb::arg("stored"), nb::arg("rows"),
          nb::arg("features"),
          nb::sig("def check_csr(columns: " INTEGERS ", row_starts: " INTEGERS
                  ", stored: int, rows: int, features: int) -> None"),
          "Raise ValueError, naming the place, unless the structure of a CSR matrix is sound.");
    bind_kernel(m);
}

}  // namespace polymargin::bindings
