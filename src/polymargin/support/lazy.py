"""Names that a package has from the start and loads when they are asked for: most programs never use all of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any


def loaded_when_asked(
    package: str, module_of: Mapping[str, str], modules: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package.

    ``module_of`` has the module of each name, ``modules`` the names of modules of the package.
    """

    def get(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)  # the next one does not come here
        return value

    def names() -> list[str]:
        own = vars(sys.modules[package])
        return sorted({*own["__all__"], *modules, *(name for name in own if name.startswith("__"))})

    return get, names


def loaded_from(
    package: str, modules: Mapping[str, Collection[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the same for a package whose modules have some names each; no name is that of a module too."""
    module_of = {name: f"{package}.{module}" for module, names in modules.items() for name in names}
    return loaded_when_asked(package, module_of)
