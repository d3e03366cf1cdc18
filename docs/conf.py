"""How Sphinx builds the documentation."""

import re

from polymargin import __version__

project = "polymargin"
author = "The polymargin developers"
copyright = "2026, The polymargin developers"
release = version = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"polymargin {version}"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # the docstrings say it
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False


def escape_attribute_names(app, what, name, obj, options, lines):
    """Keep names that end in an underscore from being read as links in the types of numpydoc."""
    for i, line in enumerate(lines):
        field, colon, kind = line.partition(" : ")
        if colon and not field.startswith((" ", ">")):
            lines[i] = field + colon + re.sub(r"(\w)_(?=[,)])", r"\1\\_", kind)


def setup(app):
    """Run before numpydoc."""
    app.connect("autodoc-process-docstring", escape_attribute_names, priority=400)
