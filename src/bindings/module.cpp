#include "bindings.hpp"

NB_MODULE(_core, m) {
    m.doc() = "The compiled core of polymargin: kernels, problems, solvers.";
    polymargin::bindings::bind_data(m);
    polymargin::bindings::bind_losses(m);
    polymargin::bindings::bind_session(m);
    polymargin::bindings::bind_train_linear(m);
    polymargin::bindings::bind_scores(m);
    polymargin::bindings::bind_storage(m);
    polymargin::bindings::bind_runtime(m);
}
