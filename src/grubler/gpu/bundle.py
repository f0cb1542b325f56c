"""Functions from a folder that `grubler.export(..., target="cuda")` wrote."""

from __future__ import annotations

import json
from pathlib import Path

from .errors import InputError
from .function import GpuFunction


def load(folder, name: str | None = None) -> GpuFunction:
    """The function of that name in a bundle; the name may be left out where there is one."""
    folder = Path(folder)
    found = sorted(path.stem for path in folder.glob("*.json"))
    if name is None:
        if len(found) != 1:
            listed = ", ".join(found) or "none"
            raise InputError(f"bundle {folder} holds these functions: {listed}; name one of them")
        name = found[0]
    path = folder / f"{name}.json"
    if not path.is_file():
        listed = ", ".join(found) or "none"
        raise InputError(f"bundle {folder} holds no function '{name}', but: {listed}")
    try:
        signature = json.loads(path.read_text())
        texts = [(folder / c["file"]).read_text() for c in signature["candidates"]]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise InputError(f"bundle file {path} is damaged: {error!r}; export it anew") from error
    return GpuFunction(signature, texts)


def save_choice(folder, function: GpuFunction) -> None:
    """Write a function's choice of candidate, as `tune` found it, into its bundle."""
    path = Path(folder) / f"{function.name}.json"
    signature = json.loads(path.read_text())
    signature["chosen"] = function.chosen
    path.write_text(json.dumps(signature, indent=1) + "\n")
