"""Kernels: one table of them, kernels with their numbers, and sessions that compute their values."""

from typing import TYPE_CHECKING

from polymargin.support.lazy import loaded_from

if TYPE_CHECKING:
    from polymargin.kernels.constraints import KERNEL_CONSTRAINTS
    from polymargin.kernels.documentation import kernel_documentation
    from polymargin.kernels.kernel import Kernel, SharedKernel, resolve_gamma
    from polymargin.kernels.ordered import formula_values, kernel_rows, kernel_sizes, ordered_products, ordered_sums
    from polymargin.kernels.session import KernelSession
    from polymargin.kernels.table import (
        KERNELS,
        KernelEntry,
        KernelName,
        KernelParameter,
        is_precomputed,
        kernel_entry,
        names_of_functions,
        readers,
        uses_gamma,
    )

__getattr__, __dir__ = loaded_from(
    __name__,
    {
        "constraints": ("KERNEL_CONSTRAINTS",),
        "documentation": ("kernel_documentation",),
        "kernel": (
            "Kernel",
            "SharedKernel",
            "resolve_gamma",
        ),
        "ordered": (
            "formula_values",
            "kernel_rows",
            "kernel_sizes",
            "ordered_products",
            "ordered_sums",
        ),
        "session": ("KernelSession",),
        "table": (
            "KERNELS",
            "KernelEntry",
            "KernelName",
            "KernelParameter",
            "is_precomputed",
            "kernel_entry",
            "names_of_functions",
            "readers",
            "uses_gamma",
        ),
    },
)

__all__ = [
    "KERNELS",
    "KERNEL_CONSTRAINTS",
    "Kernel",
    "KernelEntry",
    "KernelName",
    "KernelParameter",
    "KernelSession",
    "SharedKernel",
    "formula_values",
    "is_precomputed",
    "kernel_documentation",
    "kernel_entry",
    "kernel_rows",
    "kernel_sizes",
    "names_of_functions",
    "ordered_products",
    "ordered_sums",
    "readers",
    "resolve_gamma",
    "uses_gamma",
]
