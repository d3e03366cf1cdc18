"""The oldest versions, as they are read from pyproject.toml."""

import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from minimum.minima import PYPROJECT, check_python, oldest, pins

DECLARED = tomllib.loads(PYPROJECT.read_text())
EXTRAS = ("test", "plots", "report", "onnx")  # what make minimum installs


def test_pins_are_the_lower_bounds_of_what_applies_here():
    wanted = ["numpy>=1.26", "scipy>=1.13,<2", "never>=3; python_version < '3'", "always>=4; python_version >= '3'"]
    assert list(pins(wanted)) == ["numpy==1.26", "scipy==1.13", "always==4"]


@pytest.mark.parametrize("text", ["numpy", "numpy<2", "numpy==1.26"])
def test_a_requirement_without_a_lower_bound_is_refused(text):
    with pytest.raises(ValueError, match="`numpy` needs a lower bound"):
        list(pins([text]))


def test_other_pythons_are_refused():
    check_python({"project": {"requires-python": ">=3.11"}}, (3, 11))
    with pytest.raises(ValueError, match=r"for Python 3\.11: make minimum PYTHON=python3\.11"):
        check_python({"project": {"requires-python": ">=3.11"}}, (3, 12))


def test_every_requirement_of_the_project_has_a_lower_bound():
    found = oldest(DECLARED, EXTRAS)
    assert len(found) == len(set(found))
    for name in ("numpy", "scipy", "typer", "highspy", "nanobind", "scikit-build-core", "cmake", "onnx", "matplotlib"):
        assert any(pin.startswith(f"{name}==") for pin in found), name


def test_one_package_has_one_oldest_version():
    found = [Requirement(pin) for pin in oldest(DECLARED, EXTRAS)]
    assert len({requirement.name for requirement in found}) == len(found)


def test_classifiers_name_the_oldest_python():
    named = [text.rpartition(" ")[2] for text in DECLARED["project"]["classifiers"] if "Python :: 3." in text]
    assert Version(named[0]) == min(map(Version, named))
    check_python(DECLARED, Version(named[0]).release)
