#include "machine/train_joint.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

#include "names.hpp"
#include "session.hpp"

namespace polymargin::bindings {

AnyLoss multiclass_loss(const std::string& name, double margin) {
    if (name == "weston-watkins") return WestonWatkins(margin);
    if (name == "crammer-singer") return CrammerSinger();
    throw std::invalid_argument("there is no loss named " + name);
}

BiasKind bias_from(const std::optional<std::string>& name) {
    if (!name) return BiasKind::none;
    if (*name == "regularized") return BiasKind::regularized;
    if (*name == "free") return BiasKind::free;
    throw std::invalid_argument("bias must be None, 'regularized' or 'free', got " + *name);
}

namespace {

nb::dict to_python(JointReport report) {
    nb::dict out;
    out["support"] = to_numpy(std::move(report.support));
    out["rows"] = to_numpy(std::move(report.rows));
    out["intercept"] = to_numpy(std::move(report.intercept));
    out["primal"] = report.objectives.primal;
    out["dual"] = report.objectives.dual;
    out["violation"] = report.violation;
    out["iterations"] = report.iterations;
    out["bias_steps"] = report.bias_steps;
    out["status"] = name_of(report.status);
    out["evaluations"] = report.evaluations;
    out["single_precision"] = report.single_precision;
    out["whole_matrix"] = report.whole_matrix;
    return out;
}

nb::dict bound_train_joint(Session& session, const Vector<double>& upper, const Vector<Index>& labels, Index classes,
                           const std::string& loss, double margin, const std::optional<std::string>& bias,
                           const std::optional<nb::tuple>& start, double gap, bool refine, double tolerance,
                           Index max_iterations, double time_limit, const nb::object& progress) {
    JointProblem problem;
    problem.cost_bounds.assign(upper.data(), upper.data() + upper.size());
    problem.labels.assign(labels.data(), labels.data() + labels.size());
    problem.classes = classes;
    problem.loss = multiclass_loss(loss, margin);
    problem.bias = bias_from(bias);
    if (start) {
        const auto support = nb::cast<Vector<Index>>((*start)[0]);
        const auto rows = nb::cast<Vector<double>>((*start)[1]);
        problem.start_support.assign(support.data(), support.data() + support.size());
        problem.start_rows.assign(rows.data(), rows.data() + rows.size());
        const auto shift = nb::cast<Vector<double>>((*start)[2]);
        problem.start_bias.assign(shift.data(), shift.data() + shift.size());
    }
    problem.refine = refine;
    problem.settings.tolerance = tolerance;
    problem.settings.gap = gap;
    problem.settings.max_iterations = max_iterations;
    Control control(time_limit);
    JointReport report;
    run_without_gil([&] { report = train_joint(session.kernel, problem, control); }, control, progress);
    return to_python(std::move(report));
}

/// One exact step, so that it can be held against a generic solver.
std::optional<nb::object> bound_step(const std::string& loss, double margin, const Vector<double>& gradient,
                                     double curvature, Index label, double bound, const Vector<double>& row) {
    if (gradient.size() != row.size() || label < 0 || label >= static_cast<Index>(row.size())) {
        throw std::invalid_argument("gradient and row must have a number for each class, and label must be one");
    }
    std::vector<double> beta(row.data(), row.data() + row.size());
    const bool exists =
        std::visit([&](const auto& any) { return any.step(as_span(gradient), curvature, Example{label, bound}, beta); },
                   multiclass_loss(loss, margin));
    if (!exists) return std::nullopt;
    return to_numpy(std::move(beta));
}

}  // namespace

void bind_train_joint(nb::class_<Session>& session) {
    session.def("train_together", &bound_train_joint, nb::arg("upper"), nb::arg("labels"), nb::arg("classes"),
                nb::arg("loss"), nb::arg("margin"), nb::arg("bias").none(), nb::arg("start").none(), nb::arg("gap"),
                nb::arg("refine"), nb::arg("tolerance"), nb::arg("max_iterations"), nb::arg("time_limit"),
                nb::arg("progress").none(), "Train an all-together machine; returns its solution.");
}

void bind_exact_step(nb::module_& m) {
    m.def("exact_step", &bound_step, nb::arg("loss"), nb::arg("margin"), nb::arg("gradient"), nb::arg("curvature"),
          nb::arg("label"), nb::arg("bound"), nb::arg("row"),
          "Return the row of one example that is best while all others stay; None if there is no best one.");
}

}  // namespace polymargin::bindings
