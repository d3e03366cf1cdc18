"""Multi-class support vector machines: fast, certified, comparable.

Every machine is a scikit-learn classifier; every fit reports how optimal it is.
"""

from importlib.metadata import version as _version
from typing import TYPE_CHECKING

from polymargin.support.lazy import loaded_when_asked

if TYPE_CHECKING:
    from polymargin.certificate import Certificate, certify
    from polymargin.comparison import Comparison, compare
    from polymargin.estimators import (
        AbsoluteMaximumSVC,
        CrammerSingerSVC,
        GenSVC,
        JointSVC,
        LeeLinWahbaSVC,
        LinearProgramSVC,
        MaximumMarginRegressionSVC,
        OneVsOneSVC,
        OneVsRestSVC,
        OutputCodeSVC,
        ReinforcedSVC,
        SoftmaxSVC,
        TotalMaximumSVC,
        TotalSumSVC,
        UncertaintySVC,
        WestonWatkinsSVC,
    )
    from polymargin.storage import load_model, save_model

__getattr__, __dir__ = loaded_when_asked(
    __name__,
    {
        "AbsoluteMaximumSVC": "polymargin.estimators",
        "Certificate": "polymargin.certificate",
        "Comparison": "polymargin.comparison",
        "CrammerSingerSVC": "polymargin.estimators",
        "GenSVC": "polymargin.estimators",
        "JointSVC": "polymargin.estimators",
        "LeeLinWahbaSVC": "polymargin.estimators",
        "LinearProgramSVC": "polymargin.estimators",
        "MaximumMarginRegressionSVC": "polymargin.estimators",
        "OneVsOneSVC": "polymargin.estimators",
        "OneVsRestSVC": "polymargin.estimators",
        "OutputCodeSVC": "polymargin.estimators",
        "ReinforcedSVC": "polymargin.estimators",
        "SoftmaxSVC": "polymargin.estimators",
        "TotalMaximumSVC": "polymargin.estimators",
        "TotalSumSVC": "polymargin.estimators",
        "UncertaintySVC": "polymargin.estimators",
        "WestonWatkinsSVC": "polymargin.estimators",
        "certify": "polymargin.certificate",
        "compare": "polymargin.comparison",
        "load_model": "polymargin.storage",
        "save_model": "polymargin.storage",
    },
    modules=("comparison", "costs", "estimators", "features", "plots", "selection", "storage"),
)

__version__ = _version("polymargin")

__all__ = [
    "AbsoluteMaximumSVC",
    "Certificate",
    "Comparison",
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
    "__version__",
    "certify",
    "compare",
    "load_model",
    "save_model",
]
