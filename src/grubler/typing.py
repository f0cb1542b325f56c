"""Types of arguments and results that public functions have in common.

`Floats` is what comes back, `ArrayLike` what is accepted: lists and tuples, too. In a function that
is traced the same functions take and give symbolic arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from .mechanism.parts import Frame as FrameOnBody

Array: TypeAlias = np.ndarray  # numbers, or symbols with NumPy's semantics
Floats: TypeAlias = NDArray[np.float64]
Forces: TypeAlias = Mapping[str, ArrayLike] | ArrayLike  # by body name, or an array (nb, 6)
Frame: TypeAlias = "str | FrameOnBody"
Frames: TypeAlias = "Frame | Sequence[Frame | tuple[Frame, Sequence[int]]]"
Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = ["Array", "ArrayLike", "Floats", "Forces", "Frame", "Frames", "Function"]
