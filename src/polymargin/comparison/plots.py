"""The comparison as a figure of matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymargin.plots import COLORS, _pyplot

if TYPE_CHECKING:
    from polymargin.comparison.result import Comparison

_PANELS = (("train_seconds", "training, s"), ("test_seconds", "testing, s"), ("unique_svs", "unique SVs"))


def figure(comparison: Comparison) -> Any:
    """Return a figure with the rates (and their folds), times and support vectors of the machines that ran."""
    plt = _pyplot()
    done = [result for result in comparison.results if result.done]
    if not done:
        raise ValueError("no machine ran, so there is nothing to draw; the table says why")
    drawn = plt.figure(figsize=(11, 1.4 + 0.38 * len(done)), layout="constrained")
    axes = drawn.subplots(1, 1 + len(_PANELS), sharey=True)
    places = list(range(len(done)))
    for place, result in zip(places, done, strict=True):
        folds = [100 * rate for rate in result.fold_rates]
        axes[0].plot(folds, [place] * len(folds), "o", color=COLORS[0], alpha=0.3, markeredgewidth=0)
        axes[0].plot(100 * (result.rate or 0.0), place, "D", color=COLORS[5], zorder=3)
    axes[0].set(xlabel="rate, %", yticks=places, yticklabels=[result.name for result in done])
    axes[0].invert_yaxis()
    for ax, (key, label) in zip(axes[1:], _PANELS, strict=True):
        ax.barh(places, [getattr(result, key) or 0 for result in done], color=COLORS[0])
        ax.set_xlabel(label)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
    drawn.suptitle(comparison.data["name"])
    return drawn
