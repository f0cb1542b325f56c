"""What a reader hands over: a builder, where the loops may be closed from, and what is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import GrublerError, ModelError
from ..mechanism.geometry import Shape
from ..mechanism.parts import check_inertia
from ..model import Model
from ..model.builder import ModelBuilder
from ._files import MAX_BODIES
from ._report import Complaints
from ._xml import Element
from .shapes import attached

if TYPE_CHECKING:
    from ..typing import Array


@dataclass
class Description:
    """A mechanism as read.

    `reference` is the guess from which the loops are assembled, by joint name; `shapes` is what
    the links look like, by name.
    """

    builder: ModelBuilder
    complaints: Complaints
    source: str = ""
    reference: dict[str, np.ndarray | float] = field(default_factory=dict)
    shapes: dict[str, list[Shape]] = field(default_factory=dict)

    def build(self, reference: Mapping[str, float] | None = None, **options: Any) -> Model:
        """Tell what was not used, and make the model, with options of `ModelBuilder.build`."""
        self.complaints.tell(stacklevel=4)
        start = {**self.reference, **(reference or {})}
        if self.builder.size > MAX_BODIES:
            raise ModelError(f"{self.source or 'text'}: more than {MAX_BODIES:,} bodies: split it")
        try:
            return attached(self.builder.build(start, **options), self.shapes)
        except GrublerError as error:
            prefix = f"{self.source}: " if self.source else ""
            raise type(error)(f"{prefix}{error}") from error


def add_body(
    b: ModelBuilder, name: str, mass: float, com: Array, inertia: Array, at: Element | None,
    complaints: Complaints, welded: bool = False,
) -> None:  # fmt: skip
    """A body whose inertia is checked: impossible ones refused, idealised ones named.

    A part of a body, `welded` to others by fixed joints, may have negative moments (as CAD writes
    for a link of a milligram): they are named, and what they sum up to is checked.
    """
    try:
        check_inertia(name, mass, com, inertia, physical=True)
        kind = {}
    except ModelError as error:
        kind = {"physical": False}
        message = str(error).split(";")[0]
        try:
            check_inertia(name, mass, com, inertia, physical=False, moments=not welded)
        except ModelError as worse:
            raise (at.error(str(worse)) if at is not None else worse) from None
        if welded:
            kind["welded"] = True
            message += "; it counts together with what is welded to it"
        complaints.add(message, at)
    try:
        b.add_body(name, mass, com, inertia, **kind)
    except ModelError as error:
        raise (at.error(str(error)) if at is not None else error) from None


def name_massless_leaves(
    masses: Mapping[str, float],
    moments: Mapping[str, float],
    edges: list[tuple[str, str, bool]],
    closed: set[str],
    where: Mapping[str, Element],
    complaints: Complaints,
) -> None:
    """Complain about moving bodies at the end of a chain that carry no inertia at all.

    `edges` are (parent, child, moving). What hangs on fixed joints counts for its carrier; bodies
    in `closed` are held by a loop.
    """
    carrier: dict[str, str] = {}
    parent_of = {child: (parent, moving) for parent, child, moving in edges}

    def find(name: str) -> str:
        path = []
        while name in parent_of and not parent_of[name][1] and name not in carrier:
            path.append(name)
            name = parent_of[name][0]
        root = carrier.get(name, name)
        carrier.update(dict.fromkeys(path, root))
        return root

    total: dict[str, float] = {}
    for name in masses:
        root = find(name)
        total[root] = total.get(root, 0.0) + abs(masses[name]) + abs(moments[name])
    held = {find(parent) for parent, _, moving in edges if moving} | closed
    for _, child, moving in edges:
        if moving and child not in held and total.get(child, 0.0) == 0.0:
            complaints.add(
                f"link '{child}' moves at the end of a chain without mass or inertia: give it an "
                "<inertial>, or make its joint fixed",
                where.get(child),
            )
