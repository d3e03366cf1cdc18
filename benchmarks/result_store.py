"""What a long run has found so far, in a file under build/: a run that was stopped goes on where it was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "build"


class ResultStore:
    """Findings by name, each written as soon as it is there.

    Parameters
    ----------
    name : str
        Of the file.
    anew : bool
        Forget what earlier runs have found.
    """

    def __init__(self, name: str, anew: bool = False) -> None:
        self._path = FOLDER / f"{name}.json"
        self._found: dict[str, Any] = {} if anew or not self._path.exists() else json.loads(self._path.read_text())

    def __contains__(self, key: str) -> bool:
        return key in self._found

    @property
    def found(self) -> dict[str, Any]:
        """All findings by name: written to the file of this name under build/, another run goes on from there."""
        return dict(self._found)

    def get(self, key: str, find: Callable[[], Any]) -> Any:
        """Return what was found before, or find it now; it must be what JSON can hold."""
        if key not in self._found:
            self.put(key, find())
        return self._found[key]

    def put(self, key: str, value: Any) -> None:
        """Keep a finding, in place of an earlier one if there is any."""
        self._found[key] = value
        partial = self._path.with_suffix(".partial")
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(self._found, indent=1))
        partial.replace(self._path)
