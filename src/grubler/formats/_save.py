"""`save`: a model as a file."""

from __future__ import annotations

import warnings
from pathlib import Path

from ..arguments import public
from ..errors import InputError
from ..model import Model
from ._report import FormatWarning
from .write_mjcf import mjcf_text
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
        text = mjcf_text(model)
        for message in _lost_in_mjcf(model):
            warnings.warn(f"{path.name}: {message}", FormatWarning, stacklevel=2)
    else:
        raise InputError(f"'{path.name}': models are written as .urdf or .xml (MJCF)")
    path.write_text(text, encoding="utf-8")


def _lost_in_mjcf(model: Model) -> list[str]:
    found = []
    if any(joint.velocity_limit is not None for joint in model.joints):
        found.append("MJCF has no velocity limits: they are not written")
    if any(joint.independent is not None for joint in model.joints):
        found.append("MJCF does not say which joints are independent: reading chooses them")
    return found
