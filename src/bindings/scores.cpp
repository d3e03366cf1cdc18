#include "machine/scores.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <utility>

#include "bindings.hpp"
#include "machine/scorer.hpp"

namespace polymargin::bindings {

void bind_scorer(nb::module_& m);

namespace {

void add_scores(const Data& data, const Vector<Index>& rows, const Data& vectors, const KernelSpec& kernel,
                const Array<const double, nb::ndim<2>>& coefficients,
                const std::vector<std::pair<std::pair<Index, Index>, std::vector<Index>>>& blocks,
                const Array<double, nb::ndim<2>>& out, double accuracy, int threads) {
    ScoringModel model{.vectors = vectors.view,
                       .kernel = kernel,
                       .coefficients = {coefficients.data(), coefficients.size()},
                       .height = static_cast<Index>(coefficients.shape(0)),
                       .blocks = {},
                       .intercepts = std::vector<double>(out.shape(1))};
    for (const auto& [range, columns] : blocks) model.blocks.push_back({{range.first, range.second}, columns});
    if (out.shape(0) != rows.size()) throw std::invalid_argument("out must have a row for each row asked for");
    const Blas& blas = scipy_blas();
    Control control;
    run_without_gil(
        [&] {
            Scorer(std::move(model))
                .add(data.view, as_span(rows), {accuracy, threads}, {out.data(), out.size()}, blas, control);
        },
        control, nb::none());
}

template <class Real>
void bound_values(const Data& data, const Vector<Index>& rows, const Data& vectors, const KernelSpec& kernel,
                  const Array<Real, nb::ndim<2>>& out, int threads) {
    ValueRequest request;
    request.data = data.view;
    request.rows.assign(rows.data(), rows.data() + rows.size());
    request.vectors = vectors.view;
    request.kernel = kernel;
    request.threads = threads;
    if (out.shape(0) != rows.size() || static_cast<Index>(out.shape(1)) != rows_of(vectors.view)) {
        throw std::invalid_argument("out must have a row for each row asked for and a column for each vector");
    }
    Control control;
    const Blas& blas = scipy_blas();
    const std::span<Real> values(out.data(), out.size());
    run_without_gil([&] { kernel_values<Real>(request, values, blas, control); }, control, nb::none());
}

template <class Real>
void bound_apply(const KernelSpec& kernel, const Array<const Real, nb::ndim<2>>& products,
                 const Array<Real, nb::ndim<2>>& out, int threads) {
    const std::span<const Real> from(products.data(), products.size());
    const std::span<Real> to(out.data(), out.size());
    Control control;
    run_without_gil(
        [&] {
            ThreadPool pool(threads);
            apply_kernel<Real>(kernel, from, to, {&pool, &control});
        },
        control, nb::none());
}

template <class Real>
void bind_values(nb::module_& m) {
    m.def("apply_kernel", &bound_apply<Real>, nb::arg("kernel"), nb::arg("products"), nb::arg("out"),
          nb::arg("threads"),
          "Write the kernel values of scalar products to `out`; RBF takes minus half the squared distances instead.");
    m.def("kernel_values", &bound_values<Real>, nb::arg("data"), nb::arg("rows"), nb::arg("vectors"), nb::arg("kernel"),
          nb::arg("out"), nb::arg("threads"),
          "Write the kernel values of some rows with all vectors to `out`, in its precision.");
}

}  // namespace

void bind_scores(nb::module_& m) {
    bind_values<float>(m);
    bind_values<double>(m);
    bind_scorer(m);
    m.def("add_scores", &add_scores, nb::arg("data"), nb::arg("rows"), nb::arg("vectors"), nb::arg("kernel"),
          nb::arg("coefficients"), nb::arg("blocks"), nb::arg("out"), nb::arg("accuracy"), nb::arg("threads"),
          "Add the scores of some rows to `out`; each support vector's kernel values are computed once.");
}

}  // namespace polymargin::bindings
