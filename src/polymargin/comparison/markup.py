"""HTML made of elements, so that every text is escaped and every tag closed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

Element = ElementTree.Element
Child = Element | str | None


def element(tag: str, *children: Child | Iterable[Child], **attributes: Any) -> Element:
    """Return an element; ``class_`` is the attribute class, ``data_label`` is data-label, None leaves one out."""
    named = {name.rstrip("_").replace("_", "-"): str(value) for name, value in attributes.items() if value is not None}
    made = Element(tag, named)
    for child in children:
        for item in [child] if child is None or isinstance(child, str | Element) else child:
            _append(made, item)
    return made


def _append(parent: Element, child: Child) -> None:
    if child is None:
        return
    if not isinstance(child, str):
        parent.append(child)
    elif len(parent):
        parent[-1].tail = (parent[-1].tail or "") + child
    else:
        parent.text = (parent.text or "") + child


def rendered(root: Element) -> str:
    """Return the text of an element."""
    return ElementTree.tostring(root, encoding="unicode", method="html")
