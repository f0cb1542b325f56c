"""Types of the public faces: complete, and the documents' own code agrees with them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import grubler as gb

pytest.importorskip("pyright")
ROOT = Path(__file__).parents[1]
SOURCE = Path(gb.__file__).parent
COMPLETE = 0.95  # of all names, of which most are internal
PAGES = ("README.md", "docs/start.md", "docs/loops.md", "docs/constrained.md")


def pyright(*arguments: str) -> dict:
    """What pyright finds, with the packages and the sources of this process."""
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
    env = {**os.environ, "PYTHONPATH": str(SOURCE.parent), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, env=env
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def completeness() -> dict:
    found = pyright("--verifytypes", "grubler", "--ignoreexternal")["typeCompleteness"]
    assert Path(found["packageRootDirectory"]) == SOURCE
    return found


def test_types_are_complete(completeness):
    assert completeness["completenessScore"] >= COMPLETE


def test_every_public_name_has_a_type(completeness):
    known = {s["name"]: s for s in completeness["symbols"] if s["isExported"]}
    open_ = [
        name
        for name in gb.__all__
        if not known.get(f"grubler.{name}", {"isTypeKnown": True})["isTypeKnown"]
    ]
    assert open_ == []
    assert sum(f"grubler.{name}" in known for name in gb.__all__) > 40


@pytest.mark.parametrize("page", PAGES)
def test_the_documents_code_agrees_with_the_types(page, tmp_path):
    text = (ROOT / page).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert blocks
    lines = "\n".join(blocks).splitlines()
    (tmp_path / "page.py").write_text("\n".join(lines))
    found = pyright(str(tmp_path / "page.py"))["generalDiagnostics"]
    errors = [(lines[e["range"]["start"]["line"]], e["message"]) for e in found
              if e["severity"] == "error"]  # fmt: skip
    # of a dict that is unpacked each value is taken for each argument
    assert [error for error in errors if "**" not in error[0]] == []


def test_a_wrong_call_is_found(tmp_path):
    code = "import grubler as gb\ngb.forward_dynamics(gb.robots.load('arm7'), 'q', None, 3)\n"
    (tmp_path / "wrong.py").write_text(code)
    assert pyright(str(tmp_path / "wrong.py"))["summary"]["errorCount"]
