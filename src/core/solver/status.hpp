#pragma once

#include "support/control.hpp"

namespace polymargin {

/// Why a solver stopped.
enum class Status {
    converged,
    max_iterations,
    time_limit,
    stopped,    ///< whoever waits asked for it
    precision,  ///< rounding hides what is left of the violation
    unbounded,  ///< the hard margin does not exist
};

/// Why a control asks to stop.
[[nodiscard]] inline Status stop_reason(const Control& control) {
    return control.cancelled() ? Status::stopped : Status::time_limit;
}

/// As users know it.
[[nodiscard]] constexpr const char* name_of(Status status) {
    switch (status) {
        case Status::converged:
            return "converged";
        case Status::max_iterations:
            return "max_iter";
        case Status::time_limit:
            return "time_limit";
        case Status::stopped:
            return "stopped";
        case Status::precision:
            return "precision";
        case Status::unbounded:
            return "unbounded";
    }
    return "";
}

}  // namespace polymargin
