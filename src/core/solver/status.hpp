#pragma once

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

}  // namespace polymargin
