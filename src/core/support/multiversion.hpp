#pragma once

/// POLYMARGIN_MULTIVERSION compiles a function for AVX-512, AVX2 and the baseline and lets the loader choose,
/// so that one build is fast on every machine. Elsewhere (other processors, object formats without
/// indirect functions, sanitizer builds, which resolve before their runtime is ready) it is one plain function.
#if defined(__x86_64__) && defined(__ELF__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define POLYMARGIN_HAS_VERSIONS
#define POLYMARGIN_MULTIVERSION __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define POLYMARGIN_MULTIVERSION
#endif

/// Helpers of multi-versioned functions must be inlined to share the caller's instruction set.
#if defined(__GNUC__)
#define POLYMARGIN_INLINED __attribute__((always_inline))
#else
#define POLYMARGIN_INLINED
#endif
#define POLYMARGIN_INLINE inline POLYMARGIN_INLINED
