"""Print the oldest versions that pyproject.toml allows: of dependencies, of the extras named, and of what builds it.

The only list of versions is pyproject.toml. A requirement that does not apply here is left out; one without a lower
bound is refused, as is any Python but the oldest that is allowed.
"""

import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def lower_bound(specifiers: SpecifierSet, name: str) -> str:
    """Return the least version that is allowed."""
    bounds = [specifier.version for specifier in specifiers if specifier.operator == ">="]
    if len(bounds) != 1:
        raise ValueError(f"`{name}` needs a lower bound, as in `{name}>=1.0`: found `{specifiers}`")
    return bounds[0]


def pins(requirements: Iterable[str]) -> Iterator[str]:
    """Yield each requirement that applies here with the least version that it allows."""
    for text in requirements:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate():
            yield f"{requirement.name}=={lower_bound(requirement.specifier, requirement.name)}"


def oldest(pyproject: dict[str, Any], extras: Iterable[str]) -> list[str]:
    """Return the pins of a project, of what builds it, and of some of its extras, each once."""
    project = pyproject["project"]
    cmake = f"cmake{pyproject['tool']['scikit-build']['cmake']['version']}"
    wanted = [*pyproject["build-system"]["requires"], cmake, *project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    return list(dict.fromkeys(pins(wanted)))


def check_python(pyproject: dict[str, Any], running: tuple[int, int]) -> None:
    """Refuse a Python that is not the oldest: later ones need later versions of nearly everything."""
    wanted = lower_bound(SpecifierSet(pyproject["project"]["requires-python"]), "python")
    if ".".join(map(str, running)) != wanted:
        raise ValueError(f"the oldest versions are for Python {wanted}: make minimum PYTHON=python{wanted}")


def main() -> None:
    """Print the pins, one on a line."""
    pyproject = tomllib.loads(PYPROJECT.read_text())
    try:
        check_python(pyproject, sys.version_info[:2])
        print("\n".join(oldest(pyproject, sys.argv[1:])))
    except ValueError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
