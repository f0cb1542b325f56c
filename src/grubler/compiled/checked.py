"""Compiled functions that refuse states at which their results would mean nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.checks import check_configuration
from ..algorithms.valid import validity
from ..compiler import CompiledFunction, compile_function
from ..compiler.runtime.arguments import as_numbers, batch_size, check_number
from ..errors import GrublerError, InputError, ModelError, PartitionError
from ..model import Model
from ..model.fingerprint import fingerprint

if TYPE_CHECKING:
    from ..typing import ArrayLike

# From these on a state is looked at closely. What the dtype can hold decides on lengths and gaps.
LENGTH = {"float64": 1e-6, "float32": 1e-5}  # of a quaternion, from 1
GAP = {"float64": 1e-7, "float32": 1e-3}  # m or rad
CLOSE = 1e5  # of a partition: more digits lost than single precision has
LOST = 1e9  # of a partition: nothing is left of the dependent velocities


class CheckedFunction:
    """A compiled function whose calls check each state first: finite numbers, unit quaternions,
    closed loops, a regular partition; and after that finite results.

    Errors are those of the NumPy call, and in a batch begin with "robot <i>:". `unchecked` is the
    function itself. A check costs about as much as the kinematics of the loops.
    """

    unchecked: CompiledFunction
    model: Model
    __name__: str

    def __init__(self, function: CompiledFunction, model: Model):
        self.unchecked, self.model = function, model
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        names = [array.name for array in function.inputs]
        if "q" not in names:
            raise InputError(
                f"'{function.name}' has no argument q to check (it has {', '.join(names)}): leave "
                "out checked=True"
            )
        self._place = names.index("q")

    def __repr__(self) -> str:
        return repr(self.unchecked).replace("<compiled", "<compiled, checked", 1)

    def __call__(self, *arguments: ArrayLike, out: Any = None, threads: int | None = None) -> Any:
        """The outputs for one state or for a batch, as the unchecked function gives them."""
        self.check(*arguments)
        return self._finite(self.unchecked(*arguments, out=out, threads=threads))

    def structure_of_arrays(
        self, *arguments: ArrayLike, out: Any = None, threads: int | None = None
    ) -> Any:
        """A batch with the states along the last axis: (n, N) instead of (N, n), outputs alike."""
        check_number(arguments, self.unchecked.inputs, self.unchecked.name)
        pairs = zip(arguments, self.unchecked.inputs, strict=True)
        rows = [
            np.moveaxis(np.asarray(x), -1, 0) if np.ndim(x) == len(a.shape) + 1 else x
            for x, a in pairs
        ]
        self.check(*rows)
        found = self.unchecked.structure_of_arrays(*arguments, out=out, threads=threads)
        return self._finite(found, states_last=True)

    def bind(
        self, *arguments: np.ndarray, out: Any = None, threads: int | None = None
    ) -> Callable[[], Any]:
        """A callable without arguments, as the unchecked function's, that checks what the arrays
        hold at each call."""
        bound = self.unchecked.bind(*arguments, out=out, threads=threads)

        def checked():
            self.check(*arguments)
            return self._finite(bound())

        return checked

    def check(self, *arguments: ArrayLike) -> None:
        """Refuse arguments of which a state is not valid; computes nothing else."""
        inputs, dtype = self.unchecked.inputs, self.unchecked.dtype
        check_number(arguments, inputs, self.unchecked.name)
        given = [as_numbers(x, a, dtype) for x, a in zip(arguments, inputs, strict=True)]
        batched = batch_size(given, inputs) is not None
        for x, array in zip(given, inputs, strict=True):
            self._check_finite(x, array, batched)
        q = np.atleast_2d(np.asarray(given[self._place], dtype=float))
        lengths, gaps, conditions = measures(self.model)(q)
        away = np.abs(lengths - 1).max(axis=1, initial=0.0) > LENGTH[dtype.name]
        opened = ~(gaps.max(axis=1, initial=0.0) <= GAP[dtype.name])
        near = ~(conditions.max(axis=1, initial=0.0) <= CLOSE)
        for i in np.flatnonzero(away | opened | near):
            where = f"robot {i}: " if given[self._place].ndim > 1 else ""
            self._refuse(q[i], away[i] or opened[i], conditions[i], where)

    def _refuse(self, q: np.ndarray, surely: bool, conditions: np.ndarray, where: str) -> None:
        """Raise the NumPy call's error, if that refuses this state, too."""
        try:
            if surely or self.unchecked.dtype == np.float64:
                check_configuration(self.model, q)
        except GrublerError as error:
            raise type(error)(f"{where}{error}") from None
        worst = int(np.argmax(np.where(np.isfinite(conditions), conditions, np.inf)))
        limit = LOST if self.unchecked.dtype == np.float64 else CLOSE
        if not conditions[worst] <= limit:
            cluster = [c for c in self.model.clusters if c.loops][worst]
            names = ", ".join(self.model.v_names[cluster.v])
            raise PartitionError(
                f"{where}the partition of loop '{cluster.loops[0].name}' leaves no digits at this "
                f"q (condition {conditions[worst]:.1e}): the independent joints {names} do not "
                "determine the others here; use model.repartition(q)"
            )

    def _check_finite(self, x: np.ndarray, array, batched: bool) -> None:
        bad = np.argwhere(~np.isfinite(x))
        if not len(bad):
            return
        at = tuple(int(i) for i in bad[0])
        own = at[x.ndim - len(array.shape) :]
        where = f"robot {at[0]}: " if batched and len(own) < len(at) else ""
        names = {"q": self.model.q_names, "f_ext": ()}.get(array.name, self.model.v_names)
        fits = array.shape == (len(names),)
        label = f" ({names[own[0]]})" if fits else ""
        index = ", ".join(map(str, own))
        raise InputError(f"{where}{array.name}[{index}]{label} is {x[at]}: give finite numbers")

    def _finite(self, result, states_last: bool = False):
        outputs = self.unchecked.outputs
        results = result if isinstance(result, tuple) else (result,)
        for x, array in zip(results, outputs, strict=True):
            bad = np.argwhere(~np.isfinite(x))
            if len(bad):
                many = x.ndim > len(array.shape)
                where = f"robot {bad[0][-1 if states_last else 0]}: " if many else ""
                raise ModelError(
                    f"{where}output '{array.name}' of '{self.unchecked.name}' is not finite: some "
                    "coordinate moves no inertia, or an argument is too large; see grubler.check"
                )
        return result


@lru_cache(maxsize=64)
def measures(model: Model) -> CompiledFunction:
    """The compiled `validity` of a model."""

    def measure(q):
        return tuple(validity(model, q))

    return compile_function(
        measure, [(model.nq,)], names=["q"], output_names=["lengths", "gaps", "conditions"],
        name="validity", key=fingerprint(validity, model),
    )  # fmt: skip
