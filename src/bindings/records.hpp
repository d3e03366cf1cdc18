#pragma once

#include <nanobind/stl/variant.h>

#include <limits>

#include "bindings.hpp"
#include "machine/train_joint.hpp"
#include "problem/row_start.hpp"

namespace polymargin::bindings {

/// A member of a plain struct as Python sees it.
template <class Struct, class Member>
struct Field {
    const char* name;
    Member Struct::* member;
    const char* doc;
};

/// Members of a result, to be read. An array comes without a copy, anything else as one.
template <class T, class... Fields>
void read_only(nb::class_<T>& bound, const Fields&... fields) {
    (bound.def_ro(fields.name, fields.member, nb::rv_policy::automatic, fields.doc), ...);
}

/// A struct with defaults: a constructor with a keyword for each member, and members to be read and written.
template <class T, class... Struct, class... Member>
nb::class_<T> bind_settings(nb::module_& m, const char* name, const char* doc, Field<Struct, Member>... fields) {
    nb::class_<T> bound(m, name, doc);
    const auto make = [... at = fields.member](T* self, Member... values) {
        new (self) T();
        ((self->*at = values), ...);
    };
    bound.def("__init__", make, nb::kw_only(), (nb::arg(fields.name) = T().*fields.member)...);
    (bound.def_rw(fields.name, fields.member, fields.doc), ...);
    return bound;
}

/// A problem whose solution has a row of coefficients for each example.
template <class T>
void bind_row_problem(nb::module_& m, const char* name, const char* doc) {
    const auto make = [](T* self, const decltype(T::loss)& loss, BiasKind bias, const Vector<double>& cost_bounds,
                         const Vector<Index>& labels, Index classes) {
        const bool coupled = std::visit([]<class Loss>(const Loss&) { return MulticlassLoss<Loss>; }, loss);
        if (std::is_same_v<T, JointProblem> && !coupled) throw nb::type_error("a joint problem needs a joint loss");
        check_labels(as_span(labels), as_span(cost_bounds), classes, !coupled);
        T* problem = new (self) T();
        problem->loss = loss;
        problem->bias = bias;
        problem->cost_bounds = copied(cost_bounds);
        problem->labels = copied(labels);
        problem->classes = classes;
    };
    nb::class_<T> bound(m, name, doc);
    bound.def("__init__", make, nb::arg("loss"), nb::arg("bias"), nb::arg("cost_bounds"), nb::arg("labels"),
              nb::arg("classes"));
    read_only(bound, Field{"loss", &T::loss, "What a row of scores costs."},
              Field{"bias", &T::bias, "What the scores have besides the weights."},
              Field{"classes", &T::classes, "Columns of scores."});
}

/// The problem with a start.
template <class T>
T started(const T& problem, const std::optional<RowStart>& start) {
    T request = problem;
    if (start) {
        start->check(std::ssize(problem.labels), problem.classes);
        request.start_support = start->support;
        request.start_rows = start->rows;
        request.start_bias = start->bias;
    }
    return request;
}

}  // namespace polymargin::bindings
