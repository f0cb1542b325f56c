"""Derivatives of any function that compiles: `jvp`, `vjp`, `jacobian`, `hvp`.

Each returns a function in the convention of the algorithms, fn(model, q, v, ...), that is called on
numbers, compiled by `grubler.compile` for every target, traced inside other functions, and
differentiated again.

    x = (q, v, tau, ..., mass, ...)     arguments and parameters named by `wrt`
    J = ∂f/∂x                           by q: along q ⊕ ξ (`algorithms/retraction.py`), nv columns
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments import are_names, public, shown
from ..errors import InputError, unknown
from ..model import Model
from ..model.parameters import NAMES
from .derived import Product
from .problem import Problem


@public
def jvp(
    fn: Callable[..., Any],
    model: Model,
    *,
    wrt: str | Sequence[Any] | None = None,
    value: bool = False,
    inputs: Sequence[str] | None = None,
    shapes: Mapping[Any, Any] | None = None,
    configurations: Sequence[str] = ("q",),
    **options: Any,
) -> Product:
    """A function of `fn`'s arguments and a direction of each in `wrt` that returns J ẋ, the
    derivative of each output in that direction.

    `wrt` names array arguments of `fn`, by name or position, and parameters ("gravity", "mass",
    "com", "inertia", "ratio"), whose values are the model's own; without it, all array arguments.
    Directions follow the arguments and are called d_q, d_v, ... That of a configuration is a
    velocity (nv,); `configurations` names the arguments that are configurations. With `value` the
    outputs of `fn` come first. `inputs`, `shapes` and `options` as in `compile`.
    """  # fmt: skip
    return _product("jvp", fn, model, wrt, value, inputs, shapes, configurations, options)


@public
def vjp(
    fn: Callable[..., Any],
    model: Model,
    *,
    wrt: str | Sequence[Any] | None = None,
    value: bool = False,
    inputs: Sequence[str] | None = None,
    shapes: Mapping[Any, Any] | None = None,
    configurations: Sequence[str] = ("q",),
    **options: Any,
) -> Product:
    """A function of `fn`'s arguments and weights w of its output that returns Jᵀ w, an array for
    each name in `wrt`: the gradient of w · output. (w0, w1, ... where `fn` has several outputs.)

    That by a configuration is a generalized force (nv,). Options as in `jvp`.
    """  # fmt: skip
    return _product("vjp", fn, model, wrt, value, inputs, shapes, configurations, options)


@public
def jacobian(
    fn: Callable[..., Any],
    model: Model,
    *,
    wrt: str | Sequence[Any] | None = None,
    value: bool = False,
    mode: str = "auto",
    inputs: Sequence[str] | None = None,
    shapes: Mapping[Any, Any] | None = None,
    configurations: Sequence[str] = ("q",),
    **options: Any,
) -> Product:
    """A function of `fn`'s arguments that returns J, for each output a matrix for each name in
    `wrt`: its rows are the output's elements, row by row, its columns those of the argument. Of a
    scalar output it is the gradient, without the row axis.

    `mode` is "forward" (columns), "reverse" (rows) or "auto": whichever are fewer. Options as in
    `jvp`.
    """  # fmt: skip
    if not isinstance(mode, str) or mode not in ("auto", "forward", "reverse"):
        raise InputError(unknown("mode", mode, ["auto", "forward", "reverse"]))
    return _product(
        "jacobian", fn, model, wrt, value, inputs, shapes, configurations, options, mode
    )


@public
def hvp(
    fn: Callable[..., Any],
    model: Model,
    *,
    wrt: str | Sequence[Any] | None = None,
    value: bool = False,
    inputs: Sequence[str] | None = None,
    shapes: Mapping[Any, Any] | None = None,
    configurations: Sequence[str] = ("q",),
    **options: Any,
) -> Product:
    """A function of `fn`'s arguments, weights w of its output and a direction of each name in `wrt`
    that returns H ẋ: H is the Hessian of w · output by all of them together. Where the output is a
    scalar, there are no weights. By configurations it is the second derivative along q ⊕ ξ at
    ξ = 0, which is symmetric. With `value` the gradient comes first. Options as in `jvp`.
    """  # fmt: skip
    return _product("hvp", fn, model, wrt, value, inputs, shapes, configurations, options)


def _product(
    kind, fn, model, wrt, value, inputs, shapes, configurations, options, mode="auto"
) -> Product:
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"value is {shown(value)}: give True or False")
    problem = Problem(fn, model, inputs, (), shapes, options)
    names = tuple(problem.state_names)
    chosen = _chosen(wrt, problem.name, names)
    configurations = (configurations,) if isinstance(configurations, str) else configurations
    if not are_names(configurations):
        raise InputError(f"configurations is {shown(configurations)}: give a list of names")
    own = {name: tuple(shape) for name, shape in (shapes or {}).items()}
    for name in configurations:
        shape = problem.shapes[names.index(name)] if name in names else None
        if shape not in (None, (model.nq,)):
            raise InputError(f"{name} has shape {shape} and is no configuration ({model.nq},)")
    product = Product(
        kind, fn, names, chosen, tuple(configurations), own, problem.options, bool(value),
        mode,
    )  # fmt: skip
    return product._with_weights(model) if kind in ("vjp", "hvp") else product


def _chosen(wrt, function: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The arguments and parameters that `wrt` names, each once."""
    if wrt is None:
        wrt = names
    whole = (int, np.integer)
    asked = [wrt] if isinstance(wrt, (str, *whole)) else wrt
    if not isinstance(asked, Sequence) or not all(isinstance(x, (str, *whole)) for x in asked):
        raise InputError(f"wrt is {shown(wrt)}: give names or places of arguments, such as ['q']")
    known, found = [*names, *NAMES], {}
    for name in asked:
        if isinstance(name, whole) and -len(names) <= name < len(names):
            name = names[name]
        if name not in known:
            raise InputError(f"wrt of '{function}': {unknown('argument', name, known)}")
        found[name] = None
    if not found:
        raise InputError(f"wrt is empty: give names of arguments of '{function}', such as 'q'")
    return tuple(found)
