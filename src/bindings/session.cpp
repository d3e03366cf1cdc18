#include "session.hpp"

namespace polymargin::bindings {
namespace {

void make_session(Session* place, const Data& data, const KernelSpec& kernel, const Vector<Index>& order,
                  double largest_bound, double tolerance, bool whole, Index budget_bytes, int threads, bool rough) {
    TrainingData training{data.view, kernel, {order.data(), order.data() + order.size()}, budget_bytes, threads, whole};
    new (place) Session{data, KernelSession(std::move(training), {largest_bound, tolerance, rough}, scipy_blas())};
}

}  // namespace

void bind_session(nb::module_& m) {
    nb::class_<Session> session(m, "KernelSession",
                                "Trains machines on one data set and kernel, and keeps kernel values between calls.");
    session.def("__init__", &make_session, nb::arg("data"), nb::arg("kernel"), nb::arg("order"),
                nb::arg("largest_bound"), nb::arg("tolerance"), nb::arg("whole"), nb::arg("budget_bytes"),
                nb::arg("threads"), nb::arg("rough") = false);
    m.def(
        "single_precision_suffices",
        [](double largest_value, double largest_bound, double tolerance, bool rough) {
            const Exactness exactness{largest_bound, tolerance, rough};
            return single_precision_suffices({.type = KernelType::precomputed}, largest_value, largest_bound,
                                             exactness.accuracy());
        },
        nb::arg("largest_value"), nb::arg("largest_bound"), nb::arg("tolerance"), nb::arg("rough"),
        "Return whether stored kernel values may be in single precision.");
    bind_train(session);
    bind_train_joint(session);
}

}  // namespace polymargin::bindings
