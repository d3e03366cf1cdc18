"""How long a comparison will take yet: a model of what a fit costs, which learns from the fits that are done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.support.numeric import Floats, Ints

_FAR = 1e-3  # weight of candidates that are not alike at all

Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class RemainingSettings:
    """Chosen on recorded runs over glass and wine with all machines: ``tests/comparison/test_remaining.py``."""

    ridge: float = 1.0  # holds slopes of the model near zero until fits say otherwise
    reach: float = 0.4  # in ranks from -1 to 1: how far what a fit took says more of others than the slopes do
    noise: float = 0.1  # variance of the logarithm of what a fit takes
    caution: float = 8.0  # as if so many searches had taken what their probes made one expect
    smoothing: float = 0.02  # of the estimated time: how long an old estimate counts beside the new one


@dataclass
class CostModel:
    """Seconds of a fit by its parameters.

    The logarithm is a polynomial of second degree in the rank of each parameter among its values, without mixed terms,
    and what is left of it is like that of candidates whose ranks are near: a Gaussian process, of which the mean is
    taken given the means of the candidates that were seen. Large costs take longer, and widths in the middle or at one
    end, each machine in its own way. A factor brings the sum over what was seen to the truth. Single fits, which share
    nothing with others, are all longer by another factor.
    """

    candidates: Sequence[Parameters]
    ridge: float
    reach: float = 0.4
    noise: float = 0.1
    sums: Floats = field(init=False)  # of the seconds of fits, and of those that share nothing
    counts: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.sums, self.counts = np.zeros((2, len(self.candidates))), np.zeros((2, len(self.candidates)))
        self._features = _features(self.candidates)
        ranks = self._features[:, ::2]
        self._alike = np.exp(-((ranks[:, None] - ranks) ** 2).sum(axis=2) / (2 * self.reach**2))

    def see(self, candidate: int, seconds: float, alone: bool = False) -> None:
        """Learn what a fit took."""
        self.sums[int(alone), candidate] += max(seconds, 1e-9)
        self.counts[int(alone), candidate] += 1

    def seconds(self, alone: bool = False) -> Floats:
        """Return what a fit of each candidate takes, also if it shares nothing: its own mean where it was seen."""
        kind, candidate = np.nonzero(self.counts)
        means = self.sums[kind, candidate] / self.counts[kind, candidate]
        wanted = kind.max() if alone else kind.min()
        F, log = np.column_stack([self._features[candidate], 10.0 * kind]), np.log(means)
        all_ = np.column_stack([self._features, np.full(len(self.candidates), 10.0 * wanted)])
        centre, level = F.mean(axis=0), log.mean()
        trend, near = (all_ - centre) @ (F - centre).T / self.ridge, self._alike[:, candidate]
        own = (F - centre) @ (F - centre).T / self.ridge + near[candidate] + self.noise * np.eye(len(F))
        found = np.exp(np.clip((trend + near) @ np.linalg.solve(own, log - level), -10.0, 10.0))
        seen = kind == wanted
        found *= means[seen].sum() / found[candidate[seen]].sum()
        found[candidate[seen]] = means[seen]
        return found

    def near(self, known: Ints, values: Floats) -> Floats:
        """Return for each candidate the mean of known values, which counts those of like parameters most; 1 of none."""
        weights = self._alike[:, known] + _FAR
        return np.ones(len(self.candidates)) if len(known) == 0 else (weights @ values) / weights.sum(axis=1)


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
        self.best: int | None = None  # which is known then
        self.limit: float = float("inf") if limit is None else limit  # seconds that the search may take
        self.model: CostModel = CostModel(candidates, settings.ridge, settings.reach, settings.noise)
        self.began: float | None = None
        self.last: float = 0.0  # when the last fit ended
        self.longest: float = 0.0  # time between two ends
        self.predicted: float | None = None  # by the probes alone, before the first fit
        self.ended = False

    @property
    def knows(self) -> bool:
        """Whether there is anything to go by."""
        return bool(self.model.counts.any())

    @property
    def work(self) -> float:
        """The seconds of the fits of the search that are left, by one thread."""
        seconds = self.model.seconds()
        seen = self.model.counts[0] > 0
        # What is not known yet will be no other than what is, above all what is next to it.
        known = np.flatnonzero(seen | self.surprising)
        share = np.where(seen, 1.0, self.model.near(known, seen[known].astype(float)))
        return float((np.maximum(self.left - self.free, 0.0) * share) @ seconds)

    @property
    def work_afterwards(self) -> float:
        """The seconds of the fits after the search: one at a time, and they share nothing."""
        seconds = self.model.seconds(alone=True)
        return float(self.afterwards * (seconds.mean() if self.best is None else seconds[self.best]))

    def seconds_left(self, now: float, expected: float) -> float:
        """Return the seconds that are left; ``expected`` are those of the whole search, from what the probes say."""
        if self.best is not None:
            return self._left(now, expected)
        passed = 0.0 if self.began is None else now - self.began
        left = expected if self.began is None else self._left(now, expected)
        return min(left, max(0.0, self.limit - passed) + self.work_afterwards)

    def _left(self, now: float, expected: float) -> float:
        assert self.began is not None
        done = float(self.model.sums[0].sum())
        if done == 0.0 and self.best is None:
            passed = now - self.began
            return max(expected - passed, passed)
        left = self.work_afterwards
        if self.best is None:
            left += (self.last - self.began) / done * self.work  # seconds of the clock for each one of work
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
            search.began = search.last = self._clock()
            search.free[:] = 0.0  # it will say itself what will take no time

    def foresee(self, number: int, candidate: int, fits: int) -> None:
        """Learn that so many fits of a candidate will probably be those of another one."""
        own = self._searches[number]
        with self._lock:
            own.free[candidate] += fits
            for search in self._searches[number + 1 :]:  # the kernels of the others are the same
                if search.candidates == own.candidates:
                    search.free[candidate] = own.free[candidate]

    def fitted(self, number: int, candidate: int, seconds: float) -> None:
        """Learn that a fit of a candidate is done, and what it took."""
        search = self._searches[number]
        with self._lock:
            now = self._clock()
            if search.predicted is None and search.knows:
                search.predicted = self._expected(search)
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

    def choose(self, number: int, candidate: int) -> None:
        """Learn which candidate is fitted from now on, after a search."""
        search = self._searches[number]
        with self._lock:
            search.best, search.last, search.longest = candidate, self._clock(), 0.0

    def fitted_again(self, number: int, seconds: float) -> None:
        """Learn that a fit of the best candidate is done, and what it took with all that belongs to it."""
        search = self._searches[number]
        with self._lock:
            assert search.best is not None
            now = self._clock()
            search.longest, search.last = max(search.longest, now - search.last), now
            search.afterwards = max(0, search.afterwards - 1)
            search.model.see(search.best, seconds, alone=True)

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
        saved = self._saved()
        return sum(search.seconds_left(now, saved * self._expected(search)) for search in open_)

    def _expected(self, search: SearchWork) -> float:
        return search.work / self._threads + search.work_afterwards

    def _saved(self) -> float:
        """Return what searches took in the mean, of what the probes, which share nothing, made one expect."""
        ratios = [
            (search.last - search.began) / search.predicted
            for search in self._searches
            if search.ended and search.began is not None and search.predicted
        ]
        return float(np.exp(np.sum(np.log(ratios)) / (self._settings.caution + len(ratios))))
