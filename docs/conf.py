"""Sphinx: `make docs` builds docs/_build/html, warnings are errors."""

import re
import sys
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import grubler

project = "grubler"
author = "the grubler authors"
version = release = grubler.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "sphinx_design"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"grubler {release}"
html_static_path = ["_static"]
html_show_sourcelink = False
html_copy_source = False
copybutton_exclude = ".linenos, .gp, .go"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True


def plain(_app, _what, _name, _object, _options, lines: list[str]) -> None:
    """Docstrings are plain text: `code` in backticks, indented blocks and tables as they stand."""
    out: list[str] = []
    for verbatim, group in groupby(lines, lambda line: line.startswith(("    ", "|"))):
        block = list(group)
        if verbatim:
            out += ["", ".. code-block:: text", "", *(f"   {line}" for line in block), ""]
        else:
            out += _escaped("\n".join(block)).split("\n")
    lines[:] = out


def _escaped(text: str) -> str:
    """Code in double backticks; nothing else means anything."""
    parts = re.split(r"`([^`]+)`", text)  # every second one is code
    for k, part in enumerate(parts):
        if k % 2:
            letter = parts[k + 1][:1].isalnum()  # "`Body`s"
            parts[k] = "``" + part.replace("\n", " ") + "``" + ("\\ " if letter else "")
        else:
            parts[k] = re.sub(r"([*|_\\])", r"\\\1", part)
    return "".join(parts)


def setup(app) -> None:
    app.connect("autodoc-process-docstring", plain)
