"""How long a comparison will take yet: a model of what a fit costs, which learns from the fits that are done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.support.numeric import Floats

Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class RemainingSettings:
    """Chosen on recorded runs over glass and wine with all machines: ``tests/comparison/test_remaining.py``."""

    ridge: float = 1.0  # holds slopes of the model near zero until fits say otherwise
    caution: float = 8.0  # as if so many searches had taken what their probes made one expect
    smoothing: float = 0.02  # of the estimated time: how long an old estimate counts beside the new one


@dataclass
class CostModel:
    """Seconds of a fit by its parameters.

    The logarithm is a polynomial of second degree in the rank of each parameter among its values, without mixed terms,
    fitted by ridge regression to the means of the candidates that were seen. Large costs take longer, and widths in the
    middle or at one end, each machine in its own way. A factor brings the sum over what was seen to the truth. Single
    fits, which share nothing with others, are all longer by another factor.
    """

    candidates: Sequence[Parameters]
    ridge: float
    sums: Floats = field(init=False)  # of the seconds of fits, and of those that share nothing
    counts: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.sums, self.counts = np.zeros((2, len(self.candidates))), np.zeros((2, len(self.candidates)))
        self._features = _features(self.candidates)

    def see(self, candidate: int, seconds: float, alone: bool = False) -> None:
        """Learn what a fit took."""
        self.sums[int(alone), candidate] += max(seconds, 1e-9)
        self.counts[int(alone), candidate] += 1

    def seconds(self) -> Floats:
        """Return what a fit of each candidate takes: its own mean where it was seen."""
        alone, candidate = np.nonzero(self.counts)
        means = self.sums[alone, candidate] / self.counts[alone, candidate]
        F, log = np.column_stack([self._features[candidate], alone]), np.log(means)
        centre, level = F.mean(axis=0), log.mean()
        penalty = np.full(F.shape[1], float(self.ridge))
        penalty[-1] *= 0.01
        G = F - centre
        slopes = np.linalg.solve(G.T @ G + np.diag(penalty), G.T @ (log - level))
        all_ = np.column_stack([self._features, np.full(len(self._features), alone.min())])
        found = np.exp(np.clip((all_ - centre) @ slopes, -10.0, 10.0))
        seen = alone == alone.min()
        found *= means[seen].sum() / found[candidate[seen]].sum()
        found[candidate[seen]] = means[seen]
        return found


def _features(candidates: Sequence[Parameters]) -> Floats:
    """Return the rank of each parameter among its values, from -1 to 1, and the square."""
    columns = []
    for name in candidates[0] if candidates else ():
        values = [each[name] for each in candidates]
        if len(set(map(repr, values))) > 1 and all(isinstance(value, int | float) for value in values):
            rank = np.unique(np.array(values, dtype=float), return_inverse=True)[1].astype(float)
            rank = 2.0 * rank / rank.max() - 1.0
            columns += [rank, rank**2]
    return np.column_stack(columns) if columns else np.zeros((len(candidates), 0))


class SearchWork:
    """One search of the comparison: what it has to do, and what is known of it."""

    def __init__(
        self,
        candidates: Sequence[Parameters],
        folds: int,
        afterwards: int,
        limit: float | None = None,
        settings: RemainingSettings = RemainingSettings(),
    ) -> None:
        self.candidates: Sequence[Parameters] = candidates
        self.fits: int = len(candidates) * folds
        self.left: Floats = np.full(len(candidates), float(folds))
        self.free: Floats = np.zeros(len(candidates))  # of these, those that will probably take no time
        self.surprising: NDArray[np.bool_] = np.zeros(len(candidates), dtype=bool)  # took none, and nobody had said so
        self.afterwards = afterwards  # fits of the best candidate when the search is over
        self.limit: float = float("inf") if limit is None else limit  # seconds that the search may take
        self.model: CostModel = CostModel(candidates, settings.ridge)
        self.began: float | None = None
        self.last: float = 0.0  # when the last fit ended
        self.longest: float = 0.0  # time between two ends
        self.predicted: float | None = None  # by the probes alone, when it began
        self.ended = False

    @property
    def knows(self) -> bool:
        """Whether there is anything to go by."""
        return bool(self.model.counts.any())

    @property
    def work(self) -> float:
        """The seconds of the fits that are left, by one thread."""
        seconds = self.model.seconds()
        seen = self.model.counts[0] > 0
        # What is not known yet will be no other than what is.
        known = int(np.sum(seen | self.surprising))
        share = np.where(seen | (known == 0), 1.0, np.sum(seen) / max(1, known))
        return float((np.maximum(self.left - self.free, 0.0) * share) @ seconds + self.afterwards * seconds.mean())

    def seconds_left(self, now: float, expected: float) -> float:
        """Return the seconds that are left; ``expected`` are those of the whole search, from what the probes say."""
        if self.began is None:
            return min(expected, self.limit)
        left = self._left(now, expected)
        return min(left, max(0.0, self.limit - (now - self.began)))

    def _left(self, now: float, expected: float) -> float:
        assert self.began is not None
        done = float(self.model.sums[0].sum())
        if done == 0.0:
            passed = now - self.began
            return max(expected - passed, passed)
        rate = (self.last - self.began) / done  # of the clock, for each second of work
        left = rate * self.work
        waited, usual = now - self.last, min(self.longest, left)
        return max(left - min(waited, usual), 0.0) + max(0.0, waited - usual)


class Remaining:
    """The time that is left of a comparison.

    Probes, single fits of each machine at the start, say how machines compare; fits that are done say what those that
    are left will take. Nothing is said as long as there is a machine of which nothing is known, and a fit that takes
    longer than expected makes the time that is left grow.

    Parameters
    ----------
    searches : list of SearchWork
        In the order in which they are run.
    threads : int
        That work at a time.
    clock : callable
        The time in seconds.
    """

    def __init__(
        self,
        searches: list[SearchWork],
        threads: int,
        clock: Callable[[], float] = time.perf_counter,
        settings: RemainingSettings = RemainingSettings(),
    ) -> None:
        self._searches, self._threads, self._clock, self._settings = searches, threads, clock, settings
        self._lock = threading.Lock()
        self._shown: tuple[float, float] | None = None  # when, and what

    def probed(self, number: int, candidate: int, seconds: float) -> None:
        """Learn what a single fit of a candidate took."""
        with self._lock:
            self._searches[number].model.see(candidate, seconds, alone=True)

    def begin(self, number: int) -> None:
        """Begin a search."""
        search = self._searches[number]
        with self._lock:
            search.predicted = search.work / self._threads if search.knows else None
            search.began = search.last = self._clock()

    def foresee(self, number: int, candidate: int, fits: int) -> None:
        """Learn that so many fits of a candidate will probably be those of another one."""
        with self._lock:
            self._searches[number].free[candidate] += fits

    def fitted(self, number: int, candidate: int, seconds: float) -> None:
        """Learn that a fit of a candidate is done, and what it took."""
        search = self._searches[number]
        with self._lock:
            now = self._clock()
            search.longest = max(search.longest, now - search.last)
            search.last = now
            search.left[candidate] -= 1
            if seconds > 0.0:
                search.model.see(candidate, seconds)
            elif search.free[candidate] > 0.0:  # it was the same as another one, as it was said
                search.free[candidate] -= 1.0
            else:  # the same on other folds, probably
                search.surprising[candidate] = True
                search.free[candidate] = search.left[candidate]

    def end(self, number: int) -> None:
        """End a search with all that comes after it."""
        search = self._searches[number]
        with self._lock:
            search.ended, search.last = True, self._clock()

    def seconds(self) -> float | None:
        """Return the seconds that are left; None if there is no saying."""
        with self._lock:
            now = self._clock()
            estimate = self._estimate(now)
            if estimate is None or self._shown is None:
                self._shown = None if estimate is None else (now, estimate)
                return estimate
            before, shown = self._shown
            passed = now - before
            period = self._settings.smoothing * max(estimate, 1.0)
            weight = 1.0 - float(np.exp(-passed / period))
            estimate = weight * estimate + (1.0 - weight) * max(0.0, shown - passed)
            self._shown = now, estimate
            return estimate

    def _estimate(self, now: float) -> float | None:
        open_ = [search for search in self._searches if not search.ended]
        if not all(search.knows for search in open_):
            return None
        share = self._saved() / self._threads
        return sum(search.seconds_left(now, share * search.work) for search in open_)

    def _saved(self) -> float:
        """Return what searches took in the mean, of what the probes, which share nothing, made one expect."""
        ratios = [
            (search.last - search.began) / search.predicted
            for search in self._searches
            if search.ended and search.began is not None and search.predicted
        ]
        return float(np.exp(np.sum(np.log(ratios)) / (self._settings.caution + len(ratios))))
