#include <stdexcept>

#include "bindings.hpp"

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

void check_csr(const AnyArray& columns, const AnyArray& row_starts, Index stored, Index rows, Index features) {
    check_structure(indices(columns), indices(row_starts), stored, rows, features);
}

}  // namespace

void bind_data(nb::module_& m) {
    nb::class_<Data>(m, "Data", "Examples, or their kernel values, as the core reads them: without a copy.")
        .def_static("dense", &dense, nb::arg("values"))
        .def_static("csr", &csr, nb::arg("values"), nb::arg("columns"), nb::arg("row_starts"), nb::arg("rows"),
                    nb::arg("features"))
        .def_static("precomputed", &precomputed, nb::arg("values"));
    m.def("check_csr", &check_csr, nb::arg("columns"), nb::arg("row_starts"), nb::arg("stored"), nb::arg("rows"),
          nb::arg("features"), "Raise ValueError, naming the place, unless the structure of a CSR matrix is sound.");
    nb::enum_<KernelType>(m, "KernelType")
        .value("linear", KernelType::linear)
        .value("poly", KernelType::polynomial)
        .value("rbf", KernelType::rbf)
        .value("sigmoid", KernelType::sigmoid)
        .value("precomputed", KernelType::precomputed);
    nb::class_<KernelSpec>(m, "Kernel", "A kernel function and its parameters.")
        .def(
            "__init__",
            [](KernelSpec* self, KernelType type, double gamma, double coef0, int degree) {
                new (self) KernelSpec{type, gamma, coef0, degree};
            },
            nb::arg("type"), nb::arg("gamma"), nb::arg("coef0"), nb::arg("degree"));
}

}  // namespace polymargin::bindings
