"""The machines: what a person fits."""

from polymargin.machines.crammer_singer import CrammerSingerSVC
from polymargin.machines.linear_program import LinearProgramSVC
from polymargin.machines.one_vs_one import OneVsOneSVC
from polymargin.machines.one_vs_rest import OneVsRestSVC
from polymargin.machines.softmax import SoftmaxSVC
from polymargin.machines.uncertainty import UncertaintySVC
from polymargin.machines.weston_watkins import WestonWatkinsSVC

__all__ = [
    "CrammerSingerSVC",
    "LinearProgramSVC",
    "OneVsOneSVC",
    "OneVsRestSVC",
    "SoftmaxSVC",
    "UncertaintySVC",
    "WestonWatkinsSVC",
]
