#pragma once

#include "machine/kernel_session.hpp"
#include "records.hpp"

namespace polymargin::bindings {

/// A kernel session, with the data that it reads kept alive.
struct Session {
    Data data;
    KernelSession kernel;
};

void bind_train_binary(nb::module_& m, nb::class_<Session>& session);
void bind_train_joint(nb::module_& m, nb::class_<Session>& session);

}  // namespace polymargin::bindings
