"""A machine of `family.py` in a process of its own, as in the sweep; any class that `polymargin` exports."""

import inspect
import sys
import warnings
from pathlib import Path
from typing import Any

from sweep_worker import FACTS, REPEATS, SHORT, Service, SweepWorker
from worker import serve, timed

import polymargin

REFERENCE = "OneVsOneSVC"
MOST_CERTIFIED = 3_000
"""Rows up to which the certificate is computed again, from data and model alone."""


class FamilyWorker(SweepWorker):
    """The parent's handle; the contender is the name of a class."""

    script = Path(__file__)


def machines() -> list[str]:
    """Every machine that is exported but the one that the others are compared with."""
    return [name for name in polymargin.__all__ if name.endswith("SVC") and name != REFERENCE]


def made(name: str, threads: int, **options: Any) -> Any:
    """A machine with those of the options that it has."""
    machine = getattr(polymargin, name)
    known = inspect.signature(machine).parameters
    return machine(**{key: value for key, value in {"n_jobs": threads, **options}.items() if key in known})


class FamilyService(Service):
    """The worker's side: fits, and certifies what came of the last one."""

    def fit(self, C: float, gamma: float | str | None, **options: Any) -> dict[str, Any]:
        """Time a fit, a short one a few times; the gap is that of `certify`, where there is a dual."""
        taken: list[dict[str, float]] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            while not taken or (len(taken) < REPEATS and taken[-1]["seconds"] < SHORT):
                machine = made(self.contender, self.threads, C=C, gamma=gamma, **options)
                taken.append(timed(lambda machine=machine: machine.fit(self.X, self.y), collect=not taken)[1])
            facts = {name.strip("_"): getattr(machine, name) for name in FACTS if hasattr(machine, name)}
            if "duality_gap" in facts and len(self.y) <= MOST_CERTIFIED:
                facts["certified_gap"] = float(polymargin.certify(machine, self.X, self.y).duality_gap)
        times = min(taken, key=lambda each: each["seconds"])
        return {**times, **facts, "warnings": sorted({each.category.__name__ for each in caught})}


if __name__ == "__main__":
    serve(FamilyService, sys.argv[1], int(sys.argv[2]))
