"""Small values as JSON: what comes back is what went in, type and all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polymargin.storage._values import decoded, encoded, from_json, to_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v) | st.tuples(v, v) | st.dictionaries(st.text() | st.integers(), v), max_leaves=8
)


@given(VALUES)
def test_round_trip(value):
    assert repr(decoded(from_json(to_json(encoded(value))))) == repr(value)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3)])
def test_arrays_come_back(dtype, shape):
    array = (np.random.default_rng(0).normal(size=shape) * 100).astype(dtype)
    back = decoded(from_json(to_json(encoded(array))))
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def test_numpy_scalars_come_back_as_pythons():
    assert [type(decoded(encoded(x))) for x in (np.float32(0.1), np.int64(3), np.bool_(True), np.str_("a"))] == [
        float,
        int,
        bool,
        str,
    ]


@pytest.mark.parametrize("value", [object(), len, {1}, b"bytes", 1j, np.array([np.nan]), np.array(["a"]), [object()]])
def test_other_values_are_refused(value):
    with pytest.raises(TypeError, match="a model file holds"):
        encoded(value)


@pytest.mark.parametrize(
    "value",
    [
        [1],
        {},
        {"a": 1},
        {"float": "1"},
        {"float": "inf", "dict": []},
        {"dict": [[1]]},
        {"dict": [[{"list": []}, 1]]},
        {"list": [{}]},
        {"array": ["float64", [[1], [1, 2]]]},
        {"array": ["object", [1]]},
        {"array": ["float64", ["a"]]},
        {"array": ["float64", 1]},
    ],
    ids=str,
)
def test_what_was_never_encoded_is_refused(value):
    with pytest.raises(ValueError, match=r"\w"):
        decoded(value)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": 1, "a": 2}', "", "{", b"\xff"])
def test_text_that_is_not_strict_json_is_refused(text):
    with pytest.raises(ValueError, match=r"\w"):
        from_json(text)
