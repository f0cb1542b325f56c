"""Coefficients of pairs: what a plan is given, over what descriptions say, over the defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import InputError, ModelError, unknown
from ..mechanism.colliders import Collider, Material, combined

DEFAULTS = {"friction": 0.8, "restitution": 0.0, "torsional": 0.0, "rolling": 0.0}


class Coefficients:
    """Coefficients by pair. `given` holds by kind a number, a mapping by shape or pair, or None;
    a key is the name of a shape, of its link, or two of them."""

    def __init__(self, given: Mapping[str, object], names: Iterable[str]):
        known = set(names)
        self.given: dict[str, object] = {}
        self.silent: list[str] = []  # pairs without friction
        for kind, value in given.items():
            if isinstance(value, Mapping):
                entries = {}
                for key, number in value.items():
                    key = (key,) if isinstance(key, str) else tuple(key)
                    for name in key:
                        if name not in known:
                            raise InputError(f"{kind}: {unknown('shape', name, sorted(known))}")
                    entries[frozenset(key)] = _number(kind, number, " and ".join(key))
                self.given[kind] = entries
            elif value is not None:
                self.given[kind] = _number(kind, value, "all pairs")

    def of(self, a: Collider, b: Collider, said: Material | None) -> Material:
        """The coefficients of two shapes, all of them numbers; `said` is what the description says
        of this pair."""
        found = combined(a.material, b.material)
        if said is not None:
            found = said.over(found)
        values = {}
        for kind, default in DEFAULTS.items():
            value = self._given(kind, a, b)
            described = value is None
            if described:
                value = getattr(found, kind)
            if value is None:
                value = default
                if kind == "friction":
                    self.silent.append(f"{a.name}, {b.name}")
            if described and found.condim is not None and found.condim < CONDIM.get(kind, 0):
                value = 0.0
            values[kind] = value
        return Material(**values)

    def _given(self, kind: str, a: Collider, b: Collider):
        value = self.given.get(kind)
        if not isinstance(value, dict):
            return value
        ends = [{c.name, c.link} for c in (a, b)]
        for key, number in value.items():
            if len(key) == 2 and any(
                x in ends[i] and y in ends[1 - i] for i in (0, 1) for x, y in [tuple(key)]
            ):
                return number
        single = [n for key, n in value.items() if len(key) == 1 and key & (ends[0] | ends[1])]
        return max(single, default=None)

    def tell(self, notes: list[str]) -> None:
        """Note the pairs for which nobody gave friction."""
        if self.silent:
            more = ", ..." if self.silent[3:] else ""
            notes.append(
                f"nothing is said of the friction of {len(self.silent)} pairs "
                f"({'; '.join(self.silent[:3])}{more}): {DEFAULTS['friction']:g} is used"
            )


CONDIM = {"friction": 3, "torsional": 4, "rolling": 6}  # from which number of directions on


def _number(kind: str, value, of: str) -> float:
    """A checked coefficient."""
    try:
        return getattr(Material(**{kind: value}).checked(of), kind)
    except ModelError as error:
        raise InputError(str(error)) from None
