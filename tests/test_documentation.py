"""The pages of docs/: names of the glossary that exist, references that are spelled out and listed."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
REFERENCES = (ROOT / "docs" / "references.md").read_text()
FOLDERS = ("decision", "formulations", "kernels", "models", "selection", "solvers", "estimators", "losses")
SHORT = re.compile(r"\b(?:H&L|W&W|W&H|C&S|C & S|H & L|W & W|K\. et al)\b")


def names_in_the_glossary():
    """Return dotted names that begin with a folder of the package, `_core` or `polymargin`."""
    found = re.findall(r"`((?:polymargin\.)?\w+(?:\.\w+)*)`", GLOSSARY)
    return sorted({name for name in found if name.removeprefix("polymargin.").split(".")[0] in (*FOLDERS, "_core")})


def found(name):
    parts = name.removeprefix("polymargin.").split(".")
    item = importlib.import_module(f"polymargin.{parts[0]}")
    for at, part in enumerate(parts[1:], start=2):
        if not hasattr(item, part):
            item = importlib.import_module(".".join(["polymargin", *parts[:at]]))
        else:
            item = getattr(item, part)
    return item


@pytest.mark.parametrize("name", names_in_the_glossary())
def test_names_of_the_glossary_are_there(name):
    assert found(name) is not None


def test_the_glossary_has_a_definition_for_every_word():
    entries = re.findall(r"^(\w[^\n]*)\n: ", GLOSSARY, re.MULTILINE)
    assert len(entries) > 40
    assert len(set(entries)) == len(entries)
    for word in ("estimator", "formulation", "model", "score", "violation", "gap", "certificate", "settled scores"):
        assert any(word in entry for entry in entries), word


def sources():
    folders = ("src", "docs", "benchmarks", "tests", "examples")
    for folder in folders:
        for suffix in ("*.py", "*.md", "*.hpp", "*.cpp"):
            yield from (path for path in (ROOT / folder).rglob(suffix) if path != Path(__file__))


def test_references_are_spelled_out():
    short = [str(path) for path in sources() if "_build" not in path.parts and SHORT.search(path.read_text())]
    assert not short


PAPERS = ["Hsu & Lin", "Weston & Watkins", "Crammer & Singer", "Keerthi et al.", "Zien et al."]


@pytest.mark.parametrize("paper", PAPERS)
def test_papers_are_listed(paper):
    assert re.search(rf"^{re.escape(paper)}\n: ", REFERENCES, re.MULTILINE)
