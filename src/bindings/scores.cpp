#include "machine/scores.hpp"

#include <stdexcept>

#include "bindings.hpp"

namespace polymargin::bindings {

void bind_scorer(nb::module_& m);

namespace {

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
    const Blas& blas = scipy_blas();
    const std::span<Real> values(out.data(), out.size());
    const auto stored = [](const auto& view) {
        return std::visit([](auto all) { return std::ssize(all); }, view.values);
    };
    const auto products = static_cast<double>(rows.size()) * static_cast<double>(std::visit(stored, vectors.view));
    const bool is_short = products + 8.0 * static_cast<double>(values.size()) <= kShortWork;
    run_here_if(is_short, [&](Control& control) { kernel_values<Real>(request, values, blas, control); });
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
    bind_scorer(m);
}

}  // namespace polymargin::bindings
