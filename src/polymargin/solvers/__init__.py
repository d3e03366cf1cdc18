"""Solvers written in Python.

Each takes arrays, what it asks for besides as a protocol, and :class:`Limits`, and returns a frozen result.
"""

from typing import TYPE_CHECKING

from polymargin.solvers.limits import Limits, Progress, Status
from polymargin.support.lazy import loaded_from

if TYPE_CHECKING:
    from polymargin.solvers.cutting_plane import (
        CuttingPlaneResult,
        CuttingPlaneSettings,
        HingeLoss,
        solve_cutting_plane,
    )
    from polymargin.solvers.hinges import Differences, SignedScores
    from polymargin.solvers.huber_loss import HuberNormLoss, simplex
    from polymargin.solvers.interior_point import MATRICES_NEEDED
    from polymargin.solvers.linear_interior_point import Bounds, InteriorResult, LinearInterior, LinearInteriorSettings
    from polymargin.solvers.linear_program import (
        LinearProgramResult,
        LinearProgramSettings,
        Start,
        solve_linear_program,
    )
    from polymargin.solvers.linear_program_problem import MARGIN, KernelValues
    from polymargin.solvers.linear_program_whole import WholeProgramSettings
    from polymargin.solvers.primal_losses import OneVsRestLoss, PrimalLoss, SoftmaxLoss
    from polymargin.solvers.primal_newton import NewtonResult, NewtonSettings, Polish, minimize
    from polymargin.solvers.primal_objective import Objective, class_factor

_MODULES = {
    "cutting_plane": ("CuttingPlaneResult", "CuttingPlaneSettings", "HingeLoss", "solve_cutting_plane"),
    "hinges": ("Differences", "SignedScores"),
    "huber_loss": ("HuberNormLoss", "simplex"),
    "interior_point": ("MATRICES_NEEDED",),
    "linear_interior_point": ("Bounds", "InteriorResult", "LinearInterior", "LinearInteriorSettings"),
    "linear_program": ("LinearProgramResult", "LinearProgramSettings", "Start", "solve_linear_program"),
    "linear_program_problem": ("MARGIN", "KernelValues"),
    "linear_program_whole": ("WholeProgramSettings",),
    "primal_losses": ("OneVsRestLoss", "PrimalLoss", "SoftmaxLoss"),
    "primal_newton": ("NewtonSettings", "NewtonResult", "Polish", "minimize"),
    "primal_objective": ("Objective", "class_factor"),
}
__getattr__, __dir__ = loaded_from(__name__, _MODULES)

__all__ = [
    "MARGIN",
    "MATRICES_NEEDED",
    "Bounds",
    "CuttingPlaneResult",
    "CuttingPlaneSettings",
    "Differences",
    "HingeLoss",
    "HuberNormLoss",
    "InteriorResult",
    "KernelValues",
    "Limits",
    "LinearInterior",
    "LinearInteriorSettings",
    "LinearProgramResult",
    "LinearProgramSettings",
    "NewtonResult",
    "NewtonSettings",
    "Objective",
    "OneVsRestLoss",
    "Polish",
    "PrimalLoss",
    "Progress",
    "SignedScores",
    "SoftmaxLoss",
    "Start",
    "Status",
    "WholeProgramSettings",
    "class_factor",
    "minimize",
    "simplex",
    "solve_cutting_plane",
    "solve_linear_program",
]
