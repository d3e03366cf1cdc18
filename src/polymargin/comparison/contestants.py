"""Who takes part: machines by their names in the literature, or estimators as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.pipeline import Pipeline

from polymargin import estimators as every_machine
from polymargin.estimators import OneVsOneSVC
from polymargin.selection.rate import last_step

# Names of the literature; a machine that is not listed goes by the name of its class.
DECISIONS = {"votes": "one-against-one", "dag": "DAG", "adag": "ADAG", "coupling": "coupling"}
NAMES = {
    "OneVsRestSVC": "one-against-all",
    "WestonWatkinsSVC": "Weston-Watkins",
    "CrammerSingerSVC": "Crammer-Singer",
    "UncertaintySVC": "uncertainty",
    "LinearProgramSVC": "linear-program",
    "SoftmaxSVC": "softmax",
    "GenSVC": "GenSVM",
    "OutputCodeSVC": "output-codes",
    "JointSVC": "joint",
    "LeeLinWahbaSVC": "Lee-Lin-Wahba",
    "ReinforcedSVC": "reinforced",
    "AbsoluteMaximumSVC": "ADM",
    "TotalMaximumSVC": "ATM",
    "TotalSumSVC": "ATS",
    "MaximumMarginRegressionSVC": "MMR",
}
CODES = {"dense": "dense-codes", "sparse": "sparse-codes"}  # of output codes that draw theirs
HSU_LIN = ("one-against-one", "DAG", "one-against-all", "Weston-Watkins", "Crammer-Singer")
ABSOLUTE = ("Lee-Lin-Wahba", "reinforced", "ADM", "ATM", "ATS", "MMR")
# Whom a word names. A machine of no group but "all" belongs into one: say here into which.
GROUPS = {
    "hsu-lin": HSU_LIN,
    "classic": (*HSU_LIN, "ADAG", "coupling", "uncertainty", "linear-program"),
    "family": ("Weston-Watkins", "Crammer-Singer", *ABSOLUTE),  # the joint machines of Dogan, Glasmachers & Igel
    "codes": ("output-codes", *CODES.values()),
    "smooth": ("softmax", "GenSVM"),
}
NOT_IN_ALL = (*ABSOLUTE, *GROUPS["codes"], "GenSVM", "joint")  # variants of others, or others by their parameters
SAME_FIT = ("votes", "dag", "adag")  # decisions that one fitted machine can take


@dataclass(frozen=True)
class Contestant:
    """An estimator with a name."""

    name: str
    estimator: Any

    @property
    def machine(self) -> Any:
        """The machine itself, without the steps before it."""
        return last_step(self.estimator)

    @property
    def prefix(self) -> str:
        """What comes before the names of the machine's parameters."""
        return f"{self.estimator.steps[-1][0]}__" if isinstance(self.estimator, Pipeline) else ""

    @property
    def decision(self) -> str | None:
        """How one-against-one decides, if others can decide on the same fit."""
        decision = self.machine.decision if isinstance(self.machine, OneVsOneSVC) else None
        return decision if decision in SAME_FIT else None

    @property
    def fit_key(self) -> str | None:
        """A text that is equal for machines which differ only in how they decide; None if there are no such."""
        if self.decision is None:
            return None
        same = clone(self.estimator).set_params(**{f"{self.prefix}decision": "votes"})
        return repr([type(same).__name__, *sorted(same.get_params().items())])


def known_machines() -> dict[str, BaseEstimator]:
    """Return every machine of the package by its name, those of Hsu and Lin (2002) first, in their order."""
    found: dict[str, BaseEstimator] = {}
    for name in every_machine.__all__:
        Machine = getattr(every_machine, name)
        if Machine is OneVsOneSVC:
            options = OneVsOneSVC._parameter_constraints["decision"][0].options
            known = {label: key for key, label in DECISIONS.items() if key in options}
            found |= {label: OneVsOneSVC().set_params(decision=key) for label, key in known.items()}
        else:
            found[NAMES.get(name, name)] = Machine()
    found |= {label: every_machine.OutputCodeSVC(code=code, decoding="loss") for code, label in CODES.items()}
    return {name: found[name] for name in HSU_LIN} | found


def contestants(machines: Any, kernel: str, random_state: int | None) -> list[Contestant]:
    """Return who takes part.

    ``machines`` is "all" or another group, names, estimators, or a dictionary of estimators by name. Machines that are
    named get the kernel and the seed; estimators stay as they are.
    """
    known = known_machines()
    if isinstance(machines, str):
        every = {"all": tuple(name for name in known if name not in NOT_IN_ALL), **GROUPS}
        machines = every.get(machines.lower(), (machines,))
    if isinstance(machines, Mapping):
        found = [Contestant(str(name), _classifier(estimator)) for name, estimator in machines.items()]
    elif isinstance(machines, Iterable):
        settings = {"kernel": kernel, "random_state": random_state}
        found = [_contestant(entry, known, settings) for entry in machines]
    else:
        listed = ", ".join(f'"{name}"' for name in ("all", *GROUPS))
        raise TypeError(f"machines must be {listed}, or names or estimators, got {type(machines).__name__}")
    if not found:
        raise ValueError("machines is empty: name at least one")
    return _with_names_apart(found)


def groups(found: list[Contestant]) -> list[list[Contestant]]:
    """Return the contestants in groups that one search can serve."""
    grouped: list[list[Contestant]] = []
    for contestant in found:
        key = contestant.fit_key
        group = next((group for group in grouped if key is not None and key == group[0].fit_key), None)
        if group is None or contestant.decision in {member.decision for member in group}:
            grouped.append([contestant])
        else:
            group.append(contestant)
    return grouped


def _contestant(entry: Any, known: Mapping[str, BaseEstimator], settings: dict[str, Any]) -> Contestant:
    if not isinstance(entry, str):
        estimator = _classifier(entry)
        return Contestant(_name_of(last_step(estimator)), estimator)
    by_key = {_key(name): name for name in known}
    by_key |= {_key(type(machine).__name__): name for name, machine in reversed(list(known.items()))}
    name = by_key.get(_key(entry)) or by_key.get(f"{_key(entry)}svc")
    if name is None:
        raise ValueError(
            f"there is no machine {entry!r}; there are {', '.join(known)}, and the groups {', '.join(('all', *GROUPS))}"
        )
    return Contestant(name, clone(known[name]).set_params(**settings))


def _classifier(estimator: Any) -> Any:
    if isinstance(estimator, type) or not (hasattr(estimator, "get_params") and is_classifier(estimator)):
        raise TypeError(f"machines must be names or classifiers of scikit-learn's kind, got {estimator!r}")
    return estimator


def _name_of(machine: Any) -> str:
    if isinstance(machine, OneVsOneSVC):
        return DECISIONS.get(machine.decision, machine.decision)
    return NAMES.get(type(machine).__name__, type(machine).__name__)


def _with_names_apart(found: list[Contestant]) -> list[Contestant]:
    """Number those that would have the same name."""
    names = [contestant.name for contestant in found]
    apart = []
    for at, contestant in enumerate(found):
        number = names[: at + 1].count(contestant.name)
        name = contestant.name if names.count(contestant.name) == 1 else f"{contestant.name} {number}"
        apart.append(Contestant(name, contestant.estimator))
    return apart


def _key(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
