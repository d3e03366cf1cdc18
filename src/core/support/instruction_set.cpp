#include "support/instruction_set.hpp"

#include "support/multiversion.hpp"

namespace polymargin {

std::string_view instruction_set() {
#ifdef POLYMARGIN_HAS_VERSIONS
    if (__builtin_cpu_supports("x86-64-v4")) return "avx512";
    if (__builtin_cpu_supports("x86-64-v3")) return "avx2";
#endif
    return "baseline";
}

}  // namespace polymargin
