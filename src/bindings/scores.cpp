#include "machine/scores.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <stdexcept>
#include <utility>

#include "bindings.hpp"

namespace polymargin::bindings {
namespace {

void bound_scores(const Data& data, const Vector<Index>& rows, const Data& vectors, const KernelSpec& kernel,
                  const Array<const double, nb::ndim<2>>& coefficients,
                  const std::vector<std::pair<std::pair<Index, Index>, std::vector<Index>>>& blocks,
                  const Array<double, nb::ndim<2>>& out, double accuracy, int threads) {
    ScoreRequest request;
    request.data = data.view;
    request.rows.assign(rows.data(), rows.data() + rows.size());
    request.vectors = vectors.view;
    request.kernel = kernel;
    request.coefficients = {coefficients.data(), coefficients.size()};
    request.height = static_cast<Index>(coefficients.shape(0));
    for (const auto& [range, columns] : blocks) request.blocks.push_back({{range.first, range.second}, columns});
    request.scores = static_cast<Index>(out.shape(1));
    request.accuracy = accuracy;
    request.threads = threads;
    if (out.shape(0) != rows.size()) throw std::invalid_argument("out must have a row for each row asked for");
    Control control;
    const Blas& blas = scipy_blas();
    const std::span<double> scores(out.data(), out.size());
    run_without_gil([&] { add_scores(request, scores, blas, control); }, control, nb::none());
}

template <class Real>
void bound_values(const Data& data, const Vector<Index>& rows, const Data& vectors, const KernelSpec& kernel,
                  const Array<Real, nb::ndim<2>>& out, int threads) {
    ScoreRequest request;
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
void bind_values(nb::module_& m) {
    m.def("kernel_values", &bound_values<Real>, nb::arg("data"), nb::arg("rows"), nb::arg("vectors"), nb::arg("kernel"),
          nb::arg("out"), nb::arg("threads"),
          "Write the kernel values of some rows with all vectors to `out`, in its precision.");
}

}  // namespace

void bind_scores(nb::module_& m) {
    bind_values<float>(m);
    bind_values<double>(m);
    m.def("add_scores", &bound_scores, nb::arg("data"), nb::arg("rows"), nb::arg("vectors"), nb::arg("kernel"),
          nb::arg("coefficients"), nb::arg("blocks"), nb::arg("out"), nb::arg("accuracy"), nb::arg("threads"),
          "Add the scores of some rows to `out`; each support vector's kernel values are computed once.");
}

}  // namespace polymargin::bindings
