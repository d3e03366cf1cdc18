#include "session.hpp"

namespace polymargin::bindings {
namespace {

struct JointResult {
    Owned<Index> support;
    Owned<double, 2> rows;
    Owned<double> intercept;
    double primal, dual, violation;
    Index iterations, bias_steps;
    Status status;
    Index evaluations;
    bool single_precision, whole_matrix, interior_point;
};

JointResult bound_train_joint(Session& session, const JointProblem& problem, const DecompositionSettings& settings,
                              const std::optional<RowStart>& start, bool refine, double time_limit,
                              const Watcher& progress) {
    JointProblem request = started(problem, start);
    request.refine = refine;
    request.settings = settings;
    Control control(time_limit);
    JointReport r;
    run_without_gil([&] { r = train_joint(session.kernel, request, control); }, control, progress);
    return {owned(std::move(r.support)),
            owned(std::move(r.rows), problem.classes),
            owned(std::move(r.intercept)),
            r.objectives.primal,
            r.objectives.dual,
            r.violation,
            r.iterations,
            r.bias_steps,
            r.status,
            r.evaluations,
            r.single_precision,
            r.whole_matrix,
            r.interior_point};
}

RowStart start_from(const Vector<Index>& support, const Array<const double, nb::ndim<2>>& rows,
                    const Vector<double>& bias) {
    return {copied(support), copied(rows), copied(bias)};
}

}  // namespace

void bind_train_joint(nb::module_& m, nb::class_<Session>& session) {
    using Settings = DecompositionSettings;
    bind_settings<Settings>(
        m, "JointSettings", "How far a joint machine is trained, and in what portions.",
        Field{"tolerance", &Settings::tolerance, "Largest violation to stop at, epsilon of Hsu & Lin (21)."},
        Field{"gap", &Settings::gap, "Relative duality gap to stop at as well; 0: never."},
        Field{"gap_counts", &Settings::gap_counts, "Go on beyond the tolerance until the gap is reached."},
        Field{"max_iterations", &Settings::max_iterations, "Exact steps; -1: no limit."},
        Field{"max_work", &Settings::max_work, "Operations, about; inf: no limit."},
        Field{"working_set", &Settings::working_set, "Most examples optimised together."},
        Field{"entrants", &Settings::entrants, "Most examples that enter the working set in a round."},
        Field{"shrink_from", &Settings::shrink_from, "Smaller problems are not shrunk."});
    bind_row_problem<JointProblem>(m, "JointProblem", "A machine for all classes at once, on kernel values.");
    nb::class_<RowStart>(m, "RowStart", "Rows of coefficients of some examples to start from, and a free bias.")
        .def(
            "__init__",
            [](RowStart* self, const Vector<Index>& s, const Array<const double, nb::ndim<2>>& r,
               const Vector<double>& b) { new (self) RowStart(start_from(s, r, b)); },
            nb::arg("support"), nb::arg("rows"), nb::arg("bias"));
    using Result = JointResult;
    nb::class_<Result> result(m, "JointResult", "A trained joint machine.");
    read_only(result, Field{"support", &Result::support, "Examples with a coefficient, in the session's numbering."},
              Field{"rows", &Result::rows, "Their coefficients, a row of one for each class."},
              Field{"intercept", &Result::intercept, "Of each class."}, Field{"primal", &Result::primal, "Objective."},
              Field{"dual", &Result::dual, "Objective, maximised."},
              Field{"violation", &Result::violation, "Of the optimality conditions, Hsu & Lin (21)."},
              Field{"iterations", &Result::iterations, "Exact steps."},
              Field{"bias_steps", &Result::bias_steps, "Proximal steps on a free bias."},
              Field{"status", &Result::status, "Why it ended."},
              Field{"evaluations", &Result::evaluations, "Kernel values computed."},
              Field{"single_precision", &Result::single_precision, "Whether kernel values were float32."},
              Field{"whole_matrix", &Result::whole_matrix, "Whether the whole kernel matrix was there."},
              Field{"interior_point", &Result::interior_point, "Whether an interior-point method took over."});
    session.def("train_joint", &bound_train_joint, nb::arg("problem"), nb::arg("settings"), nb::kw_only(),
                nb::arg("start") = nb::none(), nb::arg("refine") = true,
                nb::arg("time_limit") = std::numeric_limits<double>::infinity(), nb::arg("progress") = nb::none(),
                "Train a machine for all classes at once.");
}

}  // namespace polymargin::bindings
