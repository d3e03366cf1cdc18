"""Draw Tables 5.3 to 5.7 and Figure 3 of Wang & Huang 2007 again: half the pairs against all of them.

F1 is a mean over several draws of the first pair and the probes; the paper has one. Times are processor seconds of one
thread, the least of several fits; what can be compared with the paper is the ratio to all pairs. Figure 3 needs one fit
for each draw: the pairs of a smaller r are the first ones of a larger one.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any
from unittest import mock

import _path  # noqa: F401
import datasets
import linear_data
import numpy as np
from linear_data import LinearData
from numpy.typing import NDArray
from report import RESULTS, Cell, Table, console, number, publish
from scipy.sparse import vstack
from sklearn.metrics import f1_score, precision_recall_fscore_support

from polymargin import OneVsOneSVC, UncertaintySVC
from polymargin.decision import ColumnDistances, column_scores, pair_answers
from polymargin.formulations.chosen_pairs import PairRounds, Probes

PARAMETERS = {"C": 100.0, "gamma": 0.1}
FOREVER = float("inf")
ANSWERS = ("signs", "margins")  # the paper's, and ours
GROUPS = {  # Table 5.2, and the place of each group in the alphabet
    "comp.os.ms-windows.misc": 2,
    "rec.sport.baseball": 9,
    "talk.religion.misc": 19,
    "sci.space": 14,
    "comp.sys.mac.hardware": 4,
    "sci.med": 13,
    "talk.politics.misc": 18,
    "rec.autos": 7,
    "misc.forsale": 6,
    "talk.politics.mideast": 17,
}
TRAIN_DOCUMENTS, TEST_DOCUMENTS = 250, 100


@dataclass(frozen=True)
class Published:
    """What the paper has of one data set; times are CPU seconds, steps those of (2), (3) and (4)."""

    table: str
    classes: tuple[str, ...]
    uncertainty: tuple[float, ...]
    pairwise: tuple[float, ...]
    largest_loss: float
    seconds: dict[int, float]
    pairwise_seconds: float
    steps: dict[int, tuple[float, float, float]]


PAPER = {
    "reuters8": Published(
        "5.3",
        ("earn", "acq", "money-fx", "grain", "crude", "trade", "interest", "ship"),
        (98.0, 93.7, 70.9, 95.4, 83.1, 78.8, 72.9, 76.1),
        (98.3, 95.7, 74.5, 94.6, 82.9, 79.3, 73.2, 76.5),
        3.6,
        {5: 13.58, 10: 20.35, 15: 27.49},
        37.57,
        {5: (12.45, 1.12, 0.01), 10: (18.52, 1.81, 0.02), 15: (25.08, 2.39, 0.02)},
    ),
    "20newsgroups-10": Published(
        "5.4",
        tuple(GROUPS),
        (87.5, 93.8, 81.2, 86.9, 84.5, 86.1, 73.0, 91.4, 78.6, 87.2),
        (87.5, 95.4, 81.2, 90.7, 85.0, 88.5, 73.0, 93.3, 80.2, 87.2),
        3.8,
        {10: 3.15, 20: 6.14, 30: 8.95},
        10.82,
        {10: (2.64, 0.51, 0.00), 20: (5.05, 1.09, 0.00), 30: (7.34, 1.61, 0.00)},
    ),
    "usps": Published(
        "5.5",
        tuple("0123456789"),
        (93.5, 95.8, 88.0, 89.1, 93.1, 86.9, 95.5, 91.7, 90.3, 94.2),
        (93.5, 96.2, 88.6, 90.0, 95.6, 89.3, 96.0, 92.4, 91.5, 95.5),
        2.5,
        {10: 13.32, 20: 27.51, 30: 34.68},
        45.26,
        {10: (11.17, 2.14, 0.01), 20: (23.46, 4.02, 0.03), 30: (29.50, 5.13, 0.05)},
    ),
}


def reuters8() -> LinearData:
    """Tf-idf of the eight topics; other documents and words than the paper's, which are not known."""
    return LinearData("reuters8", *linear_data.split_file("reuters8"), 8)


def ten_groups() -> LinearData:
    """250 and 100 documents of each of ten groups, drawn from both parts."""
    parts = linear_data.read("20newsgroups", datasets.PARTS, 64_141)
    X, y = vstack([X for X, _ in parts]).tocsr(), np.concatenate([y for _, y in parts])
    rng = np.random.default_rng(0)
    rows = np.array(
        [rng.permutation(np.flatnonzero(y == g))[: TRAIN_DOCUMENTS + TEST_DOCUMENTS] for g in GROUPS.values()]
    )
    train, test = rows[:, :TRAIN_DOCUMENTS].ravel(), rows[:, TRAIN_DOCUMENTS:].ravel()
    X_train, X_test = linear_data.tf_idf(X[train], X[test])
    labels = np.arange(len(GROUPS))
    y_train, y_test = labels.repeat(TRAIN_DOCUMENTS), labels.repeat(TEST_DOCUMENTS)
    return LinearData("20newsgroups-10", X_train, y_train, X_test, y_test, len(GROUPS))


def usps() -> LinearData:
    """Pixels in [0, 1]: in [-1, 1], as they are stored, the paper's gamma is so narrow that all pairs reach F1 = 37."""
    data = datasets.load("usps")
    X_train, X_test = (data.X_train + 1) / 2, (data.X_test + 1) / 2
    return LinearData("usps", X_train, data.y_train - 1, X_test, data.y_test - 1, 10)


LOADERS: dict[str, Callable[[], LinearData]] = {"reuters8": reuters8, "20newsgroups-10": ten_groups, "usps": usps}


@dataclass(frozen=True)
class Draw:
    """One fit of all pairs, in the order chosen, and the answers to the test part."""

    matrix: NDArray
    distances: NDArray
    answers: NDArray

    def predict(self, r: int) -> NDArray:
        """The classes that the first r pairs give."""
        return column_scores(self.answers[:, :r], self.matrix[:r]).argmax(axis=1)

    @property
    def stop(self) -> int:
        """Pairs after which d* = 0.8 stops."""
        return int(np.argmax(self.distances > 0.8)) + 1


def draws(data: LinearData, seeds: int, answers: str) -> list[Draw]:
    """Fits that differ in their first pair and their probes."""
    found = []
    for seed in range(seeds):
        machine = UncertaintySVC(**PARAMETERS, max_pairs=1.0, min_distance=FOREVER, answers=answers, random_state=seed)
        values = machine.fit(data.X_train, data.y_train).pairwise_decision_function(data.X_test)
        found.append(Draw(machine.decision_matrix_, machine.distances_, pair_answers(values, answers)))
    return found


def scores(data: LinearData, predicted: NDArray) -> NDArray:
    """F1 of each class, in points."""
    return 100 * f1_score(data.y_test, predicted, average=None)


def all_pairs(data: LinearData) -> NDArray:
    """What one-against-one predicts."""
    return OneVsOneSVC(**PARAMETERS).fit(data.X_train, data.y_train).predict(data.X_test)


def half(data: LinearData) -> int:
    """The paper's r."""
    return -(-data.n_classes * (data.n_classes - 1) // 4)


def f1_table(data: LinearData, found: dict[str, list[Draw]], predicted: NDArray) -> Table:
    """Tables 5.3 to 5.5: one row for each class, the means last."""
    paper, r = PAPER[data.name], half(data)
    columns = ["half, paper", "all, paper", "loss, paper", "all"]
    for answers in ANSWERS:
        columns += [f"half, {answers}", f"loss, {answers}"]
    columns += ["half, stopped by 0.8", "loss, stopped"]
    table = Table(f"Table {paper.table}: F1, {data.name}, r = {r}", ["class", *columns])
    stops = [draw.stop for draw in found["signs"]]
    table.note = (
        f"Means of {len(stops)} draws, without d*. The bar is the paper's largest loss, {paper.largest_loss} points. "
        f"Answers as in the paper (signs), and by place between the margins. With d* = 0.8 and signs, as printed, "
        f"training ends after {min(stops)} to {max(stops)} pairs (last columns); the paper reports times of "
        f"{max(paper.seconds)}, so there it cannot have ended so."
    )
    theirs, theirs_all = np.array(paper.uncertainty), np.array(paper.pairwise)
    everything = scores(data, predicted)
    shown = [theirs, theirs_all, theirs_all - theirs, everything]
    for answers in ANSWERS:
        ours = np.mean([scores(data, draw.predict(r)) for draw in found[answers]], axis=0)
        shown += [ours, everything - ours]
    stopped = np.mean([scores(data, draw.predict(min(r, draw.stop))) for draw in found["signs"]], axis=0)
    shown += [stopped, everything - stopped]
    marked = [columns.index(f"loss, {answers}") for answers in ANSWERS]
    for name, values in zip(paper.classes, np.transpose(shown), strict=True):
        held = [bool(v <= paper.largest_loss) if i in marked else None for i, v in enumerate(values)]
        table.rows.append([Cell(name), *(number(v, ".1f", ok) for v, ok in zip(values, held, strict=True))])
    table.rows.append([Cell("mean"), *(number(v, ".1f") for v in np.mean(shown, axis=1))])
    return table


def figure_table(
    data: LinearData, answers: str, found: list[Draw], predicted: NDArray
) -> tuple[Table, list[dict[str, float]]]:
    """Figure 3: macro precision and recall against r, and all pairs by votes in the last row."""
    table = Table(
        f"Figure 3: {data.name}, {answers}",
        ["r", "precision", "recall", "least distance", "shares between 0.1 and 0.9"],
    )
    table.note = (
        f"Macro averages in per cent, means of {len(found)} draws. The last row is one-against-one. The last column: "
        "of the shares of classes that a pair does not know, those that say little."
    )
    points = []
    every = len(found[0].distances)
    for r in sorted({*range(1, every + 1, max(1, every // 15)), half(data), every}):
        measured = [macro(data, draw.predict(r)) for draw in found]
        precision, recall = np.mean(measured, axis=0)
        least = float(np.mean([draw.distances[r - 1] for draw in found]))
        vague = float(np.mean([np.mean((draw.matrix[:r] > 0.1) & (draw.matrix[:r] < 0.9)) for draw in found]))
        vague *= data.n_classes / (data.n_classes - 2)  # those of its own classes are near 0 and 1
        points.append({"r": r, "precision": precision, "recall": recall, "distance": least, "undecided": vague})
        numbers = [number(value, ".1f") for value in (precision, recall)]
        table.rows.append([Cell(str(r)), *numbers, number(least, ".2f"), number(vague, ".2f")])
    precision, recall = macro(data, predicted)
    table.rows.append([Cell("votes"), number(precision, ".1f"), number(recall, ".1f"), number(None), number(None)])
    return table, points


def macro(data: LinearData, predicted: NDArray) -> tuple[float, float]:
    """Precision and recall, averaged over the classes, in per cent."""
    precision, recall, _, _ = precision_recall_fscore_support(
        data.y_test, predicted, average="macro", zero_division=0.0
    )
    return 100 * precision, 100 * recall


@contextmanager
def clocks() -> Iterator[dict[str, float]]:
    """Count the processor seconds of the rounds, the probes and the distances while inside."""
    spent = dict.fromkeys(("rounds", "probes", "distances"), 0.0)

    def counted(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            begin = time.process_time()
            try:
                return method(*args, **kwargs)
            finally:
                spent[name] += time.process_time() - begin

        return run

    with (
        mock.patch.object(PairRounds, "train", counted("rounds", PairRounds.train)),
        mock.patch.object(Probes, "shares", counted("probes", Probes.shares)),
        mock.patch.object(ColumnDistances, "add", counted("distances", ColumnDistances.add)),
        mock.patch.object(ColumnDistances, "nearest", counted("distances", ColumnDistances.nearest)),
    ):
        yield spent


@dataclass(frozen=True)
class Times:
    """Processor seconds of a fit, and of its steps (2), (3) and (4)."""

    total: float
    train: float = 0.0
    probe: float = 0.0
    choose: float = 0.0


def times(data: LinearData, machine: Any, rounds: int) -> Times:
    """The fastest of several fits."""
    found = []
    for _ in range(rounds):
        with clocks() as spent:
            begin = time.process_time()
            machine.fit(data.X_train, data.y_train)
            total = time.process_time() - begin
        found.append(Times(total, spent["rounds"] - spent["probes"], spent["probes"], spent["distances"]))
    return min(found, key=lambda measured: measured.total)


def measure(data: LinearData, rounds: int) -> dict[int | str, Times]:
    """Times of each r of Table 5.6, of half the pairs, and of all."""
    measured: dict[int | str, Times] = {"all": times(data, OneVsOneSVC(**PARAMETERS), rounds)}
    for r in sorted({*PAPER[data.name].seconds, half(data)}):
        machine = UncertaintySVC(**PARAMETERS, max_pairs=r, min_distance=FOREVER)
        measured[r] = times(data, machine, rounds)
    return measured


def time_table(measured: dict[str, dict[int | str, Times]]) -> Table:
    """Table 5.6."""
    table = Table(
        "Table 5.6: training time, processor seconds",
        ["data set", "r", "seconds, paper", "/ all pairs, paper", "seconds", "/ all pairs"],
        note="The bar is the paper's ratio; where it has none, less than all pairs.",
    )
    for name, found in measured.items():
        paper = PAPER[name]
        table.rows.append([Cell(name), Cell("all"), number(paper.pairwise_seconds), Cell("1.00")])
        table.rows[-1] += [number(found["all"].total), Cell("1.00")]
        for r, spent in found.items():
            if r == "all":
                continue
            seconds = paper.seconds.get(int(r))
            theirs = None if seconds is None else seconds / paper.pairwise_seconds
            ours = spent.total / found["all"].total
            cells = [number(seconds), number(theirs, ".2f"), number(spent.total)]
            table.rows.append([Cell(name), Cell(str(r)), *cells, number(ours, ".2f", ours <= (theirs or 1.0))])
    return table


def step_table(measured: dict[str, dict[int | str, Times]]) -> Table:
    """Table 5.7: seconds, and the share of each step, which is what can be compared."""
    table = Table(
        "Table 5.7: the steps",
        ["data set", "r", "train, s", "probe, s", "choose, s", "train, paper", "train", "probe, paper", "probe"],
        note="The last four columns are shares of the three steps together.",
    )
    for name, found in measured.items():
        for r, theirs in PAPER[name].steps.items():
            ours = (found[r].train, found[r].probe, found[r].choose)
            shares = [number(part[i] / sum(part), ".2f") for i in (0, 1) for part in (theirs, ours)]
            table.rows.append([Cell(name), Cell(str(r)), *(number(seconds, ".2g") for seconds in ours), *shares])
    return table


def draw(points: dict[str, dict[str, list[dict[str, float]]]], name: str) -> None:
    """Figure 3, if matplotlib is there."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        console.print("matplotlib is not installed: no picture")
        return
    picture, panels = plt.subplots(1, len(points), figsize=(4 * len(points), 3.5), layout="constrained", squeeze=False)
    for panel, (data, lines) in zip(panels[0], points.items(), strict=True):
        for (answers, line), style in zip(lines.items(), ("o:", "o-"), strict=True):
            for measure_name, colour in (("precision", "C0"), ("recall", "C1")):
                x, y = [p["r"] for p in line], [p[measure_name] for p in line]
                panel.plot(x, y, style, color=colour, markersize=3, label=f"{measure_name}, {answers}")
        panel.set(xlabel="pairs trained", ylabel="per cent", title=data)
        panel.legend()
    picture.savefig(RESULTS / f"{name}-3.png", dpi=100)
    plt.close(picture)
    console.print(f"drawn: results/{name}-3.png")


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=LOADERS, default=list(LOADERS))
    parser.add_argument("--seeds", type=int, default=10, help="draws of the first pair and the probes")
    parser.add_argument("--rounds", type=int, default=5, help="fits of which the fastest counts")
    parser.add_argument("--quick", action="store_true", help="one data set, two draws, one round")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    if options.quick:
        options.data, options.seeds, options.rounds = ["20newsgroups-10"], 2, 1
    f1, figures, points, measured = [], [], {}, {}
    for name in options.data:
        data = LOADERS[name]()
        found = {answers: draws(data, options.seeds, answers) for answers in ANSWERS}
        predicted = all_pairs(data)
        f1.append(f1_table(data, found, predicted))
        points[name] = {}
        for answers in ANSWERS:
            figure, points[name][answers] = figure_table(data, answers, found[answers], predicted)
            figures.append(figure)
        measured[name] = measure(data, options.rounds)
    publish(
        "Tables and figure of Wang & Huang",
        options.output,
        [*f1, time_table(measured), step_table(measured), *figures],
        notes=[f"RBF kernel, C = {PARAMETERS['C']:g}, gamma = {PARAMETERS['gamma']:g}, probes: 30 of each class."],
        data={
            "points": points,
            "times": {name: {str(r): asdict(spent) for r, spent in found.items()} for name, found in measured.items()},
        },
    )
    if options.output:
        draw(points, options.output)


if __name__ == "__main__":
    main()
