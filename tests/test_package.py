"""The package's front door: names imported when used, functions never shadowed by modules."""

import ast
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import grubler as gb

SOURCE = Path(gb.__file__).parent

# What a machine that only runs compiled code may lack.
ABSENT = ("casadi", "llvmlite", "mujoco", "viser", "matplotlib", "platformdirs", "yaml", "xacro")

BLOCK = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def run(code: str) -> str:
    """What a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(SOURCE.parent), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def submodules() -> list[str]:
    return [m.name for m in pkgutil.iter_modules([str(SOURCE)])]


def test_runtime_without_the_compilers_dependencies():
    found = run(
        BLOCK + "import grubler.gpu, grubler\n"
        "print(grubler.gpu.load, grubler.gpu.available())\n"
        "print(grubler.InputError is grubler.gpu.InputError, grubler.__version__)\n"
        "try:\n    grubler.compile\n"
        "except ModuleNotFoundError as error:\n    print(error.name)\n"
    )
    lines = found.splitlines()
    assert lines[0].startswith("<function load")
    assert lines[1] == f"True {gb.__version__}"
    assert lines[2] in ABSENT  # compiling does need them, and the error says what


def test_import_brings_nothing_heavy():
    found = run("import sys, grubler\nprint([m for m in ('numpy', 'casadi') if m in sys.modules])")
    assert found.strip() == "[]"


def test_every_name_is_there():
    for name in gb.__all__:
        value = getattr(gb, name)
        module = getattr(value, "__module__", None) or value.__name__
        assert module.startswith("grubler.")
    assert set(gb.__all__) <= set(dir(gb))
    listed = {}
    exec("from grubler import *", listed)
    assert set(gb.__all__) <= set(listed)


def test_table_is_what_editors_read():
    """A stub exports a name only where the import says `x as x`."""
    body = ast.parse((SOURCE / "__init__.pyi").read_text()).body
    imports = [line for line in body if isinstance(line, ast.ImportFrom)]
    assert all(a.asname == a.name for line in imports for a in line.names)
    assert len({a.name for line in imports for a in line.names}) == len(gb.__all__)


def test_no_submodule_bears_a_functions_name():
    modules = {name for name in gb.__all__ if name in submodules()}
    assert all(getattr(gb, name).__name__ == f"grubler.{name}" for name in modules)
    for name in ("check", "view", "repartition"):
        assert name not in submodules()


@pytest.mark.parametrize("order", ["before", "after"])
def test_functions_stay_functions_whatever_was_imported(order):
    """In a fresh process, with every submodule imported before the first use or after it."""
    imports = "".join(f"import grubler.{m}\n" for m in submodules() if not m.startswith("_"))
    look = (
        "import grubler as gb, json\n"
        "kinds = {n: type(getattr(gb, n)).__name__ for n in gb.__all__}\n"
    )
    steps = [imports, look] if order == "before" else [look, imports, look]
    kinds = json.loads(run("\n".join([*steps, "print(json.dumps(kinds))"])))
    modules = {name for name, kind in kinds.items() if kind == "module"}
    assert modules == {"convert", "gpu", "robots"}


def test_unknown_name():
    with pytest.raises(AttributeError, match="did you mean forward_dynamics"):
        _ = gb.forwad_dynamics
    assert not hasattr(gb, "__wrapped__")
    assert gb.algebra.spatial.Transform  # submodules are there without an import of their own
