"""Algorithms compiled for one robot: `compile`, `count_operations`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from .. import compiler
from ..arguments import are_names, public
from ..errors import InputError, unknown
from ..gpu import GpuFunction
from ..model import Model
from ..model.fingerprint import UNKNOWN, data_digest, fingerprint
from ..model.given import flag
from ..model.parameters import NAMES, parameter_values, with_parameters
from .checked import CheckedFunction

if TYPE_CHECKING:
    pass

OPTIONS = ("constraints", "frames", "frame", "positions")  # arguments of ours that are no arrays


@overload
def compile(
    fn: Callable[..., Any], model: Model, *, target: Literal["cpu"] = "cpu",
    checked: Literal[False] = False, lanes: int | None = None, dtype: str = "float64",
    inputs: Sequence[str] | None = None, parameters: Sequence[str] = (),
    shapes: Mapping[str, tuple[int, ...]] | None = None, key: str | None = None, **options: Any,
) -> compiler.CompiledFunction: ...  # fmt: skip


@overload
def compile(
    fn: Callable[..., Any], model: Model, *, target: Literal["cpu"] = "cpu",
    checked: Literal[True], lanes: int | None = None, dtype: str = "float64",
    inputs: Sequence[str] | None = None, parameters: Sequence[str] = (),
    shapes: Mapping[str, tuple[int, ...]] | None = None, key: str | None = None, **options: Any,
) -> CheckedFunction: ...  # fmt: skip


@overload
def compile(
    fn: Callable[..., Any], model: Model, *, target: Literal["cuda"], arch: str | None = None,
    dtype: str = "float64", inputs: Sequence[str] | None = None, parameters: Sequence[str] = (),
    shapes: Mapping[str, tuple[int, ...]] | None = None, key: str | None = None, **options: Any,
) -> GpuFunction: ...  # fmt: skip


@overload
def compile(
    fn: Callable[..., Any], model: Model, *, target: str = "cpu", checked: bool = False,
    lanes: int | None = None, arch: str | None = None, dtype: str = "float64",
    inputs: Sequence[str] | None = None, parameters: Sequence[str] = (),
    shapes: Mapping[str, tuple[int, ...]] | None = None, key: str | None = None, **options: Any,
) -> compiler.CompiledFunction | CheckedFunction | GpuFunction: ...  # fmt: skip


@public
def compile(
    fn: Callable[..., Any],
    model: Model,
    *,
    dtype: str = "float64",
    target: str = "cpu",
    inputs: Sequence[str] | None = None,
    parameters: Sequence[str] = (),
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    lanes: int | None = None,
    arch: str | None = None,
    key: str | None = None,
    checked: bool = False,
    **options: Any,
) -> compiler.CompiledFunction | CheckedFunction | GpuFunction:
    """Machine code of `fn(model, ...)` for this model.

    `fn` is a public algorithm or a function of your own in the same dialect. Its array arguments
    are those without a default; `inputs` names them where you want others (`f_ext`, or `v` of
    `kinematics`). Arguments called q, q0, q1, v, xi, a, tau, f_ext, torques, t have known shapes;
    give `shapes` for any other. `parameters` ("gravity", "mass", "com", "inertia", "ratio") become
    further inputs, in the order given, so that one compilation serves every value. `options` go to
    `fn` as they are: `frames=...`, `method=...`, where "auto" takes the exact method that is
    estimated to be the quickest on this robot. A function of your own is traced anew in each
    process unless you give a `key`: a text that stands for its code, and for that of other
    functions of yours in the model and the options. Their numbers are added to it.

    Compiled code takes any numbers. `checked=True` gives a function that refuses states which the
    NumPy call would refuse: quaternions not of unit length, open loops, singular partitions, NaN.

    `target="cuda"` compiles for NVIDIA GPUs, of architecture `arch` ("sm_90" unless given) and
    newer: the function then takes arrays of torch, CuPy or JAX there (see `grubler.gpu`).
    """
    checked = flag("checked", checked)
    if target not in ("cpu", "cuda"):
        raise InputError(unknown("target", target, ["cpu", "cuda"]))
    if target == "cuda" and lanes is not None:
        raise InputError("lanes are the CPU's: leave them out with target='cuda'")
    if target == "cpu" and arch is not None:
        raise InputError("arch names a GPU: leave it out, or compile with target='cuda'")
    if key is not None and not (isinstance(key, str) and key) and key is not UNKNOWN:
        raise InputError(f"key is {key!r}: give a text that names this version of your function")
    if target == "cuda" and checked:
        raise InputError(
            "checked=True is the CPU's: compile grubler.validity with target='cuda', too, and look "
            "at its outputs"
        )
    problem = Problem(fn, model, inputs, parameters, shapes, options)
    if target == "cuda":
        from ..compiler.runtime.cuda import compile_cuda  # here, since few need it

        return compile_cuda(
            problem, problem.shapes, names=problem.names, dtype=dtype, name=problem.name,
            arch="sm_90" if arch is None else arch, key=problem.key(key),
        )  # fmt: skip
    function = compiler.compile_function(
        problem, problem.shapes, names=problem.names, dtype=dtype, name=problem.name, lanes=lanes,
        key=problem.key(key),
    )  # fmt: skip
    return CheckedFunction(function, model) if checked else function


@public
def count_operations(
    fn: Callable[..., Any], model: Model, **options: Any
) -> compiler.OperationCount:
    """Additions, multiplications, divisions, trigonometric calls of one evaluation; options as in
    `compile`."""
    problem = Problem.from_options(fn, model, options)
    return compiler.count_operations(problem, problem.shapes)


class Problem:
    """A function of arrays alone: `fn` with its model and options filled in."""

    shapes: Any
    fn: Callable[..., Any]
    model: Model

    def __init__(
        self,
        fn: Any,
        model: Model,
        inputs: Sequence[str] | None,
        parameters: Sequence[str],
        shapes: Any,
        options: Mapping[Any, Any],
    ):
        if not callable(fn):
            raise InputError(f"compile needs a function fn(model, ...), not {fn!r}")
        if not isinstance(model, Model):
            raise InputError(f"compile needs a Model, not {type(model).__name__}")
        _check_names("inputs", inputs)
        _check_names("parameters", parameters)
        self.fn, self.model = fn, model
        self.name = getattr(fn, "__name__", "f").replace("<lambda>", "f")
        if options.get("method") == "auto":
            options = {
                **options,
                "method": _quickest(fn, model, inputs, parameters, shapes, options),
            }
        self.options = options
        _check_options(fn, self.name, options)
        self.state_names: list[str] = (
            list(inputs) if inputs is not None else _array_arguments(fn, options)
        )
        for name in parameters:
            if name not in NAMES:
                raise InputError(unknown("parameter", name, NAMES))
        self.parameters: list[str] = list(parameters)
        known = _known_shapes(model) | getattr(fn, "derivative_shapes", lambda model: {})(model)
        known |= _given_shapes(shapes)
        missing = [n for n in self.state_names if n not in known]
        if missing:
            raise InputError(_no_shape(missing[0], self.name))
        self.names: list[str] = self.state_names + self.parameters
        self.shapes = [known[n] for n in self.state_names]
        self.shapes += [parameter_values(model, n).shape for n in self.parameters]
        self.__name__: Any = self.name
        self.__doc__ = fn.__doc__

    @classmethod
    def from_options(cls, fn: Any, model: Model, options: Mapping[Any, Any]) -> Any:
        options = dict(options)
        chosen = [
            options.pop(n, d) for n, d in (("inputs", None), ("parameters", ()), ("shapes", None))
        ]
        return cls(fn, model, *chosen, options)

    def key(self, given: str | None = None) -> str | None:
        """A text that stands for everything that the traced code depends on, or None. `given`
        stands for code of users, whose data are known."""
        about = (self.model, self.names, self.parameters, self.options)
        about += getattr(self.fn, "derivative_of", ())  # which derivative of the user's function
        if given:
            return fingerprint("given", given, data_digest(*about)) or None
        return fingerprint(self.fn, *about) or None

    def __call__(self, *arrays: Any) -> tuple[Any, ...] | Any:
        out = self.call(self.fn, arrays)
        return tuple(x for x in out if x is not None) if isinstance(out, tuple) else out

    def call(self, fn: Callable[..., Any], arrays: Sequence[Any], **more: Any) -> Any:
        """A function of the model, `more`, and the arguments and options of `fn`."""
        state, rest = arrays[: len(self.state_names)], arrays[len(self.state_names) :]
        model = self.model
        if rest:
            model = with_parameters(model, dict(zip(self.parameters, rest, strict=True)))
        arguments = dict(zip(self.state_names, state, strict=True))
        return fn(model, **arguments, **self.options, **more)


def _array_arguments(fn: Callable[..., Any], options: Mapping[Any, Any]) -> list[str]:
    """The parameters of `fn` after the model that have no default and are not given as options."""
    parameters = list(inspect.signature(fn).parameters.values())[1:]
    return [
        p.name
        for p in parameters
        if p.default is inspect.Parameter.empty
        and p.name not in options
        and p.kind is not inspect.Parameter.VAR_KEYWORD
    ]


def _check_names(what: str, names) -> None:
    if names is not None and not are_names(names):
        raise InputError(f"{what} is {names!r}: give a list of names, such as ['q']")


def _given_shapes(shapes) -> dict[str, tuple[int, ...]]:
    """Shapes by name; a whole number n stands for (n,)."""
    found = {}
    for name, shape in (shapes or {}).items():
        sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
        if not isinstance(name, str) or not all(isinstance(n, (int, np.integer)) for n in sizes):
            raise InputError(
                f"shapes has {name!r}: {shape!r}: give the name of an argument and its shape, such "
                "as {'t': (1,)}"
            )
        found[name] = tuple(int(n) for n in sizes)
    return found


def _check_options(fn: Callable[..., Any], name: str, options: Mapping[Any, Any]) -> None:
    """Refuse options that the function does not have."""
    try:
        known = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # a function that does not tell
        return
    names = [p.name for p in known if p.kind != inspect.Parameter.VAR_POSITIONAL]
    if any(p.kind == inspect.Parameter.VAR_KEYWORD for p in known):
        return
    for option in options:
        if option not in names:
            raise InputError(f"'{name}': {unknown('option', option, names)}")


def _no_shape(argument: str, name: str) -> str:
    if argument in OPTIONS:
        return (
            f"'{name}' needs {argument}, which is no array: give it as an option, "
            f"compile({name}, model, {argument}=...)"
        )
    return (
        f"the shape of argument '{argument}' of '{name}' is not known: give "
        f"shapes={{'{argument}': (n,)}}, or a value as an option"
    )


def _known_shapes(model: Model) -> dict[str, tuple[int, ...]]:
    nv = (model.nv,)
    return {
        "q": (model.nq,), "v": nv, "a": nv, "tau": nv,
        "f_ext": (len(model.bodies), 6), "torques": (model.nv_span,),
        "xi": nv, "q0": (model.nq,), "q1": (model.nq,), "t": (1,),
    }  # fmt: skip


@functools.lru_cache(maxsize=256)
def quickest(fn: Callable[..., Any], model: Model) -> str:
    """The method that `method="auto"` takes."""
    return _quickest(fn, model, None, (), None, {})


def _quickest(fn, model, inputs, parameters, shapes, options) -> str:
    """The exact method that is estimated to take a CPU the fewest cycles on this robot."""
    methods = getattr(fn, "exact_methods", None)
    if methods is None:
        raise InputError(
            f"method='auto' needs a function with several exact methods, such as forward_dynamics "
            f"or inverse_osim, not {getattr(fn, '__name__', fn)!r}"
        )

    def fastest() -> str:
        cycles = {}
        for method in methods:
            chosen = {**options, "method": method}
            problem = Problem(fn, model, inputs, parameters, shapes, chosen)
            cycles[method] = compiler.estimate_cycles(problem, problem.shapes)
        return min(cycles, key=cycles.get)

    about = (fn, model, inputs, list(parameters), shapes, options)
    return compiler.choice(fingerprint("method", *about) or None, methods, fastest)
