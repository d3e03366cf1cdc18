"""The machines: what a person fits."""

from polymargin.machines.one_vs_one import OneVsOneSVC
from polymargin.machines.one_vs_rest import OneVsRestSVC

__all__ = ["OneVsOneSVC", "OneVsRestSVC"]
