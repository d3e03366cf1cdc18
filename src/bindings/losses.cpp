#include "machine/train_linear.hpp"
#include "records.hpp"

namespace polymargin::bindings {
namespace {

/// One exact step, so that it can be held against a generic solver.
std::optional<Owned<double>> bound_step(const AnyLoss& loss, const Vector<double>& gradient, double curvature,
                                        Index label, double cost_bound, const Vector<double>& row) {
    if (gradient.size() != row.size() || label < 0 || label >= static_cast<Index>(row.size())) {
        throw std::invalid_argument("gradient and row must have a number for each class, and label must be one");
    }
    std::vector<double> beta = copied(row);
    const auto step = [&](const auto& any) {
        return any.step(as_span(gradient), curvature, {label, cost_bound}, beta);
    };
    return std::visit(step, loss) ? std::optional(owned(std::move(beta))) : std::nullopt;
}

template <class Loss>
void bind_with_costs(nb::module_& m, const char* name) {
    using Costs = WithCosts<Loss>;
    using Table = Array<const double, nb::ndim<2>>;
    const auto make = [](Costs* self, const Loss& loss, const Table& targets) {
        if (targets.shape(0) != targets.shape(1)) throw std::invalid_argument("targets must be classes x classes");
        new (self) Costs(loss, static_cast<Index>(targets.shape(0)), copied(targets));
    };
    nb::class_<Costs>(m, name, "The loss with a margin for each class of an example (row) and each other one (column)")
        .def("__init__", make, nb::arg("loss"), nb::arg("targets"));
}

}  // namespace

void bind_losses(nb::module_& m) {
    nb::enum_<Status>(m, "Status", "Why a solver stopped.")
        .value("converged", Status::converged, "It found what was asked for.")
        .value("max_iter", Status::max_iterations)
        .value("time_limit", Status::time_limit)
        .value("stopped", Status::stopped, "Whoever waits asked for it.")
        .value("precision", Status::precision, "Rounding hides what is left.")
        .value("unbounded", Status::unbounded, "The hard margin does not exist.");
    nb::enum_<BiasKind>(m, "Bias", "What the scores have besides the weights.")
        .value("none", BiasKind::none)
        .value("regularized", BiasKind::regularized, "Part of the weights: the kernel is K + 1.")
        .value("free", BiasKind::free);
    nb::class_<WestonWatkins>(m, "WestonWatkins", "sum_{m != y} max(0, margin - (s_y - s_m))")
        .def(nb::init<double>(), nb::arg("margin") = 2.0);
    nb::class_<CrammerSinger>(m, "CrammerSinger", "max_m (s_m + [m != y]) - s_y").def(nb::init<>());
    nb::class_<OneVsRest>(m, "OneVsRest", "sum_m max(0, 1 - (+-1) s_m), plus for m = y").def(nb::init<>());
    nb::class_<AbsoluteSum>(
        m, "AbsoluteSum", "own max(0, own_target - s_y) + others sum_{m != y} max(0, 1 + s_m), scores summing to zero")
        .def(nb::init<double, double, double>(), nb::arg("own") = 0.0, nb::arg("others") = 1.0,
             nb::arg("own_target") = 1.0);
    nb::class_<AbsoluteMaximum>(
        m, "AbsoluteMaximum",
        "max_m max(0, 1 - (+-1) s_m), plus for m = y, which counts if own; scores summing to zero")
        .def(nb::init<bool>(), nb::arg("own") = false);
    nb::class_<SquaredWestonWatkins>(m, "SquaredWestonWatkins", "sum_{m != y} max(0, margin - (s_y - s_m))^2")
        .def(nb::init<double>(), nb::arg("margin") = 2.0);
    nb::class_<SquaredCrammerSinger>(m, "SquaredCrammerSinger", "(max_m (s_m + [m != y]) - s_y)^2").def(nb::init<>());
    nb::class_<SquaredOneVsRest>(m, "SquaredOneVsRest", "sum_m max(0, 1 - (+-1) s_m)^2, plus for m = y")
        .def(nb::init<>());
    bind_with_costs<WestonWatkins>(m, "WestonWatkinsCosts");
    bind_with_costs<CrammerSinger>(m, "CrammerSingerCosts");
    bind_with_costs<AbsoluteSum>(m, "AbsoluteSumCosts");
    bind_with_costs<AbsoluteMaximum>(m, "AbsoluteMaximumCosts");
    m.def("exact_step", &bound_step, nb::arg("loss"), nb::arg("gradient"), nb::arg("curvature"), nb::arg("label"),
          nb::arg("cost_bound"), nb::arg("row"),
          "Return the row of one example that is best while all others stay; None if there is no best one.");
}

}  // namespace polymargin::bindings
