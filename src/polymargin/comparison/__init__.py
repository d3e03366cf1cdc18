"""Machines side by side: the experiment, its statistics, its reports."""

from polymargin.comparison.experiment import compare
from polymargin.comparison.result import Comparison, MachineResult

__all__ = ["Comparison", "MachineResult", "compare"]
