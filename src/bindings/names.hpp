#pragma once

#include <optional>
#include <string>

#include "machine/train_joint.hpp"

namespace polymargin::bindings {

/// What Python calls by name.
[[nodiscard]] AnyLoss multiclass_loss(const std::string& name, double margin);
[[nodiscard]] BiasKind bias_from(const std::optional<std::string>& name);

}  // namespace polymargin::bindings
