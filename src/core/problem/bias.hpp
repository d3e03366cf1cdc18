#pragma once

namespace polymargin {

enum class BiasKind {
    none,
    regularized,  ///< part of w: the kernel is K + 1, Hsu & Lin (9) and (24)
    free,         ///< as in Hsu & Lin (4) and (23)
};

}  // namespace polymargin
