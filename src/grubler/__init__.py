"""grubler: exact, extremely fast dynamics of robots with kinematic loops.

A name is imported when it is first used: what runs compiled code on a GPU needs neither CasADi nor
LLVM. `__init__.pyi` is the one table of names, for people, editors and this module alike. No
submodule may bear the name of a public function: its import would put it in the function's place.
"""

import ast as _ast
import importlib as _importlib
import pkgutil as _pkgutil
from typing import Any

__version__ = "0.2.0"


def _public() -> dict[str, str | None]:
    """The module that each public name comes from; None for a module itself."""
    table = _pkgutil.get_data(__name__, "__init__.pyi").decode()
    lines = [line for line in _ast.parse(table).body if isinstance(line, _ast.ImportFrom)]
    return {alias.name: line.module for line in lines for alias in line.names}


_names = _public()
__all__ = sorted(_names)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    source = _names.get(name)
    if source is not None:
        value = getattr(_importlib.import_module(f"{__name__}.{source}"), name)
        globals()[name] = value
        return value
    path = f"{__name__}.{name}"
    try:
        return _importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:  # it is there, but something that it needs is not
            raise
    import difflib

    close = difflib.get_close_matches(name, _names, n=3)
    hint = f": did you mean {' or '.join(close)}?" if close else ""
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_names})
