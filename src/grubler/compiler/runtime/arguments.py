"""The call's boundary: what the user hands over, checked and brought into a form for kernels.

Everything a kernel touches passes here first, so that wrong input is an error with a name and
never a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from ..ir.tape import Array


def as_numbers(value: Any, array: Array, dtype: np.dtype) -> np.ndarray:
    """An argument as an array of the kernel's dtype; copied only where it has to be."""
    if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack_device__"):
        _check_on_cpu(value, array)
    try:
        given = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"argument '{array.name}' is not an array of numbers: {error}") from error
    if given.dtype == dtype:
        converted = given
    elif given.dtype.kind in "iuf":
        converted = given.astype(dtype)
    else:
        raise InputError(
            f"argument '{array.name}' has dtype {given.dtype}: give real numbers, {dtype} best"
        )
    return converted if converted.flags.aligned else converted.copy()


def _check_on_cpu(value, array: Array) -> None:
    kind = int(value.__dlpack_device__()[0])
    if kind not in (1, 3):  # DLPack's numbers for a CPU's memory and for pinned memory
        raise InputError(
            f"argument '{array.name}' ({type(value).__name__}) lies on a GPU, but this function "
            "runs on the CPU: copy it over (x.cpu(), cupy.asnumpy(x), numpy.asarray(x)), or "
            "compile with target='cuda'"
        )


def batch_size(arguments: Sequence[np.ndarray], arrays: Sequence[Array]) -> int | None:
    """The number of states, or None for a single state; every shape is checked."""
    size = source = None
    for given, array in zip(arguments, arrays):
        if given.shape == array.shape:
            continue
        if given.ndim != len(array.shape) + 1 or given.shape[1:] != array.shape:
            raise InputError(
                f"argument '{array.name}' has shape {given.shape}: expected {array.shape}, or "
                f"(N, {', '.join(map(str, array.shape))}) for a batch of N"
            )
        if size is None:
            size, source = given.shape[0], array.name
        elif given.shape[0] != size:
            raise InputError(
                f"argument '{array.name}' holds {given.shape[0]} states, but '{source}' holds "
                f"{size}: give both the same number"
            )
    return size


def check_number(given: Sequence[Any], arrays: Sequence[Array], name: str) -> None:
    if len(given) != len(arrays):
        expected = ", ".join(array.name for array in arrays)
        raise InputError(f"'{name}' takes {len(arrays)} arguments ({expected}), not {len(given)}")


def as_outputs(
    out: Any, outputs: Sequence[Array], dtype: np.dtype, shapes: Sequence[Any]
) -> list[np.ndarray]:
    """The arrays given as `out`, checked: nothing is converted, since results go into them."""
    given = [out] if isinstance(out, np.ndarray) else out
    if not isinstance(given, (tuple, list)) or len(given) != len(outputs):
        raise InputError(f"out must be {_wanted(outputs)}, not {_described(out)}")
    for value, array, shape in zip(given, outputs, shapes):
        if not isinstance(value, np.ndarray):
            raise InputError(f"out for '{array.name}' is {_described(value)}: give a NumPy array")
        if value.shape != shape:
            raise InputError(f"out for '{array.name}' has shape {value.shape}: expected {shape}")
        if value.dtype != dtype:
            raise InputError(f"out for '{array.name}' has dtype {value.dtype}: expected {dtype}")
        if not value.flags.writeable:
            raise InputError(f"out for '{array.name}' is read-only: give a writeable array")
    for i, value in enumerate(given):
        for j in range(i):
            if np.may_share_memory(value, given[j]):
                raise InputError(
                    f"out for '{outputs[i].name}' and for '{outputs[j].name}' overlap: give "
                    "separate arrays"
                )
    return list(given)


def _wanted(outputs: Sequence[Array]) -> str:
    if len(outputs) == 1:
        return "one array"
    return f"a tuple of {len(outputs)} arrays ({', '.join(a.name for a in outputs)})"


def _described(value) -> str:
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"an object of type {type(value).__name__}"


def strides(given: np.ndarray, array: Array, batched: bool) -> tuple[int, int] | None:
    """Strides between states and between elements, in numbers; None where there are no such."""
    unit = given.itemsize
    if not given.flags.aligned or any(s % unit for s in given.strides):
        return None
    between_states = given.strides[0] // unit if batched else 0
    shape = given.shape[1:] if batched else given.shape
    steps = [s // unit for s in (given.strides[1:] if batched else given.strides)]
    if len(shape) == 0:
        return between_states, 1
    if len(shape) == 2 and shape[0] > 1 and shape[1] > 1 and steps[0] != shape[1] * steps[1]:
        return None
    if len(shape) == 2 and shape[1] == 1:
        return between_states, steps[0]
    return between_states, steps[-1]


def written_once(out: np.ndarray) -> bool:
    """Whether no two elements of an array share memory."""
    reach = 0
    for stride, size in sorted((abs(s), n) for s, n in zip(out.strides, out.shape) if n > 1):
        if stride <= reach:
            return False
        reach += stride * (size - 1)
    return True


def overlaps(out: Sequence[np.ndarray], arguments: Sequence[np.ndarray]) -> tuple[int, int] | None:
    """The first pair (output, argument) that may share memory."""
    for i, target in enumerate(out):
        for j, source in enumerate(arguments):
            if np.may_share_memory(target, source):
                return i, j
    return None
