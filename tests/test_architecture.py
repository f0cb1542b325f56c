"""The architecture document names the files, folders and functions that there are."""

import importlib
import re
from pathlib import Path

import pytest

import grubler as gb

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "grubler"
TEXT = (ROOT / "docs" / "architecture.md").read_text()
NAMED = sorted(set(re.findall(r"`([^`\n]+)`", TEXT)))
PATHS = [name for name in NAMED if re.fullmatch(r"[\w/.]+(\.\w+|/)", name) and "/" in name[:-1]]
PATHS += [name for name in NAMED if re.fullmatch(r"\w+(/|\.(py|pyi|toml|json))", name)]
DOTTED = [name for name in NAMED if re.fullmatch(r"[a-z]\w*(\.\w+)+", name) and name not in PATHS]
ROOMS = {
    path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()
}


@pytest.mark.parametrize("path", PATHS)
def test_files_and_folders_exist(path):
    """A path from the repository's root, or from the package's."""
    found = [base / path for base in (ROOT, SOURCE) if (base / path).exists()]
    assert found and found[0].is_dir() == path.endswith("/")


@pytest.mark.parametrize("name", [n for n in DOTTED if n.split(".")[0] in {*ROOMS, "gb"}])
def test_functions_exist(name):
    """`gb.function`, `room.module.function`, or an attribute of a model."""
    room, *rest = name.split(".")
    of_a_model = {*dir(gb.Model), *gb.Model.__dataclass_fields__}
    if room == "model" and rest[0] in of_a_model:
        return
    thing = gb if room == "gb" else importlib.import_module(f"grubler.{room}")
    for part in rest:
        path = f"{thing.__name__}.{part}"
        thing = getattr(thing, part) if hasattr(thing, part) else importlib.import_module(path)


def test_rooms_are_all_and_only_those_there_are():
    """The table of rooms, its indented block under `src/grubler/`."""
    block = re.search(r"^    src/grubler/\n((?:      .*\n)+)", TEXT, re.M)[1]
    heads = [line.strip().split("   ")[0] for line in block.splitlines()]
    folders = {folder for head in heads for folder in re.findall(r"(\w+)/", head)}
    files = {file for head in heads for file in re.findall(r"\w+\.py\b", head)}
    assert folders == ROOMS
    assert all((SOURCE / file).exists() for file in files)


def test_the_document_names_something():
    assert len(PATHS) > 8 and "compiler/passes/limbs.py" in PATHS


def test_tests_mirror_the_rooms():
    """Each room of the tests bears the name of a room of the sources, and no two files one name."""
    tests = ROOT / "tests"
    rooms = {path.parent.relative_to(tests).parts[0] for path in tests.glob("*/**/test_*.py")}
    assert rooms <= {*ROOMS, "fuzz"}
    names = [path.name for path in tests.rglob("*.py")]
    assert {n for n in names if names.count(n) > 1} <= {"__init__.py", "conftest.py"}
