#include "session.hpp"

namespace polymargin::bindings {
namespace {

void make_session(Session* place, const Data& data, const KernelSpec& kernel, const Vector<Index>& order,
                  double largest_bound, double tolerance, bool whole, Index budget_bytes, int threads, double share) {
    TrainingData training{data.view, kernel, {order.data(), order.data() + order.size()}, budget_bytes, threads, whole};
    new (place) Session{data, KernelSession(std::move(training), {largest_bound, tolerance, share}, scipy_blas())};
}

}  // namespace

void bind_session(nb::module_& m) {
    nb::class_<Session> session(m, "KernelSession",
                                "Trains machines on one data set and kernel, and keeps kernel values between calls.");
    session.def("__init__", &make_session, nb::arg("data"), nb::arg("kernel"), nb::arg("order"),
                nb::arg("largest_bound"), nb::arg("tolerance"), nb::arg("whole"), nb::arg("budget_bytes"),
                nb::arg("threads"), nb::arg("share") = 0.5);
    bind_train(session);
    bind_train_together(session);
}

}  // namespace polymargin::bindings
