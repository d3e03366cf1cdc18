#include "session.hpp"

namespace polymargin::bindings {
namespace {

void make_session(Session* place, const Data& data, const KernelSpec& kernel, const Vector<Index>& order,
                  const Exactness& exactness, const Resources& resources) {
    new (place) Session{data, KernelSession({resources, data.view, kernel, copied(order)}, exactness, scipy_blas())};
}

bool suffices(double largest_value, const Exactness& exactness) {
    return single_precision_suffices({.type = KernelType::precomputed}, largest_value, exactness.largest_cost_bound,
                                     exactness.accuracy());
}

}  // namespace

void bind_session(nb::module_& m) {
    bind_settings<Exactness>(
        m, "Exactness", "What kernel values have to be exact enough for.",
        Field{"largest_cost_bound", &Exactness::largest_cost_bound, "No C_i will be larger."},
        Field{"tolerance", &Exactness::tolerance, "No solver goes on below this violation."},
        Field{"rough", &Exactness::rough, "Answers will be compared and thrown away: rounding may take more."});
    bind_settings<Resources>(
        m, "Resources", "What a session may take.",
        Field{"budget_bytes", &Resources::budget_bytes, "Memory for kernel values and the ordered copy of the data."},
        Field{"threads", &Resources::threads, "Threads of every call."},
        Field{"whole", &Resources::whole, "Have the whole matrix first, if it fits: many problems will follow."});
    m.def("single_precision_suffices", &suffices, nb::arg("largest_value"), nb::arg("exactness"),
          "Return whether stored kernel values may be in single precision.");
    nb::class_<Session> session(m, "KernelSession",
                                "Trains machines on one data set and kernel, and keeps kernel values between calls.");
    session.def("__init__", &make_session, nb::arg("data"), nb::arg("kernel"), nb::arg("order"), nb::arg("exactness"),
                nb::arg("resources"));
    bind_train_binary(m, session);
    bind_train_joint(m, session);
}

}  // namespace polymargin::bindings
