#include "machine/train_linear.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

#include "bindings.hpp"
#include "names.hpp"

namespace polymargin::bindings {
namespace {

AnyLoss loss_from(const std::string& name, double margin) {
    if (name == "one-vs-rest") return OneVsRest();
    return multiclass_loss(name, margin);
}

LinearMethod method_from(const std::string& name) {
    if (name == "sequential-dual") return LinearMethod::sequential_dual;
    if (name == "exponentiated-gradient") return LinearMethod::exponentiated_gradient;
    throw std::invalid_argument("there is no method named " + name);
}

nb::dict to_python(LinearReport report) {
    nb::dict out;
    out["weights"] = to_numpy(std::move(report.weights));
    out["intercept"] = to_numpy(std::move(report.intercept));
    out["starts"] = to_numpy(std::move(report.starts));
    out["columns"] = to_numpy(std::move(report.columns));
    out["coefficients"] = to_numpy(std::move(report.coefficients));
    out["primal"] = report.objectives.primal;
    out["dual"] = report.objectives.dual;
    out["violation"] = report.violation;
    out["iterations"] = to_numpy(std::move(report.visits));
    out["status"] = name_of(report.status);
    out["evaluations"] = Index{0};
    out["single_precision"] = report.single_precision;
    return out;
}

nb::dict bound_train_linear(const Data& data, const Vector<Index>& order, const Vector<double>& upper,
                            const Vector<Index>& labels, Index classes, const std::string& loss, double margin,
                            const std::optional<std::string>& bias, const std::optional<nb::tuple>& start,
                            const std::string& method, std::uint64_t seed, bool shuffling, bool shrinking, bool cooling,
                            bool newton, double tolerance, Index max_iterations, double time_limit, int threads,
                            const nb::object& progress) {
    LinearRequest request;
    request.data = data.view;
    request.loss = loss_from(loss, margin);
    request.bias = bias_from(bias);
    request.method = method_from(method);
    request.order.assign(order.data(), order.data() + order.size());
    request.cost_bounds.assign(upper.data(), upper.data() + upper.size());
    request.labels.assign(labels.data(), labels.data() + labels.size());
    request.classes = classes;
    if (start) {
        const auto support = nb::cast<Vector<Index>>((*start)[0]);
        const auto rows = nb::cast<Vector<double>>((*start)[1]);
        const auto shift = nb::cast<Vector<double>>((*start)[2]);
        request.start_support.assign(support.data(), support.data() + support.size());
        request.start_rows.assign(rows.data(), rows.data() + rows.size());
        request.start_bias.assign(shift.data(), shift.data() + shift.size());
    }
    request.gap = tolerance;
    request.settings = {.max_visits = max_iterations,
                        .seed = seed,
                        .shuffling = shuffling,
                        .shrinking = shrinking,
                        .cooling = cooling,
                        .newton = newton};
    request.threads = threads;
    Control control(time_limit);
    LinearReport report;
    const Blas& blas = scipy_blas();
    run_without_gil([&] { report = train_linear(request, blas, control); }, control, progress);
    return to_python(std::move(report));
}

}  // namespace

void bind_train_linear(nb::module_& m) {
    m.def("train_linear", &bound_train_linear, nb::arg("data"), nb::arg("order"), nb::arg("upper"), nb::arg("labels"),
          nb::arg("classes"), nb::arg("loss"), nb::arg("margin"), nb::arg("bias").none(), nb::arg("start").none(),
          nb::arg("method"), nb::arg("seed"), nb::arg("shuffling"), nb::arg("shrinking"), nb::arg("cooling"),
          nb::arg("newton"), nb::arg("tolerance"), nb::arg("max_iterations"), nb::arg("time_limit"), nb::arg("threads"),
          nb::arg("progress").none(), "Train a linear machine without kernel values; returns its solution.");
}

}  // namespace polymargin::bindings
