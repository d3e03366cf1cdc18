"""The machines: what a person fits."""

from typing import TYPE_CHECKING

from polymargin._lazy import loaded_when_asked
from polymargin.machines.crammer_singer import CrammerSingerSVC
from polymargin.machines.one_vs_one import OneVsOneSVC
from polymargin.machines.one_vs_rest import OneVsRestSVC
from polymargin.machines.weston_watkins import WestonWatkinsSVC

if TYPE_CHECKING:
    from polymargin.machines.linear_program import LinearProgramSVC
    from polymargin.machines.softmax import SoftmaxSVC
    from polymargin.machines.uncertainty import UncertaintySVC

__getattr__, __dir__ = loaded_when_asked(
    __name__,
    {
        "LinearProgramSVC": "polymargin.machines.linear_program",
        "SoftmaxSVC": "polymargin.machines.softmax",
        "UncertaintySVC": "polymargin.machines.uncertainty",
    },
)

__all__ = [
    "CrammerSingerSVC",
    "LinearProgramSVC",
    "OneVsOneSVC",
    "OneVsRestSVC",
    "SoftmaxSVC",
    "UncertaintySVC",
    "WestonWatkinsSVC",
]
