"""The part of a builder that gives bodies shapes."""

from __future__ import annotations

from ..algebra.spatial import Transform
from ..arguments import public
from ..mechanism.colliders import Collider, GivenPair, Material, checked_shape
from ..mechanism.geometry import Shape
from ..mechanism.parts import WORLD
from ..typing import ArrayLike
from .contact_parts import ContactParts
from .given import rotation, vector
from .spanning_tree import SpanningTree


class ShapedParts:
    """Shapes that may touch, in `contact`, and shapes to be drawn, by the name of a body."""

    def __init__(self):
        self.contact: ContactParts = ContactParts()
        self._geometry: dict[str, tuple[Shape, ...]] = {}  # of models that were added

    @public
    def add_shape(
        self, body: str, shape: Shape, *, name: str | None = None, xyz: ArrayLike = (0.0, 0, 0),
        rpy: ArrayLike = (0.0, 0, 0), R: ArrayLike | None = None, friction: float | None = None,
        restitution: float | None = None, torsional: float | None = None,
        rolling: float | None = None, contype: int = 1, conaffinity: int = 1,
    ) -> None:  # fmt: skip
        """A shape on a body (or "world") that may touch others, see `Contacts`.

        Placed at `xyz` with `rpy` or `R` in the body, over the placement that the shape itself has.
        `friction`, `restitution` (0 to 1), `torsional` and `rolling` friction (m) are those of its
        surface. Two shapes may touch if a bit of the `contype` of one is in the `conaffinity` of
        the other.
        """
        of = name or self.contact.name_for(body)
        placement = Transform.from_placement(
            rotation(of, rpy, R), vector(f"xyz of shape '{of}'", xyz)
        )
        shape = checked_shape(shape, f"shape '{of}'").carried(placement)
        material = Material(friction, restitution, torsional, rolling)
        self.contact.add(Collider(of, body, WORLD, shape, material, contype, conaffinity))

    @public
    def exclude_contact(self, first: str, second: str) -> None:
        """Two bodies whose shapes never touch each other."""
        self.contact.exclude(first, second)

    @public
    def allow_contact(
        self, first: str, second: str, *, friction: float | None = None,
        restitution: float | None = None, torsional: float | None = None,
        rolling: float | None = None,
    ) -> None:  # fmt: skip
        """Two shapes, by name, that may touch whatever their masks and bodies are."""
        material = Material(friction, restitution, torsional, rolling)
        self.contact.allow(GivenPair(first, second, material))

    def _drawn(self, tree: SpanningTree) -> dict[int, tuple[Shape, ...]]:
        """Shapes to be drawn, by body."""
        found: dict[int, tuple[Shape, ...]] = {}
        for body, shapes in self._geometry.items():
            carrier, X = tree.place("shapes", body)
            found[carrier] = (*found.get(carrier, ()), *(s.carried(X) for s in shapes))
        return found
