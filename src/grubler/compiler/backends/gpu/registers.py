"""Which values a thread holds in registers, and which wait in memory.

A robot's tape keeps more values alive than a thread has registers. The assembler would spill what
does not fit, late and without knowing the future; here the line is known from end to end, so the
value whose next use is furthest goes (Belady), inputs first, which are read again where they came
from and need no store.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...ir.tape import Tape, operands

# How much further an input's next use counts: dropping it costs one move instead of two.
FREE = 2.0


@dataclass
class Spills:
    """What happens before each instruction, and how many slots of memory that takes."""

    before: dict[int, list[tuple[str, int, int]]] = field(default_factory=dict)
    slots: int = 0
    stores: int = 0
    reloads: int = 0

    def add(self, k: int, action: str, value: int, slot: int) -> None:
        self.before.setdefault(k, []).append((action, value, slot))


def spills(tape: Tape, registers: int) -> Spills:
    """The moves that keep at most `registers` values at a time: ("store" | "reload" | "read",
    value, slot) before an instruction, where "read" reads an input again."""
    return _Allocation(tape, registers).run()


class _Allocation:
    def __init__(self, tape: Tape, registers: int):
        self.instructions, self.registers = tape.instructions, registers
        self.uses: list[list[int]] = [[] for _ in tape.instructions]  # to come, the next one last
        for k in range(len(tape) - 1, -1, -1):
            for a in dict.fromkeys(operands(tape.instructions[k])):
                self.uses[a].append(k)
        self.held: set[int] = set()
        self.slot: dict[int, int] = {}
        self.free: list[int] = []
        self.plan = Spills()

    def run(self) -> Spills:
        for k, instruction in enumerate(self.instructions):
            op = instruction[0]
            needed = [a for a in dict.fromkeys(operands(instruction)) if self._occupies(a)]
            for a in needed:
                if a not in self.held:
                    self._bring(k, a)
            self._make_room(k, keep=set(needed), room=0)
            for a in needed:
                self.uses[a].pop()
                if not self.uses[a]:
                    self._forget(a)
            if op != "const" and self.uses[k] and self._occupies(k):
                self._make_room(k, keep=set(needed), room=1)
                self.held.add(k)
        return self.plan

    def _occupies(self, k: int) -> bool:
        return self.instructions[k][0] not in ("const", "loop", "branch")

    def _bring(self, k: int, a: int) -> None:
        if a in self.slot:
            self.plan.add(k, "reload", a, self.slot[a])
        else:
            self.plan.add(k, "read", a, -1)
        self.plan.reloads += 1
        self.held.add(a)

    def _forget(self, a: int) -> None:
        self.held.discard(a)
        if a in self.slot:
            self.free.append(self.slot.pop(a))

    def _make_room(self, k: int, keep: set[int], room: int) -> None:
        while len(self.held) + room > self.registers:
            candidates = [a for a in self.held if a not in keep]
            if not candidates:
                return

            def distance(a):
                costless = a in self.slot or self.instructions[a][0] == "input"
                return (self.uses[a][-1] - k) * (FREE if costless else 1.0)

            victim = max(candidates, key=distance)
            self.held.discard(victim)
            if victim not in self.slot and self.instructions[victim][0] != "input":
                if not self.free:
                    self.free.append(self.plan.slots)
                    self.plan.slots += 1
                self.slot[victim] = self.free.pop()
                self.plan.add(k, "store", victim, self.slot[victim])
                self.plan.stores += 1
