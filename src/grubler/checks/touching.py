"""Which shapes may touch, as `check` lists them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from ..arguments import shown
from ..collision import Contacts, ContactWarning, check_plan
from ..errors import GrublerError, InputError
from ..mechanism.parts import WORLD
from ..model import Model

ALL = 10**6  # candidate points: a report lists them, however many there are


@dataclass(frozen=True)
class ContactRow:
    """Two shapes that may touch: the bodies they are on, how many candidate points they have, and
    their coefficients."""

    first: str
    second: str
    bodies: tuple[str, str]
    points: int
    friction: float
    restitution: float


@dataclass(frozen=True)
class Touching:
    """The pairs of shapes that may touch, what was left out, and how many points there are."""

    pairs: tuple[ContactRow, ...]
    notes: tuple[str, ...]
    points: int


def touching(model: Model, contacts: Contacts | bool | None) -> tuple[Touching | None, list[str]]:
    """The pairs of a plan (True: of all shapes of the model), and what is wrong with them."""
    if contacts is None or contacts is False:
        return None, []
    if contacts is True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ContactWarning)  # its text is among the notes
                contacts = Contacts(model, pairs="all", limit=ALL, strict=False)
        except GrublerError as error:
            return None, [f"contacts: {error}"]
    if not isinstance(contacts, Contacts):
        raise InputError(f"contacts is {shown(contacts)}: give gb.Contacts(model, ...), or True")
    check_plan(model, contacts)
    names = {WORLD: "world"} | {body.index: body.name for body in model.bodies}
    rows = []
    for p in contacts.pairs:
        on = names[p.body], names[p.other]
        rows.append(ContactRow(*p.names, on, p.count, p.friction, p.restitution))
    return Touching(tuple(rows), contacts.notes, len(contacts.points)), []
