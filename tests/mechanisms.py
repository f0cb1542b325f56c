"""Random mechanisms for Hypothesis: trees with gears, belts, linkages, overlapping loops.

Every loop is drawn closed at one random configuration, so that each mechanism can be assembled.
"""

from __future__ import annotations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import grubler as gb

SCALAR = ("revolute", "continuous", "prismatic", "helical")
WIDE = ("cylindrical", "universal", "spherical", "planar")
ROWS = {"distance": 1, "ball": 3, "planar": 3, "universal": 4, "cylindrical": 4, "revolute": 5}


class Draft:
    """A tree under construction, with a configuration at which its loops are closed."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.builder = gb.ModelBuilder(f"mechanism {seed}")
        self.bodies: list[str] = []
        self.scalars: list[str] = []  # joints of one freedom that nothing determines yet
        self.reference: dict[str, np.ndarray] = {}

    def body(self, parent: str, kind: str) -> str:
        rng, name = self.rng, f"b{len(self.bodies)}"
        half = rng.uniform(0.05, 0.2, 3)  # a box: always physical
        mass = rng.uniform(0.5, 2.0)
        squares = half**2
        moments = mass / 3 * (squares.sum() - squares)
        self.builder.add_body(name, mass, rng.uniform(-0.1, 0.1, 3), np.diag(moments))
        options = {"axis": rng.uniform(-1, 1, 3), "pitch": 0.05, "axis2": rng.uniform(-1, 1, 3)}
        self.builder.add_joint(
            f"j_{name}", kind, parent, name, xyz=rng.uniform(-0.4, 0.4, 3),
            rpy=rng.uniform(-2, 2, 3), **options,
        )  # fmt: skip
        if kind in SCALAR:
            self.scalars.append(f"j_{name}")
            self.reference[f"j_{name}"] = rng.uniform(-0.5, 0.5)
        self.bodies.append(name)
        return name

    def gear(self, dependent: str, leaders: list[str]) -> None:
        """dependent = sum of ratio * leader + offset, true at the reference."""
        ratios = {j: float(self.rng.uniform(0.5, 8.0)) for j in leaders}
        offset = self.reference[dependent] - sum(r * self.reference[j] for j, r in ratios.items())
        self.builder.add_coupling(f"gear {dependent}", dependent, ratios, offset=float(offset))
        self.scalars.remove(dependent)

    def loop(self, kind: str, a: str, b: str) -> None:
        """A loop joint between two bodies whose frames meet at the reference."""
        tree = self.builder.__class__("tree")
        tree._masses, tree._edges = self.builder._masses, self.builder._edges
        tree._joint_names = self.builder._joint_names
        model = tree.build()
        q = model.assemble(self.reference)
        (R_a, p_a), (R_b, p_b) = (gb.frame_pose(model, q, x) for x in (a, b))
        point = p_a + self.rng.uniform(-0.2, 0.2, 3)
        apart = np.zeros(3) if kind != "distance" else self.rng.uniform(0.1, 0.3, 3)
        options = {"distance": float(np.linalg.norm(apart))} if kind == "distance" else {}
        axis = self.rng.uniform(-1, 1, 3)
        if kind == "universal":
            options["axis2"] = np.cross(axis, [0.3, 0.5, 0.7])
        self.builder.add_loop(
            f"{kind} {a} {b} {len(self.builder._loops)}", kind, a, b, axis=axis,
            predecessor_xyz=R_a.T @ (point - p_a), predecessor_R=R_a.T,
            successor_xyz=R_b.T @ (point + apart - p_b), successor_R=R_b.T, **options,
        )  # fmt: skip


@st.composite
def mechanisms(draw) -> gb.Model:
    """A model with up to about a dozen bodies and up to four loops of various kinds."""
    draft = Draft(draw(st.integers(0, 10**6)))
    kinds = st.sampled_from(SCALAR * 4 + WIDE)
    draft.body("world", draw(st.sampled_from(("free", "revolute", "revolute"))))
    for _ in range(draw(st.integers(2, 8))):
        parent = draw(st.sampled_from(["world", *draft.bodies]))
        draft.body(parent, draw(kinds))
    for _ in range(draw(st.integers(0, 3))):  # rotors on gears, the rotor beside its link
        if draft.scalars:
            leader = draw(st.sampled_from(draft.scalars))
            parent = draft.builder._edges[leader[2:]].parent
            rotor = draft.body(parent, "revolute")
            draft.gear(f"j_{rotor}", [leader])
    if len(draft.scalars) >= 3 and draw(st.booleans()):  # a belt or differential across the tree
        chosen = draw(st.permutations(draft.scalars))[:3]
        draft.gear(chosen[0], list(chosen[1:]))
    for _ in range(draw(st.integers(0, 2))):
        a, b = draw(st.permutations(draft.bodies))[:2]
        draft.loop(draw(st.sampled_from(list(ROWS))), a, b)
    return draft.builder.build(reference=draft.reference)


@st.composite
def mobile(draw):
    """A mechanism that can move at all: two random loops may lock each other."""
    model = draw(mechanisms())
    assume(model.nv)
    return model
