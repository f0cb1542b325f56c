"""Serial chains of any length whose links are driven by geared or belted rotors.

- `gt_chain`: geared transmission, one rotor a link;
- `pbt_chain`: parallel belt transmission, two rotors a pair of links; the second rotor drives the
  second link past the first;
- `robot_a`, `robot_b`: the same two layouts with random real ratios, (16) and (17) of Chignoli et
  al., "Improving Contact-Rich Robotic Simulation with Generalized Rigid-Body Dynamics Algorithms".

The uniform chains are planar, their links have inertia about z alone, gravity points along x.
Numbers: generalized_rbda v2.1.0, MIT licence, (c) 2023 Matthew Chignoli. Given a seed, the chains
are spatial and drawn at random, as there, but with inertias that a body can have.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..arguments import public
from ..errors import InputError
from ..model import Model
from ..model.builder import ModelBuilder
from ._parts import AXES, Part, add_part

# Contact points on the links of the uniform chains; longer chains start over.
GT_CONTACTS = (
    (-0.598175279609, 0.5260044967411, 0.3874493415409),
    (-0.1163727106137, 0.9392423331455, 0.4954484009628),
    (0.8471067537773, 0.2117273580338, 0.809832464815),
    (0.3383094199646, 0.4624035700515, 0.9579061809731),
    (-0.01494124858405, 0.03808333307415, -0.3256744245652),
    (-0.4957677160836, -0.2847037917397, 0.8361034355294),
    (-0.2511149212956, -0.7078027602787, -0.726768643468),
    (0.008698415480879, -0.6717012802473, 0.4183993551034),
    (-0.1344911358945, -0.0475599742716, 0.8449053148948),
    (0.5529522185926, 0.8006805413406, 0.390394284106),
    (-0.298565690079, -0.7974947391998, -0.08360122008417),
    (-0.9111163494695, 0.08613255018654, -0.1443588869387),
)
PBT_CONTACTS = (
    (0.8248704959754, -0.8303239698663, 0.5848037188802),
    (0.1512285662588, 0.6651076160674, -0.6367094151847),
    (0.2755090292895, 0.3795912039371, -0.9861931670393),
    (0.6578949036346, -0.5143900734905, 0.584585758664),
    (0.5671012362312, 0.2275348805019, 0.6164677271696),
    (0.3146974180428, 0.4204317216857, 0.8649972574157),
    (-0.5119645183496, 0.9137849434809, -0.470027596443),
    (-0.8148487768205, -0.8917444571349, -0.1351053226437),
    (0.7354129430537, -0.1684611100557, -0.3602066381649),
    (0.2769864859418, 0.1242379756292, -0.4057122820084),
    (-0.9036340862064, -0.05089152932674, -0.2360362509433),
    (0.6811696326738, -0.8996629639993, -0.5709286358072),
)


LONGEST = 10_000  # links of a chain; building it takes minutes


class Source(Protocol):
    """Where the numbers of a chain come from."""

    gravity: tuple[float, ...]

    def link(self, i: int) -> Part: ...
    def rotor(self, i: int) -> Part: ...
    def gear(self) -> float: ...
    def belts(self) -> tuple[float, float, float]: ...  # (17): beta_11, beta_21, beta_22
    def contact(self, i: int) -> tuple[float, ...]: ...


class Uniform:
    """Equal links of 1 m and 1 kg in the x-y plane, massless rotors, gear 2 and belt 3."""

    gravity: tuple[float, float, float] = (9.81, 0.0, 0.0)

    def __init__(self, contacts: tuple[tuple[float, ...], ...]):
        self._contacts = contacts

    def _part(self, i, mass, com, izz):
        inertia = (0.0, 0.0, 0.0, 0.0, 0.0, izz)
        place = (1.0 if i else 0.0, 0.0, 0.0)
        return Part("z", place, mass, com, inertia, physical=False)

    def link(self, i: int) -> Part:
        return self._part(i, 1.0, (0.5, 0.0, 0.0), 1.0)

    def rotor(self, i: int) -> Part:
        return self._part(i, 0.0, (0.0, 0.0, 0.0), 1e-4)

    def gear(self) -> float:
        return 2.0 * 3.0

    def belts(self) -> tuple[float, ...]:
        return (2.0 * 3.0, 2.0 * 3.0, 2.0 * 3.0 * 1.0)

    def contact(self, i: int) -> tuple[float, ...]:
        return self._contacts[i % len(self._contacts)]


class Drawn:
    """Random spatial links and small rotors; integer teeth, or real ratios of either sign."""

    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)

    def __init__(self, seed: int, real_ratios: bool = False):
        self._rng = np.random.default_rng(seed)
        self._real = real_ratios

    def _vector(self, scale=1.0):
        return tuple(float(x) for x in scale * self._rng.uniform(-1.0, 1.0, 3))

    def _part(self, scale):
        """A body of mass about `scale`: second moments S >= 0 make its inertia tr(S) 1 - S."""
        spread = self._rng.uniform(-1.0, 1.0, (3, 3))
        S = scale * (spread @ spread.T + 0.05 * np.eye(3))
        inertia = np.trace(S) * np.eye(3) - S
        return Part(
            axis=str(self._rng.choice(list(AXES))),
            xyz=self._vector(),
            rpy=self._vector(),
            mass=scale * float(self._rng.uniform(0.1, 1.0)),
            com=self._vector(min(1.0, 1e3 * scale)),
            inertia=tuple(float(x) for x in inertia[np.triu_indices(3)]),
        )

    def link(self, i: int) -> Any:
        return self._part(1.0)

    def rotor(self, i: int) -> Any:
        return self._part(1e-4)

    def gear(self) -> float:
        if self._real:
            return float(self._rng.choice([-1.0, 1.0]) * self._rng.uniform(1.0, 10.0))
        return float(self._rng.integers(1, 6))

    def belts(self) -> tuple[float, float, float]:
        if self._real:
            return (self.gear(), self.gear(), self.gear())
        first, second = self.gear() * self.gear(), self.gear() * self.gear()
        return (first, second, second * self.gear())

    def contact(self, i: int) -> tuple[float, ...]:
        return self._vector()


@public
def gt_chain(n: int = 12, seed: int | None = None) -> Model:
    """A chain of `n` links with one geared rotor each; uniform, or drawn from a `seed`."""
    return _geared_chain("gt_chain", n, Uniform(GT_CONTACTS) if seed is None else Drawn(seed))


@public
def pbt_chain(n: int = 12, seed: int | None = None) -> Model:
    """A chain of `n` links, two rotors a pair of links through parallel belts; `n` is even."""
    return _belted_chain("pbt_chain", n, Uniform(PBT_CONTACTS) if seed is None else Drawn(seed))


@public
def robot_a(n: int = 12, seed: int = 0) -> Model:
    """Robot A: `n` links with one rotor each, random real gear ratios (16)."""
    return _geared_chain("robot_a", n, Drawn(seed, real_ratios=True))


@public
def robot_b(n: int = 12, seed: int = 0) -> Model:
    """Robot B: `n` links in pairs, each pair with two rotors, random real ratios (17)."""
    return _belted_chain("robot_b", n, Drawn(seed, real_ratios=True))


def _checked(name: str, n: int, step: int) -> str:
    if not isinstance(n, int) or n < step or n % step or n > LONGEST:
        kind = "even number" if step == 2 else "number"
        given = repr(n) if not isinstance(n, int) or n <= LONGEST else "a larger number"
        raise InputError(
            f"{name} takes a positive {kind} of links, at most {LONGEST}, not n={given}"
        )
    return f"{name}{n}"


def _geared_chain(name: str, n: int, source: Any) -> Model:
    b = ModelBuilder(_checked(name, n, 1), gravity=source.gravity)
    parent = "world"
    for i in range(n):
        link, rotor = f"link-joint-{i}", f"rotor-joint-{i}"
        add_part(b, f"link-{i}", link, parent, source.link(i))
        add_part(b, f"rotor-{i}", rotor, parent, source.rotor(i))
        b.add_coupling(f"gear-{i}", rotor, ratios={link: source.gear()})
        b.add_frame(f"cp-{i}", f"link-{i}", source.contact(i))
        b.add_actuator(f"motor-{i}", rotor)
        parent = f"link-{i}"
    return b.build()


def _belted_chain(name: str, n: int, source: Any) -> Model:
    b = ModelBuilder(_checked(name, n, 2), gravity=source.gravity)
    parent = "world"
    for i in range(n // 2):
        A, B = f"A-{i}", f"B-{i}"
        add_part(b, f"link-{A}", f"link-joint-{A}", parent, source.link(2 * i))
        add_part(b, f"rotor-{A}", f"rotor-joint-{A}", parent, source.rotor(2 * i))
        add_part(b, f"rotor-{B}", f"rotor-joint-{B}", parent, source.rotor(2 * i))
        add_part(b, f"link-{B}", f"link-joint-{B}", f"link-{A}", source.link(2 * i + 1))
        beta11, beta21, beta22 = source.belts()
        b.add_coupling(f"belt-{A}", f"rotor-joint-{A}", ratios={f"link-joint-{A}": beta11})
        both = {f"link-joint-{A}": beta21, f"link-joint-{B}": beta22}
        b.add_coupling(f"belt-{B}", f"rotor-joint-{B}", ratios=both)
        for j, end in enumerate((A, B)):
            b.add_frame(f"cp-{end}", f"link-{end}", source.contact(2 * i + j))
            b.add_actuator(f"motor-{end}", f"rotor-joint-{end}")
        parent = f"link-{B}"
    return b.build()
