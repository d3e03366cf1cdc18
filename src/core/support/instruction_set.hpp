#pragma once

#include <string_view>

namespace polymargin {

/// The version of the multi-versioned functions that this processor runs: "avx512", "avx2" or "baseline".
[[nodiscard]] std::string_view instruction_set();

}  // namespace polymargin
