"""Multi-class support vector machines: fast, certified, comparable.

Every machine is a scikit-learn classifier; every fit reports how optimal it is.
"""

from importlib.metadata import version as _version

from polymargin.certificate import Certificate, certify
from polymargin.machines import (
    CrammerSingerSVC,
    LinearProgramSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    SoftmaxSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
)
from polymargin.storage import load_model, save_model

__version__ = _version("polymargin")

__all__ = [
    "Certificate",
    "CrammerSingerSVC",
    "LinearProgramSVC",
    "OneVsOneSVC",
    "OneVsRestSVC",
    "SoftmaxSVC",
    "UncertaintySVC",
    "WestonWatkinsSVC",
    "__version__",
    "certify",
    "load_model",
    "save_model",
]
