"""What a person fits."""

from typing import TYPE_CHECKING

from polymargin.support.lazy import loaded_from

if TYPE_CHECKING:
    from polymargin.estimators.absolute_margins import (
        AbsoluteMaximumSVC,
        LeeLinWahbaSVC,
        MaximumMarginRegressionSVC,
        ReinforcedSVC,
        TotalMaximumSVC,
        TotalSumSVC,
    )
    from polymargin.estimators.crammer_singer import CrammerSingerSVC
    from polymargin.estimators.gensvc import GenSVC
    from polymargin.estimators.joint import JointSVC
    from polymargin.estimators.linear_program import LinearProgramSVC
    from polymargin.estimators.one_vs_one import OneVsOneSVC
    from polymargin.estimators.one_vs_rest import OneVsRestSVC
    from polymargin.estimators.output_code import OutputCodeSVC
    from polymargin.estimators.softmax import SoftmaxSVC
    from polymargin.estimators.uncertainty import UncertaintySVC
    from polymargin.estimators.weston_watkins import WestonWatkinsSVC

__getattr__, __dir__ = loaded_from(
    __name__,
    {
        "absolute_margins": (
            "AbsoluteMaximumSVC",
            "LeeLinWahbaSVC",
            "MaximumMarginRegressionSVC",
            "ReinforcedSVC",
            "TotalMaximumSVC",
            "TotalSumSVC",
        ),
        "crammer_singer": ("CrammerSingerSVC",),
        "gensvc": ("GenSVC",),
        "joint": ("JointSVC",),
        "linear_program": ("LinearProgramSVC",),
        "one_vs_one": ("OneVsOneSVC",),
        "one_vs_rest": ("OneVsRestSVC",),
        "output_code": ("OutputCodeSVC",),
        "softmax": ("SoftmaxSVC",),
        "uncertainty": ("UncertaintySVC",),
        "weston_watkins": ("WestonWatkinsSVC",),
    },
)

__all__ = [
    "AbsoluteMaximumSVC",
    "CrammerSingerSVC",
    "GenSVC",
    "JointSVC",
    "LeeLinWahbaSVC",
    "LinearProgramSVC",
    "MaximumMarginRegressionSVC",
    "OneVsOneSVC",
    "OneVsRestSVC",
    "OutputCodeSVC",
    "ReinforcedSVC",
    "SoftmaxSVC",
    "TotalMaximumSVC",
    "TotalSumSVC",
    "UncertaintySVC",
    "WestonWatkinsSVC",
]
