"""`save`: a model as a file."""

from __future__ import annotations

import warnings
from pathlib import Path

from ..arguments import public
from ..errors import InputError
from ..model import Model
from ._report import FormatWarning
from .write_mjcf import mjcf_with_losses
from .write_urdf import urdf_text


@public
def save(model: Model, path: str | Path) -> None:
    """Write a model as URDF+ ("x.urdf") or MJCF ("x.xml").

    Reading it back gives the same dynamics. What the format cannot express is an error that names
    it; what it loses without a change of the dynamics is named in a `FormatWarning`.
    """
    path = Path(path)
    if path.suffix == ".urdf":
        text = urdf_text(model)
    elif path.suffix in (".xml", ".mjcf"):
        text, lost = mjcf_with_losses(model)
        for message in lost:
            warnings.warn(f"{path.name}: {message}", FormatWarning, stacklevel=2)
    else:
        raise InputError(f"'{path.name}': models are written as .urdf or .xml (MJCF)")
    path.write_text(text, encoding="utf-8")
