"""Solvers written in Python."""

from polymargin.solvers.primal_losses import OneVsRestLoss, SoftmaxLoss
from polymargin.solvers.primal_newton import Outcome, Progress, minimize
from polymargin.solvers.primal_objective import Objective, class_factor

__all__ = ["Objective", "OneVsRestLoss", "Outcome", "Progress", "SoftmaxLoss", "class_factor", "minimize"]
