"""Pictures of the plane: what is drawn is what the classifier says."""

import builtins
import itertools
import runpy
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from reference.data import iris, random_classes, separable
from scipy import sparse
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import polymargin
from polymargin import OneVsOneSVC, WestonWatkinsSVC
from polymargin.plots import COLORS, MARKERS, PALE, _colors, _mixed, decision_regions

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
plt = pytest.importorskip("matplotlib.pyplot")
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
MACHINES = [getattr(polymargin, name) for name in polymargin.__all__ if name.endswith("SVC")]


@pytest.fixture(autouse=True)
def close_figures():
    """Leave no figure behind."""
    yield
    plt.close("all")


def plane(k=3):
    """Overlapping classes in the plane."""
    X, y = random_classes(k, n=40 * k, n_features=2, seed=k)
    return X, y


def drawn(ax):
    """Return what was scattered, by its name in the legend."""
    return {group.get_label(): np.asarray(group.get_offsets()) for group in ax.collections if group.get_offsets().size}


def sorted_rows(points):
    return sorted(map(tuple, np.asarray(points).tolist()))


class Recorder:
    """A classifier that remembers what it was asked."""

    def __init__(self, model):
        self.model, self.asked = model, []

    def predict(self, X):
        self.asked.append(X)
        return self.model.predict(X)


@pytest.mark.parametrize("Machine", MACHINES)
def test_regions_points_rings_and_crosses_are_those_of_the_machine(Machine):
    X, y = plane()
    machine = Machine().fit(X, y)
    ax = decision_regions(machine, X, y, resolution=60)
    marks = drawn(ax)
    for label in range(3):
        assert sorted_rows(marks[str(label)]) == sorted_rows(X[y == label])
    assert sorted_rows(marks["support vector"]) == sorted_rows(X[machine.support_])
    wrong = machine.predict(X) != y
    assert wrong.any()
    assert sorted_rows(marks["error"]) == sorted_rows(X[wrong])
    pale = _mixed(_colors(3), PALE)
    image = ax.images[0]
    left, right, bottom, top = image.get_extent()
    centers_across = left + (np.arange(60) + 0.5) * (right - left) / 60
    centers_up = bottom + (np.arange(60) + 0.5) * (top - bottom) / 60
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(centers_across, centers_up)])
    shown = np.asarray(image.get_array())[..., :3].reshape(-1, 3)
    near = np.abs(shown - pale[machine.predict(grid)]).max(axis=1) < 0.01
    assert near.mean() > 0.995  # a point on a boundary may fall on either side of it


def test_the_grid_is_predicted_in_one_call():
    X, y = plane()
    recorder = Recorder(GaussianNB().fit(X, y))
    decision_regions(recorder, X, y, resolution=50)
    assert sorted(len(asked) for asked in recorder.asked) == [len(X), 50 * 50]


@pytest.mark.parametrize("model", [GaussianNB(), KNeighborsClassifier(), SVC()], ids=repr)
def test_any_classifier_is_drawn_with_rings_where_it_has_support_vectors(model):
    X, y = plane()
    marks = drawn(decision_regions(model.fit(X, y), X, y, resolution=30))
    assert ("support vector" in marks) == hasattr(model, "support_")


def test_the_last_step_of_a_pipeline_has_the_support_vectors():
    X, y = plane()
    pipeline = make_pipeline(StandardScaler(), OneVsOneSVC()).fit(X, y)
    marks = drawn(decision_regions(pipeline, X, y, resolution=30))
    assert sorted_rows(marks["support vector"]) == sorted_rows(X[pipeline[-1].support_])


@pytest.mark.parametrize(
    "names",
    [["a", "bb", "c"], [-5, 0, 7], [1.0, 2.0, 4.0], np.array(["x", "y", "z"], dtype=object)],
    ids=["str", "int", "float", "object"],
)
def test_labels_of_any_type(names):
    X, y = plane()
    labels = np.asarray(names)[y]
    ax = decision_regions(OneVsOneSVC().fit(X, labels), X, labels, resolution=30)
    entries = [text.get_text() for text in ax.get_legend().get_texts()]
    assert entries[:3] == [str(label) for label in names]
    assert entries[3:] == ["support vector", "error"]


def test_boolean_labels():
    X, y = plane(2)
    ax = decision_regions(OneVsOneSVC().fit(X, y == 1), X, y == 1, resolution=30)
    assert {"False", "True"} <= drawn(ax).keys()


def test_no_error_no_cross():
    X, y = separable()
    assert "error" not in drawn(decision_regions(OneVsOneSVC().fit(X, y), X, y, resolution=30))


def test_a_class_that_the_model_does_not_know_is_an_error():
    X, y = separable(60)
    known = y < 2
    marks = drawn(decision_regions(OneVsOneSVC().fit(X[known], y[known]), X, y, resolution=30, support=False))
    assert sorted_rows(marks["error"]) == sorted_rows(X[y == 2])


def test_one_region_alone_has_no_boundary():
    X, y = plane(2)
    model = KNeighborsClassifier(n_neighbors=len(X)).fit(X, y)
    ax = decision_regions(model, X, np.zeros_like(y), resolution=30)
    assert len(drawn(ax)) <= 2


# Where and how


def test_axes_are_used_and_returned():
    X, y = plane()
    machine = OneVsOneSVC().fit(X, y)
    figure, axes = plt.subplots(1, 2)
    assert decision_regions(machine, X, y, ax=axes[1], resolution=30, legend=False) is axes[1]
    assert not axes[0].images
    assert axes[1].get_legend() is None
    assert plt.get_fignums() == [figure.number]
    assert decision_regions(machine, X, y, resolution=30).figure.number not in (figure.number, None)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.filterwarnings("error")
def test_names_come_from_a_data_frame_or_as_given(frame):
    X, y = plane()
    X = frame({"width": X[:, 0], "height": X[:, 1]})
    machine = OneVsOneSVC().fit(X, y)
    ax = decision_regions(machine, X, y, resolution=30)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("width", "height")
    ax = decision_regions(machine, X, y, resolution=30, feature_names=["w", "h"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("w", "h")


def test_sparse_and_single_precision_data():
    X, y = plane()
    for container in (sparse.csr_matrix, sparse.csr_array, lambda A: A.astype(np.float32), lambda A: A.tolist()):
        machine = OneVsOneSVC().fit(container(X), y)
        marks = drawn(decision_regions(machine, container(X), y.tolist(), resolution=30))
        assert len(marks["support vector"]) == len(machine.support_)


def test_whole_numbers_do_not_round_the_grid():
    X, y = plane()
    recorder = Recorder(GaussianNB().fit(X, y))
    decision_regions(recorder, np.round(X).astype(int), y, resolution=30)
    grid = max(recorder.asked, key=len)
    assert len(np.unique(grid[:, 0])) == 30


def test_a_feature_that_does_not_vary_still_has_a_plane():
    X, y = plane()
    X[:, 1] = 3.0
    ax = decision_regions(GaussianNB().fit(X, y), X, y, resolution=30)
    assert ax.get_ylim() == (2.0, 4.0)


@pytest.mark.parametrize("k", [2, 8, 30])
def test_many_classes(k):
    X, y = plane(k)
    ax = decision_regions(OneVsOneSVC().fit(X, y), X, y, resolution=40)
    ax.figure.canvas.draw()
    assert {str(label) for label in range(k)} <= drawn(ax).keys()


# Colours


def test_classes_differ_in_colour_or_shape():
    colors = _colors(200)
    styles = {(tuple(color), MARKERS[code % len(MARKERS)]) for code, color in enumerate(colors)}
    assert len(styles) == 200
    assert len({tuple(color) for color in colors[:24]}) == 24


def lightness_and_hue(colors, matrix):
    """Return colours as CIELAB, seen through a matrix on linear red, green and blue."""
    colors = np.asarray(colors)
    linear = np.where(colors > 0.04045, ((colors + 0.055) / 1.055) ** 2.4, colors / 12.92)
    seen = np.clip(linear @ np.array(matrix).T, 0, 1)
    xyz = seen @ np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]).T
    t = xyz / [0.9505, 1.0, 1.089]
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.column_stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])])


# Machado, Oliveira and Fernandes (2009), severity 1.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0519]],
    "deuteranopia": [[0.3673, 0.8606, -0.2279], [0.2801, 0.6727, 0.0472], [-0.0118, 0.0429, 0.9689]],
    "tritanopia": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_the_first_colours_are_told_apart_by_everybody(deficiency):
    for shade, least in ((0.0, 15), (PALE, 4)):  # points, regions; a difference of 2.3 is just noticeable
        lab = lightness_and_hue(_mixed(_colors(len(COLORS)), shade), DEFICIENCIES[deficiency])
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(lab, 2)) > least


# Bad input


@pytest.mark.parametrize("n_features", [1, 3, 4])
def test_data_that_are_no_plane_are_refused(n_features):
    X, y = iris()
    X = X[:, :n_features]
    with pytest.raises(ValueError, match=rf"two features, got shape \(150, {n_features}\).*PCA"):
        decision_regions(OneVsOneSVC().fit(X, y), X, y)
    assert not plt.get_fignums()


def test_other_data_than_those_of_the_fit_have_no_rings():
    X, y = plane()
    machine = OneVsOneSVC().fit(X, y)
    for other in (X[:10], X + 1.0):
        with pytest.raises(ValueError, match="support=False"):
            decision_regions(machine, other, y[: len(other)])
        marks = drawn(decision_regions(machine, other, y[: len(other)], support=False, resolution=30))
        assert "support vector" not in marks


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": [0, 1]}, "y must have one label for each"),
        ({"X": np.empty((0, 2)), "y": []}, "X must have rows"),
        ({"X": np.full((120, 2), np.nan)}, "finite"),
        ({"resolution": 1}, "resolution must be 2 or more"),
        ({"feature_names": ["a"]}, "feature_names must be two names"),
    ],
)
def test_bad_arguments(changed, message):
    X, y = plane()
    machine = WestonWatkinsSVC().fit(X, y)
    with pytest.raises(ValueError, match=message):
        decision_regions(machine, **({"X": X, "y": y} | changed))
    assert not plt.get_fignums()


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    X, y = plane()
    machine = OneVsOneSVC().fit(X, y)
    original = builtins.__import__

    def without(name, *arguments, **options):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'polymargin\[plots\]'"):
        decision_regions(machine, X, y)


# Examples


def test_all_machines_are_drawn_side_by_side(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["machines_side_by_side.py", str(tmp_path / "picture.png")])
    runpy.run_path(str(EXAMPLES / "machines_side_by_side.py"), run_name="__main__")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [m.__name__ for m in MACHINES]
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_the_figure_of_weston_and_watkins_is_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["plane_figure.py", str(tmp_path / "picture.png")])
    runpy.run_path(str(EXAMPLES / "plane_figure.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(("errors: 0" in line) == ("three classes" in line) for line in lines)
    assert (tmp_path / "picture.png").stat().st_size > 10_000
