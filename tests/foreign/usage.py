"""Whether a test has to do with our classes."""

from typing import Any


class Usage:
    """What is known of the test that runs: an object of a tracked class was made, or something was read from it."""

    seen = False


class Tracked:
    """A class that says when it is used."""

    def __new__(cls, *args: Any, **parameters: Any) -> Any:
        Usage.seen = True
        return super().__new__(cls)

    # Objects may be made where tests are collected, or by a fixture that an earlier test needed.
    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("__"):  # pytest asks for __class__ and the like
            Usage.seen = True
        return super().__getattribute__(name)
