#pragma once

#include "bindings.hpp"
#include "machine/storage.hpp"

namespace polymargin::bindings {

/// A kernel session, with the data that it reads kept alive.
struct Session {
    Data data;
    KernelSession kernel;
};

void bind_train(nb::class_<Session>& session);
void bind_train_joint(nb::class_<Session>& session);

}  // namespace polymargin::bindings
