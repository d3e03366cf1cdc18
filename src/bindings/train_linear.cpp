#include "machine/train_linear.hpp"

#include "records.hpp"

namespace polymargin::bindings {
namespace {

struct LinearRunSettings : SequentialSettings {
    LinearMethod method = LinearMethod::sequential_dual;
    double gap = 1e-3;
    double violation = std::numeric_limits<double>::infinity();
};

struct LinearResult {
    Owned<double, 2> weights;
    Owned<double> intercept;
    Owned<Index> starts, columns;
    Owned<double> coefficients;
    double primal, dual, violation;
    Owned<Index> visits;
    Status status;
    bool single_precision;
};

LinearResult bound_train_linear(const Data& data, const Vector<Index>& order, const LinearRequest& problem,
                                const LinearRunSettings& settings, const std::optional<RowStart>& start, int threads,
                                double time_limit, const Watcher& progress) {
    if (order.size() != problem.labels.size()) throw std::invalid_argument("every row of order needs a label");
    LinearRequest request = started(problem, start);
    request.data = data.view;
    request.order = copied(order);
    request.method = settings.method;
    request.gap = settings.gap;
    request.violation = settings.violation;
    request.settings = settings;
    request.threads = threads;
    Control control(time_limit);
    const Blas& blas = scipy_blas();
    LinearReport r;
    run_without_gil([&] { r = train_linear(request, blas, control); }, control, progress);
    const auto take = [](auto& values, auto... columns) { return owned(std::move(values), columns...); };
    return {take(r.weights, problem.classes),
            take(r.intercept),
            take(r.starts),
            take(r.columns),
            take(r.coefficients),
            r.objectives.primal,
            r.objectives.dual,
            r.violation,
            take(r.visits),
            r.status,
            r.single_precision};
}

}  // namespace

void bind_train_linear(nb::module_& m) {
    nb::enum_<LinearMethod>(m, "LinearMethod", "How a linear machine is trained.")
        .value("sequential_dual", LinearMethod::sequential_dual)
        .value("exponentiated_gradient", LinearMethod::exponentiated_gradient, "No free bias, no warm start.");
    using Settings = LinearRunSettings;
    bind_settings<Settings>(
        m, "LinearSettings", "How a linear machine is trained, and how far.",
        Field{"method", &Settings::method, "The solver."},
        Field{"gap", &Settings::gap, "Relative duality gap to stop at."},
        Field{"violation", &Settings::violation, "Violation to stop at, by way of finer gaps; inf: the gap counts."},
        Field{"max_visits", &Settings::max_visits, "Visits to examples; -1: no limit."},
        Field{"seed", &Settings::seed, "Of the random order."},
        Field{"shuffling", &Settings::shuffling, "A random order anew in each loop; if not, the given one."},
        Field{"shrinking", &Settings::shrinking, "Loops over examples whose coefficients are between their limits."},
        Field{"cooling", &Settings::cooling, "These loops go on to a tolerance that falls step by step."},
        Field{"newton", &Settings::newton, "With few features, Newton steps when the gap is small."},
        Field{"newton_from", &Settings::newton_from, "Fewer examples take no Newton steps, unless C is large."});
    bind_row_problem<LinearRequest>(m, "LinearProblem", "A linear machine, trained without kernel values.");
    using Result = LinearResult;
    nb::class_<Result> result(m, "LinearResult", "A trained linear machine.");
    read_only(result, Field{"weights", &Result::weights, "A row for each feature, a column for each class."},
              Field{"intercept", &Result::intercept, "Of each class."},
              Field{"starts", &Result::starts, "The coefficients of example i are [starts[i], starts[i + 1])."},
              Field{"columns", &Result::columns, "The class of each coefficient."},
              Field{"coefficients", &Result::coefficients, "Those that are not zero."},
              Field{"primal", &Result::primal, "Objective."}, Field{"dual", &Result::dual, "Objective, maximised."},
              Field{"violation", &Result::violation, "Of the optimality conditions, by the worst example."},
              Field{"visits", &Result::visits, "Visits to examples, for each class."},
              Field{"status", &Result::status, "Why it ended."},
              Field{"single_precision", &Result::single_precision, "Whether the solver worked in float32."});
    m.def("train_linear", &bound_train_linear, nb::arg("data"), nb::arg("order"), nb::arg("problem"),
          nb::arg("settings"), nb::kw_only(), nb::arg("start") = nb::none(), nb::arg("threads") = 1,
          nb::arg("time_limit") = std::numeric_limits<double>::infinity(), nb::arg("progress") = nb::none(),
          "Train a linear machine without kernel values.");
}

}  // namespace polymargin::bindings
