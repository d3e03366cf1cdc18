"""Multi-class support vector machines: fast, certified, comparable.

Every machine is a scikit-learn classifier; every fit reports how optimal it is.
"""

from importlib.metadata import version as _version

from polymargin.machines import OneVsOneSVC, OneVsRestSVC

__version__ = _version("polymargin")

__all__ = ["OneVsOneSVC", "OneVsRestSVC", "__version__"]
