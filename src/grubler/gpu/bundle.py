"""Functions from a folder that `grubler.export(..., target="cuda")` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .errors import InputError
from .function import GpuFunction
from .simulation import GpuSimulation


def load(folder: Any, name: str | None = None) -> GpuFunction:
    """The function of that name in a bundle; the name may be left out where there is one."""
    return GpuFunction(*_read(Path(folder), name))


def load_simulation(
    folder: Any, name: str | None = None, batch: int | None = None
) -> GpuSimulation:  # fmt: skip
    """The simulation of that name in a bundle that `Simulator.export` wrote, of as many robots as
    the simulator had, or of `batch`."""
    signature, texts = _read(Path(folder), name)
    about = signature.get("simulation")
    if about is None:
        raise InputError(
            f"'{signature['name']}' in bundle {folder} is no simulation: load it as a function"
        )
    if batch is not None:
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise InputError(f"batch is {batch!r}: give the number of robots, at least 1")
        about = {**about, "batch": batch}
    return GpuSimulation(GpuFunction(signature, texts), about)


def _read(folder: Path, name: str | None) -> tuple[dict[Any, Any], list[str]]:
    """A function's signature and the PTX of its candidates."""
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
    return signature, texts


def save_choice(folder: Any, function: GpuFunction) -> None:
    """Write a function's choice of candidate, as `tune` found it, into its bundle."""
    path = Path(folder) / f"{function.name}.json"
    signature = json.loads(path.read_text())
    signature["chosen"] = function.chosen
    path.write_text(json.dumps(signature, indent=1) + "\n")
