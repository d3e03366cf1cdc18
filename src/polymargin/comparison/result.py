"""What a comparison found: plain data that goes to JSON and back, and the reports that are made of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from polymargin.comparison.statistics import Significance, against_best, significance_from, verdict
from polymargin.storage.files import PathLike, replace_whole

FORMAT = "polymargin-comparison"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class MachineResult:
    """How one machine did. Where it did not run, ``reason`` says why and the figures are None."""

    name: str
    estimator: str
    status: str  # "done", "failed", "time limit" or "interrupted"
    reason: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    rate: float | None = None
    validation_rate: float | None = None
    train_seconds: float | None = None
    test_seconds: float | None = None
    search_seconds: float | None = None
    unique_svs: int | None = None
    coefficients: int | None = None
    gap: float | None = None
    converged: bool | None = None
    notes: list[str] = field(default_factory=list)
    # What the pictures are drawn from.
    fold_rates: list[float] = field(default_factory=list)
    confusion: list[list[int]] = field(default_factory=list)
    candidates: list[dict[str, Any]] = field(default_factory=list)  # parameters and rate of each

    @property
    def done(self) -> bool:
        """Whether the figures are there."""
        return self.status == "done"


_PICTURES = ("fold_rates", "confusion", "candidates")


@dataclass
class Comparison:
    """Machines side by side: what :func:`polymargin.compare` returns.

    Parameters
    ----------
    results : list of MachineResult
        What each machine did, in the order in which they were named.
    significance : Significance
        The tests of all pairs.
    data : dict
        Facts about the data: name, sizes, classes.
    settings : dict
        The arguments of the run.
    environment : dict
        Versions and facts about the computer.
    interrupted : bool, default=False
        Whether Ctrl-C ended the run before all machines were done.
    models : dict, default={}
        The machines by name, fitted to all training examples. They are not part of the JSON document.
    plane : tuple, default=None
        The training examples and classes if they have two features, to draw the regions.

    See Also
    --------
    polymargin.compare : Run a comparison.
    """

    results: list[MachineResult]
    significance: Significance
    data: dict[str, Any]
    settings: dict[str, Any]
    environment: dict[str, Any]
    interrupted: bool = False
    models: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    plane: tuple[Any, Any] | None = field(default=None, repr=False, compare=False)

    @property
    def table(self) -> list[dict[str, Any]]:
        """A dictionary for each machine, ready for ``pandas.DataFrame``.

        ``machine``, ``estimator``, ``status``, ``reason``, ``parameters`` (the best), ``rate`` (on the test set, or the
        mean of the folds), ``validation_rate`` (of the search), ``train_seconds``, ``test_seconds``,
        ``search_seconds``, ``unique_svs``, ``coefficients`` (non-zero), ``gap`` (relative), ``converged``,
        ``against_best`` and ``notes``.
        """
        standing = against_best(self.significance, self.rates)
        return [
            {
                "machine": result.name,
                **{
                    item.name: getattr(result, item.name)
                    for item in fields(MachineResult)
                    if item.name != "name" and item.name not in _PICTURES
                },
                "against_best": standing.get(result.name),
            }
            for result in self.results
        ]

    @property
    def rates(self) -> dict[str, float]:
        """The rate of each machine that ran."""
        return {result.name: result.rate for result in self.results if result.rate is not None}

    @property
    def verdict(self) -> list[str]:
        """Sentences: which differences between the rates mean something, and which do not."""
        return verdict(self.significance)

    def to_markdown(self, path: PathLike | None = None) -> str:
        """Return the table with its verdict as Markdown.

        Parameters
        ----------
        path : str or path, default=None
            Where to write it too.

        Returns
        -------
        str
            The text.
        """
        from polymargin.comparison.report import markdown

        return _written(markdown(self), path)

    def to_html(self, path: PathLike | None = None) -> str:
        """Return the report: one HTML page that needs no other file and no network.

        Parameters
        ----------
        path : str or path, default=None
            Where to write it too.

        Returns
        -------
        str
            The page.
        """
        from polymargin.comparison.page import page

        return _written(page(self), path)

    def to_json(self, path: PathLike | None = None) -> str:
        """Return everything but the fitted machines as a JSON document, which :meth:`from_json` reads.

        Parameters
        ----------
        path : str or path, default=None
            Where to write it too.

        Returns
        -------
        str
            The document.
        """
        document = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "data": self.data,
            "settings": self.settings,
            "environment": self.environment,
            "interrupted": self.interrupted,
            "table": self.table,
            "verdict": self.verdict,
            "machines": [asdict(result) for result in self.results],
            "significance": asdict(self.significance),
        }
        return _written(json.dumps(document, indent=2, allow_nan=False) + "\n", path)

    @classmethod
    def from_json(cls, source: PathLike) -> Comparison:
        """Return the comparison of a JSON document that :meth:`to_json` made.

        Parameters
        ----------
        source : str or path
            The document itself, or the path of a file with it.

        Returns
        -------
        Comparison
            All but the fitted machines.
        """
        inside = isinstance(source, str) and source.lstrip().startswith("{")
        document = json.loads(str(source) if inside else Path(source).read_text(encoding="utf-8"))
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            raise ValueError(f"this is no comparison: a document of to_json has the format {FORMAT!r}")
        if document.get("format_version") != FORMAT_VERSION:
            raise ValueError(
                f"the comparison has format version {document.get('format_version')!r}, this package reads "
                f"{FORMAT_VERSION}"
            )
        return cls(
            [MachineResult(**machine) for machine in document["machines"]],
            significance_from(document["significance"]),
            document["data"],
            document["settings"],
            document["environment"],
            document["interrupted"],
        )

    def plot(self) -> Any:
        """Draw rates, times and support vectors of the machines with matplotlib (extra ``plots``).

        Returns
        -------
        matplotlib Figure
            The figure.
        """
        from polymargin.comparison.plots import figure

        return figure(self)

    def __str__(self) -> str:
        return self.to_markdown()


def _written(text: str, path: PathLike | None) -> str:
    if path is not None:
        replace_whole(os.fspath(path), [text.encode()])
    return text
