"""Which shapes may touch: the rules of descriptions, neighbours, what always overlaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from ..errors import InputError
from ..mechanism.colliders import Collider, Material
from ..mechanism.geometry import HeightField, Mesh, Plane
from ..mechanism.loops import LoopJoint
from ..mechanism.parts import WORLD
from ..model import Model
from .closed_forms import known
from .hulls import hull_of
from .named import moving, named_pairs, picked
from .overlap import overlapping

Chosen = tuple[Collider, Collider, Material | None]  # A, B, and what is said of this pair
GROUND = (Plane, HeightField)


class Choice:
    """The pairs of a plan. `apart` are pairs of links that never touch; `notes` receives what is
    left out."""

    model: Model
    colliders: Sequence[Collider]
    floor: Sequence[Collider]
    apart: frozenset[frozenset[str]]
    notes: list[str]
    strict: bool
    hull_points: int
    open_meshes: bool

    def __init__(
        self, model: Model, colliders: Sequence[Collider], floor: Sequence[Collider],
        apart: frozenset[frozenset[str]], notes: list[str], hull_points: int, open_meshes: bool,
        strict: bool,
    ):  # fmt: skip
        self.model, self.colliders, self.floor = model, colliders, floor
        self.apart, self.notes, self.strict = apart, notes, strict
        self.hulls: dict[str, Collider] = {}
        self.hull_points, self.open_meshes = hull_points, open_meshes
        rules = model.collision
        self.said: dict[frozenset[str], Material] = {
            frozenset((p.first, p.second)): p.material for p in rules.pairs
        }
        self.neighbours: set[frozenset[int]] = neighbours(model)

    @property
    def names(self) -> set[str]:
        """All names by which shapes are known."""
        return {name for c in [*self.colliders, *self.floor] for name in (c.name, c.link)}

    def on_ground(self, touching: str | Iterable[str]) -> list[Chosen]:
        """Pairs of a shape and the ground."""
        if not self.floor:
            return []
        ground = {c.name for c in self.floor}
        free = [c for c in self.colliders if c.body != WORLD and c.name not in ground]
        named = not isinstance(touching, str) or touching not in ("all", "leaves")
        if named:
            names = [touching] if isinstance(touching, str) else list(touching)
            free = moving(picked(self.colliders, names, self.model), "touching")
        elif touching == "leaves":
            free = self._leaves(free)
        described = [
            (a, b)
            for a in free
            for b in self.floor
            if a.body != b.body and (named or self._allowed(a, b))
        ]
        if not described:
            raise InputError(
                f"nothing of '{self.model.name}' may touch the ground: add shapes with "
                "ModelBuilder.add_shape, give shapes={frame: shape}, or ground=False"
            )
        return self._kept(described, named)

    def between(self, pairs: str | Sequence[tuple[str, str]]) -> list[Chosen]:
        """Pairs of shapes on moving bodies."""
        if isinstance(pairs, str) and pairs != "all":
            raise InputError(f"pairs is {pairs!r}: give 'all', or a list of (name, name)")
        if not isinstance(pairs, str):
            return self._kept(named_pairs(self.colliders, pairs, self.model), named=True)
        ground = {c.name for c in self.floor}
        free = [c for c in self.colliders if c.body != WORLD and c.name not in ground]
        found = [(a, b) for a, b in combinations(free, 2) if self._may_meet(a, b)]
        return self._kept(found, named=False)

    def _leaves(self, colliders: list[Collider]) -> list[Collider]:
        """Those on bodies that carry no other body with a shape."""
        carrying = set()
        for c in colliders:
            i = self.model.bodies[c.body].parent
            while i != WORLD:
                carrying.add(i)
                i = self.model.bodies[i].parent
        left = [c.name for c in colliders if c.body in carrying]
        if left:
            self.notes.append(
                f"touching='leaves': {_listed(left)} on bodies that carry others cannot touch the "
                "ground"
            )
        return [c for c in colliders if c.body not in carrying]

    def _allowed(self, a: Collider, b: Collider) -> bool:
        """Whether the description lets two shapes touch: a pair of its own, else its masks."""
        if frozenset((a.name, b.name)) in self.said:
            return True
        if frozenset((a.link, b.link)) in self.apart:
            return False
        return bool(a.contype & b.conaffinity or b.contype & a.conaffinity)

    def _may_meet(self, a: Collider, b: Collider) -> bool:
        if frozenset((a.name, b.name)) in self.said:
            return True
        near = a.body == b.body or frozenset((a.body, b.body)) in self.neighbours
        return not near and self._allowed(a, b)

    def _kept(self, pairs, named: bool) -> list[Chosen]:
        """Pairs with hulls for meshes, without those that always overlap and, unless strict, those
        without a closed form."""
        found, unknown_forms = [], []
        for a, b in pairs:
            a, b = self._hull(a), self._hull(b)
            if known(a.shape, b.shape):
                found.append((a, b))
            else:
                kinds = f"{type(a.shape).__name__} and {type(b.shape).__name__}"
                unknown_forms.append(f"'{a.name}' and '{b.name}' ({kinds})")
        if unknown_forms:
            text = f"no closed form for {_listed(unknown_forms, quoted=False)}"
            if self.strict:
                raise InputError(
                    f"{text}: choose others with touching= and pairs=, give simpler shapes, or "
                    "leave them out with strict=False"
                )
            self.notes.append(f"left out, {text}")
        if not named:
            found = self._without_overlap(found)
        return [(a, b, self.said.get(frozenset((a.name, b.name)))) for a, b in found]

    def _without_overlap(self, pairs):
        always, first = overlapping(self.model, pairs)
        if always:
            self.notes.append(
                "left out, since they overlap in all sampled states: "
                + _listed([f"{a.name}, {b.name}" for a, b in always])
            )
        if first:
            self.notes.append(
                "overlap in the neutral configuration: "
                + _listed([f"{a.name}, {b.name}" for a, b in first])
            )
        return [pair for pair in pairs if pair not in always]

    def _hull(self, c: Collider) -> Collider:
        if not isinstance(c.shape, Mesh):
            return c
        if c.name not in self.hulls:
            hull, rest = hull_of(c.shape, c.name, self.hull_points, self.open_meshes)
            self.hulls[c.name] = replace(c, shape=hull)
            if rest > 0:
                self.notes.append(
                    f"'{c.name}' is represented by {len(hull.vertices)} vertices of its hull, "
                    f"beyond which it reaches by up to {rest:.2g} m"
                )
        return self.hulls[c.name]


def neighbours(model: Model) -> set[frozenset[int]]:
    """Pairs of bodies that a joint connects, of the tree or of a loop."""
    found = {frozenset((body.index, body.parent)) for body in model.bodies}
    for loop in model.loops:
        if isinstance(loop, LoopJoint):
            root = (*loop.path_P, *loop.path_S)[0].parent
            ends = (path[-1].index if path else root for path in (loop.path_P, loop.path_S))
            found.add(frozenset(ends))
    return found


def _listed(names: Sequence[str], quoted: bool = True) -> str:
    shown = [f"'{name}'" if quoted else name for name in names[:6]]
    return ", ".join(shown) + (f" and {len(names) - 6} more" if names[6:] else "")
