"""Wrong arguments explained: what a public function says instead of an error from deep inside.

`@public` costs nothing on a call that succeeds. Where a call fails with anything but a
GrublerError, its arguments are compared with what their names stand for in this library, and the
first one that is something else is named, with what it must be. Where all of them are right, the
error itself is raised.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from .algebra.symbolic import is_symbolic
from .errors import GrublerError, InputError
from .typing import Function

if TYPE_CHECKING:
    pass

FAILURES = (
    TypeError, ValueError, AttributeError, LookupError, ArithmeticError, AssertionError,
    RecursionError, MemoryError, NotImplementedError,
)  # fmt: skip


def public(fn: Function) -> Function:
    """The function, with errors that name its wrong argument."""

    @functools.wraps(fn)
    def explained(*arguments, **options):
        try:
            return fn(*arguments, **options)
        except GrublerError:
            raise
        except FAILURES as error:
            problem = _problem(fn, arguments, options)
            if problem is None:
                raise
            raise InputError(f"{fn.__name__}: {problem}") from error

    return cast("Function", explained)


class Kind(NamedTuple):
    """What an argument must be: a test, and the words for it."""

    holds: Callable[[object], bool]
    words: str


def is_model(x: object) -> bool:
    return any(
        (c.__module__, c.__name__) == ("grubler.model.model", "Model") for c in type(x).__mro__
    )


def is_number(x: object) -> bool:
    if is_symbolic(x):
        return x.shape == ()
    try:
        value = float(x)
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(x, (str, bytes, bool, np.bool_)) and np.ndim(x) == 0 and value == value


def is_numbers(x: object) -> bool:
    """An array of finite real numbers, or of symbols."""
    if is_symbolic(x):
        return True
    if isinstance(x, np.ma.MaskedArray):
        return False
    try:
        array = np.asarray(x)
        kind = array.dtype.kind
        return kind in "iuf" and bool(np.all(np.isfinite(array.astype(float))))
    except (TypeError, ValueError, OverflowError):
        return False


def is_name(x: object) -> bool:
    return isinstance(x, str) and x.isprintable()


def are_names(x: object) -> bool:
    several = isinstance(x, Iterable) and not isinstance(x, (str, bytes))
    return several and getattr(x, "ndim", 1) > 0 and all(map(is_name, x))


def _mapping_of(holds: Callable[..., Any]) -> Callable[..., Any]:
    def test(x) -> bool:
        return isinstance(x, Mapping) and all(is_name(k) and holds(v) for k, v in x.items())

    return test


def _rows(x) -> bool:
    """Names of frames, or (name, rows)."""
    if is_name(x) or hasattr(x, "placement"):
        return True
    if not isinstance(x, Iterable):
        return False
    for entry in x:
        pair = isinstance(entry, tuple) and len(entry) == 2
        if pair and not (isinstance(entry[1], Iterable) and is_numbers(list(entry[1]))):
            return False
        if not is_name(entry[0] if pair else entry) and not hasattr(entry, "placement"):
            return False
    return True


def _models(x) -> bool:
    if is_model(x):
        return True
    return all(map(is_model, x.values() if isinstance(x, Mapping) else x))


def _is_shape(x) -> bool:
    return any(
        (c.__module__, c.__name__) == ("grubler.mechanism.geometry", "Shape")
        for c in type(x).__mro__
    )


def _place(x) -> bool:
    return isinstance(x, str | os.PathLike) and "\0" not in str(x)


def _either(*tests: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: any(test(x) for test in tests)


MODEL = Kind(is_model, "a Model, as gb.load, gb.robots.load and ModelBuilder.build() make it")
NAME = Kind(is_name, "a name, a text")
NAMES = Kind(are_names, "a list of names")
NUMBER = Kind(is_number, "a number")
NUMBERS = Kind(is_numbers, "an array of finite real numbers")
VECTOR = Kind(lambda x: is_numbers(x) and np.shape(x) == (3,), "three finite numbers")
BY_NAME = Kind(_mapping_of(is_numbers), "a mapping from names to numbers")
FORCES = Kind(_either(_mapping_of(is_numbers), is_numbers), "numbers, or a mapping of them by name")
CALLABLE = Kind(callable, "a function")
FLAG = Kind(lambda x: isinstance(x, (bool, np.bool_)), "True or False")
WHOLE = Kind(
    lambda x: isinstance(x, (int, np.integer)) and not isinstance(x, bool) and abs(x) < 2**31,
    "a whole number",
)

_BY_NAMES = {
    MODEL: "model old new",
    NAME: (
        "name kind parent child body joint predecessor successor leader target language what "
        "key dtype method base axes first second"
    ),
    NAMES: "fixed independent dependent joints loops inputs parameters",
    NUMBER: (
        "mass gear dt pitch offset lower upper velocity_limit effort_limit armature damping "
        "friction restitution torsional rolling stiffness rest distance tolerance t"
    ),
    NUMBERS: "q q0 q1 v xi a tau b accelerations inertia R polynomial state torque",
    VECTOR: (
        "xyz rpy com axis axis2 axis_x gravity predecessor_xyz predecessor_rpy successor_xyz "
        "successor_rpy"
    ),
    BY_NAME: "values reference given ratios places",
    FORCES: "f_ext torques positions velocities efforts q_guess desired",
    CALLABLE: "fn step phi gamma",
    FLAG: (
        "hold strict analytic physical allow_unactuated vectors compiled rotors rotor_mass "
        "real_ratios open_meshes"
    ),
    WHOLE: "samples count lanes threads n contype conaffinity corners hull_points limit",
    Kind(
        _either(is_name, lambda x: hasattr(x, "placement")), "the name of a frame or body"
    ): "frame",
    Kind(_rows, "names of frames, or (name, rows) with rows of 0..5"): "frames",
    Kind(lambda x: iter(x) is not None, "a list of them"): "constraints closures",
    Kind(lambda x: all(map(_place, x)), "a list of paths"): "package_dirs",
    Kind(lambda x: np.shape(x) == () and bool(x) in (True, False), "one truth value"): "ok",
    Kind(_either(_mapping_of(is_model), is_model), "a Model, or Models by name"): (
        "primary secondary"
    ),
    Kind(
        _mapping_of(_either(is_name, are_names)), "a mapping from robots to names of frames"
    ): "ports",
    Kind(_place, "a path"): "path folder submechanisms srdf",
    Kind(_models, "Models: one, a list, or by name"): "robots objects",
    Kind(
        lambda x: isinstance(x, Mapping) and all(isinstance(v, (int, str)) for v in x.values()),
        "a mapping from names of loops to +1, -1 or 'other'",
    ): "branches",
    Kind(
        lambda x: isinstance(x, Mapping) and all(is_numbers(v) for v in x.values()),
        "a mapping from names of arguments to shapes",
    ): "shapes",
    Kind(
        lambda x: isinstance(x, (int, np.integer, np.random.Generator)) and _not_negative(x),
        "a whole number >= 0, or a numpy.random.Generator",
    ): "seed",
}
_KINDS = (
    {
        "pack.positions": Kind(
            lambda x: isinstance(x, Mapping) and all(is_numbers(v) for v in x.values()),
            "a mapping from indices of bodies to positions of their joints",
        ),
        "otherwise.values": NUMBERS,
        "scene.places": Kind(lambda x: isinstance(x, Mapping), "a mapping from models to places"),
        "__init__.shapes": Kind(
            _mapping_of(lambda x: _is_shape(x) or all(map(_is_shape, x))),
            "a mapping from names of frames to shapes",
        ),
        "regressor.friction": FLAG,
        "regressor_parameters.friction": FLAG,
        "regressor_names.friction": FLAG,
        "base_parameters.friction": FLAG,
        "from_spanning.positions": BY_NAME,
        "from_spanning.velocities": BY_NAME,
    }
    | {
        f"__init__.{name}": Kind(
            _either(is_number, lambda x: isinstance(x, Mapping)),
            "a number, or a mapping of them by shape or pair",
        )
        for name in ("friction", "restitution", "torsional", "rolling")
    }
    | {name: kind for kind, names in _BY_NAMES.items() for name in names.split()}
)
_SIZES = {
    "q": "nq", "q0": "nq", "q1": "nq", "q_guess": "nq", "v": "nv", "xi": "nv", "a": "nv",
    "tau": "nv",
}  # fmt: skip


def _not_negative(x) -> bool:
    return not isinstance(x, (int, np.integer)) or x >= 0


def _problem(fn: Callable[..., Any], arguments, options) -> str | None:
    """Which argument is not what its name stands for, or None."""
    signature = inspect.signature(fn)
    try:
        bound = signature.bind(*arguments, **options)
    except TypeError:
        return None  # Python's own message names what is missing or too much
    given = bound.arguments
    if "self" in given and is_model(given["self"]):
        given = {"model": given["self"], **given}
    for name, value in given.items():
        parameter = signature.parameters.get(name)
        if value is None and parameter is not None and parameter.default is None:
            continue
        kind = _KINDS.get(f"{fn.__name__}.{name}", _KINDS.get(name))
        if kind is None:
            continue
        if not _holds(kind, value):
            return f"{name} is {shown(value)}: give {kind.words}"
        problem = _wrong_size(given, name, value)
        if problem:
            return problem
    return None


def _holds(kind: Kind, value) -> bool:
    try:
        return bool(kind.holds(value))
    except FAILURES:
        return False


def _wrong_size(given: Mapping[Any, Any], name: str, value) -> str | None:
    model = given.get("model", given.get("old"))
    if name not in _SIZES or not is_model(model) or isinstance(value, Mapping):
        return None
    size = getattr(model, _SIZES[name])
    shape = value.shape if is_symbolic(value) else np.shape(value)
    if shape == (size,):
        return None
    return f"{name} has shape {shape}, expected ({size},)"


def shown(x: Any) -> str:
    """An argument in a message: its value where that is short, and its type."""
    try:
        text = repr(x)
    except Exception:  # of an object of the user's
        text = ""
    if not text.isprintable() or len(text) > 60:
        return f"a {type(x).__name__}"
    return text if isinstance(x, (str, type(None), bool)) else f"{text} ({type(x).__name__})"
