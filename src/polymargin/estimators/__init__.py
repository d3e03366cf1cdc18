"""What a person fits."""

from typing import TYPE_CHECKING

from polymargin.estimators.crammer_singer import CrammerSingerSVC
from polymargin.estimators.one_vs_one import OneVsOneSVC
from polymargin.estimators.one_vs_rest import OneVsRestSVC
from polymargin.estimators.weston_watkins import WestonWatkinsSVC
from polymargin.support.lazy import loaded_when_asked

if TYPE_CHECKING:
    from polymargin.estimators.linear_program import LinearProgramSVC
    from polymargin.estimators.softmax import SoftmaxSVC
    from polymargin.estimators.uncertainty import UncertaintySVC

__getattr__, __dir__ = loaded_when_asked(
    __name__,
    {
        "LinearProgramSVC": "polymargin.estimators.linear_program",
        "SoftmaxSVC": "polymargin.estimators.softmax",
        "UncertaintySVC": "polymargin.estimators.uncertainty",
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
