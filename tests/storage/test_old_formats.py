"""Models that earlier versions wrote, with what they decided."""

import json
from pathlib import Path

import numpy as np
import pytest

from polymargin import load_model, save_model

FOLDER = Path(__file__).parent / "format_1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())


@pytest.mark.parametrize("name", sorted(EXPECTED["scores"]))
def test_format_1(name, tmp_path):
    X, scores = np.array(EXPECTED["X"]), np.array(EXPECTED["scores"][name])
    machine = load_model(FOLDER / f"{name}.safetensors")
    np.testing.assert_allclose(machine.decision_function(X), scores, rtol=0, atol=1e-10)
    if len(machine.classes_) == 2:
        assert machine.intercept_.shape == (1,)
    save_model(machine, tmp_path / "again")
    np.testing.assert_array_equal(load_model(tmp_path / "again").decision_function(X), machine.decision_function(X))


def test_every_file_has_its_scores():
    assert {path.stem for path in FOLDER.glob("*.safetensors")} == set(EXPECTED["scores"])
