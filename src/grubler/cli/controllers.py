"""Controllers by name: zero, pd, or a user's function as MODULE:FUNCTION or FILE.py:FUNCTION.

A controller is a function `tau = controller(t, q, v)`; with a batch, q is (N, nq) and v (N, nv).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import grubler as gb

from ..errors import unknown
from ..model import Model

BANDWIDTH = 10.0  # rad/s


def controller(text: str, model: Model, q: np.ndarray) -> Callable[..., Any] | None:
    """The controller that a command line names, for a robot that starts at q."""
    if text == "zero":
        return None
    if text == "pd":
        return hold(model, q)
    place, colon, name = text.rpartition(":")
    if not colon:
        raise gb.InputError(
            f"controller '{text}' is unknown: give zero, pd, MODULE:FUNCTION or FILE.py:FUNCTION"
        )
    module = _from_file(Path(place)) if place.endswith(".py") else _from_name(place)
    found = getattr(module, name, None)
    if not callable(found):
        functions = [n for n, x in vars(module).items() if callable(x) and not n.startswith("_")]
        raise gb.InputError(f"controller '{text}': {unknown('function', name, functions)}")
    return found


def hold(model: Model, q: np.ndarray) -> Callable[..., Any]:
    """Hold every independent joint where it starts, critically damped at `BANDWIDTH`.

    What has no single position (a floating base, a ball) is left free. With indices h of the held
    and f of the free coordinates, the inertia that a held joint feels is the diagonal of
    M_hh - M_hf M_ff⁻¹ M_fh; times ω² and 2ω it gives the gains. A constant torque carries the bias
    force at the start, as far as the free coordinates do not yield to it.
    """
    names = list(model.q_names)
    held = [i for i, name in enumerate(model.v_names) if name in names]
    free = [i for i in range(model.nv) if i not in held]
    at = [names.index(model.v_names[i]) for i in held]
    one = q if q.ndim == 1 else q[0]
    M, h = gb.mass_matrix(model, one), gb.bias_force(model, one, np.zeros(model.nv))
    yields = np.linalg.solve(
        M[np.ix_(free, free)], np.column_stack([M[np.ix_(free, held)], h[free]])
    )
    felt = np.column_stack([M[np.ix_(held, held)], h[held]]) - M[np.ix_(held, free)] @ yields
    inertia, carried = np.diag(felt), felt[:, -1]
    start = q[..., at]

    def pd(t, q, v):
        tau = np.zeros_like(v)
        error = start - q[..., at]
        spring = BANDWIDTH**2 * error - 2 * BANDWIDTH * v[..., held]
        tau[..., held] = carried + inertia * spring
        return tau

    return pd


def _from_file(path: Path):
    if not path.is_file():
        raise gb.InputError(f"controller file '{path}' does not exist")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    return _run(str(path), lambda: spec.loader.exec_module(module) or module)


def _from_name(name: str):
    if "" not in sys.path:  # a console script does not look in the current folder
        sys.path.insert(0, "")
    return _run(name, lambda: importlib.import_module(name))


def _run(what: str, load: Callable[..., Any]):
    """Import a user's code; whatever goes wrong there is told in one line."""
    try:
        return load()
    except Exception as error:
        raise gb.InputError(
            f"controller module '{what}' fails: {type(error).__name__}: {error}"
        ) from error
