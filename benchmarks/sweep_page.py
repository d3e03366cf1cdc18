"""Tables of the sweep: the distribution, the worst cells first, and what did not converge or kept silent about it."""

import statistics
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import bars
import numpy as np
from report import MISSING, Cell, Table, number
from sweep_worker import PEERS

Found = dict[str, Any]
"""One cell of the sweep."""
PLACE = ["machine", "threads", "data set", "scaling", "C", "gamma"]


def is_limited(cell: Found) -> bool:
    """Whether our fit ended by the limit, its own or that of the sweep."""
    return "killed" in cell or cell.get("stop_reason") == "time_limit"


def cut_off(cell: Found) -> bool:
    """Whether a longer limit could change the cell."""
    return is_limited(cell) or cell["peer_killed"]


def ratio(cell: Found) -> float | None:
    """Time of scikit-learn over ours; a bound where one ran into the limit, None where both did."""
    ours, theirs = cell["seconds"], cell["peer_seconds"]
    if not ours or not theirs or (is_limited(cell) and cell["peer_killed"]):
        return None
    return theirs / ours


def is_judged(cell: Found) -> bool:
    """Whether the ratio counts: there is one, and we took long enough for someone to wait."""
    return ratio(cell) is not None and cell["seconds"] > bars.SWEEP_SECONDS


def is_fast(cell: Found) -> bool | None:
    """Whether the cell reaches the bar of its machine; None where there is no bar."""
    if cell["kernel"] == "kernel":
        return ratio(cell) >= bars.SWEEP[cell["machine"]].least if is_judged(cell) else None
    if cell["scaling"] == "raw" and (cell["rows"] or 0) < bars.SWEEP_LINEAR_ROWS and cell["seconds"]:
        return cell["seconds"] <= bars.SWEEP_LINEAR_SECONDS
    return None


def has_converged(cell: Found) -> bool:
    """Whether the gap is small or the tolerance was met."""
    return bool(cell.get("converged")) or cell.get("duality_gap", np.inf) <= bars.SWEEP_GAP


def is_silent(cell: Found) -> bool:
    """Whether a large gap came without a warning."""
    return cell.get("duality_gap", 0.0) > bars.SWEEP_SILENT_GAP and not cell["warnings"]


def dual_difference(cell: Found) -> float | None:
    """How far the dual objective is below the best known, relative to that."""
    best, dual = cell.get("best"), cell.get("dual_objective")
    return None if best is None or dual is None else (best - dual) / max(abs(best), 1e-300)


def is_far(cell: Found) -> bool:
    """Whether the dual objective is too far from the best known."""
    return (dual_difference(cell) or 0.0) > bars.SWEEP_DUAL


def outcome(cell: Found) -> str:
    """How our fit ended."""
    return cell.get("error") or ("killed" if "killed" in cell else str(cell.get("stop_reason", MISSING)))


def brief(cell: Found) -> str:
    """A cell in a line, for who watches."""
    times = [MISSING if value is None else f"{value:.3g} s" for value in (cell["seconds"], cell["peer_seconds"])]
    gap = f"gap {cell['duality_gap']:.1e}" if "duality_gap" in cell else "no gap"
    return f"{times[0]}, {PEERS[cell['kernel']]} {times[1]}, {gap}, {outcome(cell)}"


def by_machine(cells: list[Found]) -> dict[tuple[str, str, int], list[Found]]:
    """Cells of every machine, in the order in which they came."""
    groups = defaultdict(list)
    for cell in cells:
        groups[cell["kernel"], cell["machine"], cell["threads"]].append(cell)
    return groups


def name(cell: Found) -> str:
    """A machine, with its kernel where that is what sets it apart."""
    return f"linear {cell['machine']}" if cell["kernel"] == "linear" else cell["machine"]


def place(cell: Found) -> list[Cell]:
    """Where a cell is."""
    gamma = MISSING if cell["gamma"] is None else str(cell["gamma"])
    texts = [name(cell), str(cell["threads"]), cell["data"], cell["scaling"], f"{cell['C']:g}", gamma]
    return [Cell(text) for text in texts]


def ratio_cell(cell: Found) -> Cell:
    """The ratio, with a sign where it is a bound."""
    value = ratio(cell)
    if value is None:
        return Cell(MISSING, is_fast(cell))
    sign = "≤ " if is_limited(cell) else "≥ " if cell["peer_killed"] else ""
    return Cell(f"{sign}{value:.3g}", is_fast(cell))


def measured(cell: Found) -> list[Cell]:
    """What was found in a cell."""
    times = [number(cell["seconds"]), number(cell["peer_seconds"]), ratio_cell(cell)]
    gap = number(cell.get("duality_gap"), ".1e", not is_silent(cell) and has_converged(cell))
    return [*times, gap, Cell(outcome(cell))]


MEASURED = ["seconds", "scikit-learn", "ratio", "relative gap", "ended"]


def count(cells: list[Found], wrong: Callable[[Found], bool]) -> Cell:
    """How many cells are wrong; none is what is asked for."""
    found = sum(map(wrong, cells))
    return Cell(str(found), found == 0)


def distribution_row(cells: list[Found]) -> list[Cell]:
    """One machine."""
    first, ratios = cells[0], [ratio(cell) for cell in cells if is_judged(cell)]
    bar = bars.SWEEP[first["machine"]] if first["kernel"] == "kernel" else bars.SweepBar(0.0)
    quantiles = np.quantile(ratios, [0.0, 0.05, 0.5]) if ratios else [None] * 3
    asked = [bar.least or None, None, bar.median]
    shown = [
        number(value, ".3g", None if value is None or least is None else bool(value >= least))
        for value, least in zip(quantiles, asked, strict=True)
    ]
    worst = max((d for cell in cells if (d := dual_difference(cell)) is not None), default=None)
    return [
        *(Cell(text) for text in (name(first), str(first["threads"]), str(len(cells)), str(len(ratios)))),
        *shown,
        count(cells, lambda cell: is_fast(cell) is False),
        count(cells, lambda cell: not has_converged(cell)),
        count(cells, is_silent),
        number(worst, ".1e", None if worst is None else worst <= bars.SWEEP_DUAL),
    ]


def distribution(cells: list[Found]) -> Table:
    """The sweep in a line for each machine."""
    columns = ["machine", "threads", "cells", "judged", "min", "5 %", "median"]
    columns += ["too slow", "not converged", "silent", "dual"]
    table = Table("Distribution of time of scikit-learn / time of polymargin", columns)
    table.note = (
        "Above 1: polymargin is faster than SVC's one-against-one, or than LinearSVC(loss='hinge') without a kernel. "
        f"Judged: cells in which we take over {1e3 * bars.SWEEP_SECONDS:g} ms and at least one ends within the limit. "
        "Too slow: cells below the bar of the machine; linear: raw data below "
        f"{bars.SWEEP_LINEAR_ROWS} rows that take over {bars.SWEEP_LINEAR_SECONDS:g} s. "
        f"Not converged: a relative gap over {bars.SWEEP_GAP:g}, and the tolerance not met. "
        f"Silent: a gap over {bars.SWEEP_SILENT_GAP:g} without a warning. "
        "Dual: largest relative difference from the best known."
    )
    table.rows = [distribution_row(group) for group in by_machine(cells).values()]
    return table


def worst_table(cells: list[Found], most: int) -> Table:
    """The slowest cells of each machine in comparison, the worst first."""
    table = Table("Worst cells of each machine", [*PLACE, *MEASURED])
    table.note = (
        "≤ and ≥: polymargin or scikit-learn ran into the limit, so the ratio is a bound; -: both did, or one failed."
    )
    for group in by_machine(cells).values():
        # cells in which both ran into the limit have no ratio but are among the worst
        wanted = [cell for cell in group if is_judged(cell) or is_limited(cell) or "error" in cell]
        table.rows += [place(c) + measured(c) for c in sorted(wanted, key=lambda c: ratio(c) or 0.0)[:most]]
    return table


def listing(title: str, cells: list[Found], wrong: Callable[[Found], bool]) -> Table:
    """Cells that are wrong in some way, the largest gap first."""
    table = Table(title, [*PLACE, *MEASURED, "below best dual"])
    for cell in sorted(filter(wrong, cells), key=lambda cell: -cell.get("duality_gap", np.inf)):
        table.rows.append([*place(cell), *measured(cell), number(dual_difference(cell), ".1e", not is_far(cell))])
    return table


def data_table(cells: list[Found]) -> Table:
    """Where the bad cells are."""
    table = Table("Ratios by data set", ["data set", "machine", "threads", "judged", "min", "median", "not converged"])
    groups = defaultdict(list)
    for cell in cells:
        groups[cell["data"], name(cell), cell["threads"]].append(cell)
    for (data, machine, threads), group in groups.items():
        ratios = [ratio(cell) for cell in group if is_judged(cell)]
        shown = [number(value) for value in ((min(ratios), statistics.median(ratios)) if ratios else (None, None))]
        labels = [Cell(text) for text in (data, machine, str(threads), str(len(ratios)))]
        table.rows.append([*labels, *shown, count(group, lambda cell: not has_converged(cell))])
    return table


def tables(cells: list[Found], worst: int) -> list[Table]:
    """Everything that is printed; lists that are empty are left out."""
    lists = [
        listing("Not converged", cells, lambda cell: not has_converged(cell)),
        listing("Large gaps without a warning", cells, is_silent),
        listing("Dual objectives below the best known", cells, is_far),
    ]
    return [distribution(cells), worst_table(cells, worst), *(table for table in lists if table.rows)]


def notes(cells: list[Found]) -> list[str]:
    """What a reader should know of the peers, and what went wrong."""
    unfinished = sum("ConvergenceWarning" in cell["peer_warnings"] for cell in cells if cell["kernel"] == "linear")
    limits = sorted({cell["limit"] for cell in cells})
    found = [f"limit of a fit: {' or '.join(f'{limit:g}' for limit in limits)} s; times are the least of the rounds"]
    found += [f"{PEERS['linear']} gave up before it converged in {unfinished} linear cells"] if unfinished else []
    return found + [
        f"{name(c)} on {c['data']}, {c['scaling']}, C={c['C']:g}: {c['error']}" for c in cells if "error" in c
    ]
