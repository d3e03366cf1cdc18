#pragma once

#include <span>

#include "kernel/data.hpp"
#include "kernel/function.hpp"
#include "support/blas.hpp"
#include "support/workers.hpp"

namespace polymargin {

/// The sums over features that a kernel reads, of all pairs of examples, to `out` (rows x rows): kernels that differ in
/// their parameters share them, see `apply_kernel`. Throws std::invalid_argument if the kernel reads something else.
/// A stop leaves the rest undone.
template <class Real>
void pair_sums(const KernelSpec& kernel, const DataView& data, std::span<Real> out, const Blas& blas,
               const Workers& workers);

}  // namespace polymargin
