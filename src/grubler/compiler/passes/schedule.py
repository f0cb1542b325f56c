"""The order of a tape's instructions: few values alive at a time (`schedule`), and with results
not used before they are there (`spread`).

A robot's tape needs far more values than there are registers; what does not fit is stored and
loaded again. Those moves, and the bytes they add to code that hardly fits the instruction cache,
cost more than a clever order within a few hundred instructions, which LLVM finds by itself. So at
each point, of the instructions whose operands exist, the one that ends the most lives goes first,
then the one whose last operand is the most recent, then the one that came first before.
Against depth-first order: 40 % fewer reloads on a quadruped, 10 % less time.

Where the code fits in the instruction cache, waiting costs more than those moves: a processor looks
some hundred instructions ahead, and finds all of them waiting for one division. There `spread` lets
an instruction follow those that it reads by as many places as they take cycles, where it can, and
of those that may follow takes the one that ends the most lives, then the one from which the way to
the results is longest. Twice the moves, and 10 to 20 % less time (C-ABA of an arm, of quadrupeds).
For a single state, whose values are small, two follow each other in a cycle, and the longer way
counts as much as some lives (`LIFE`): arms whose hand is welded gain another 5 %.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

from ..ir.ops import LEAVES, OPS
from ..ir.tape import Tape, last_branch, members, operands, reordered, with_operands

# Candidates looked at, the most recent ones: more than 64 changed nothing on any robot, and an
# unbounded search would be quadratic.
WINDOW = 64

# The part of all values up to which a branch's condition is asked first. That costs nothing then;
# of an arm, half of which it depends on, it would cost 5 %.
LITTLE = 0.2

# Of a single state: how much longer the way to the results is that outweighs a value more alive.
LIFE = 40  # cycles: 15 to 250 are as good

# Cycles from an instruction that is no operation to its value.
_LATENCY = {"const": 0, "input": 5, "loop": 4, "branch": 4, "result": 4}


def latency(op: str) -> int:
    """Cycles that an instruction takes."""
    return OPS[op].latency if op in OPS else _LATENCY[op]


def schedule(tape: Tape) -> Tape:
    """The same tape in an order with short lives; loops' steps likewise.

    Where the choice is free the order before decides. Two are tried, as given and with the more
    demanding operand first (Sethi and Ullman), and the one with fewer values alive is kept.
    """
    tape = tape.inside(schedule)
    demanding_first, results = reordered(tape.instructions, tape.results, _demand(tape))
    other = replace(tape, instructions=demanding_first, results=tuple(results))
    return min((with_short_lives(tape), with_short_lives(other)), key=_alive)


def spread(tape: Tape, single: bool = False, first: frozenset[int] = frozenset()) -> Tape:
    """The same tape in an order that lets few instructions wait, of a single state or of several;
    steps inside, which are large as a rule, as of several. Values of `first` come before all
    others, wait as they may: what branches on them is foretold, and goes on meanwhile."""
    return in_order(tape.inside(spread), _spread_order(tape, single, first))


def asked_first(tape: Tape) -> frozenset[int]:
    """What has to be known to take a last branch, where that is little: a single state computes it
    first."""
    known = last_branch(tape)
    if known is None:
        return frozenset()
    _, number, ok, *rest = tape.instructions[known[0]]
    needed = {ok, *rest[tape.branches[number].size :]}
    for k in range(known[1], -1, -1):
        if k in needed:
            needed.update(operands(tape.instructions[k]))
    return frozenset(needed if len(needed) < LITTLE * len(tape) else ())


def with_short_lives(tape: Tape) -> Tape:
    """The same tape in an order with few values alive, where the choice is free as it is."""
    return in_order(tape, _order(tape))


def in_order(tape: Tape, order: list[int]) -> Tape:
    """The tape with these of its instructions, in this order."""
    place = {k: i for i, k in enumerate(order)}
    instructions = [
        with_operands(tape.instructions[k], [place[a] for a in operands(tape.instructions[k])])
        for k in order
    ]
    results = tuple(tuple(place[v] for v in values) for values in tape.results)
    place[None] = None
    bundles = tuple(tuple(place[v] for v in bundle) for bundle in tape.bundles)
    return replace(tape, instructions=instructions, results=results, bundles=bundles)


def _demand(tape: Tape) -> list[int]:
    """How many registers each value takes to compute, were nothing shared."""
    demand: list[int] = []
    for instruction in tape.instructions:
        below = sorted((demand[a] for a in operands(instruction)), reverse=True)
        demand.append(max((n + i for i, n in enumerate(below)), default=1))
    return demand


def _alive(tape: Tape) -> int:
    """The sum of all lives: instructions between a value and its last use."""
    last = {}
    for k, instruction in enumerate(tape.instructions):
        for a in operands(instruction):
            last[a] = k
    return sum(k - a for a, k in last.items() if tape.instructions[a][0] not in LEAVES)


class _Line:
    """A tape whose instructions are put in order one by one; those of a bundle are one."""

    def __init__(self, tape: Tape):
        instructions = tape.instructions
        rows = {min(row): sorted(row) for row in map(members, tape.bundles)}
        self.rows: list[list[int]] = []  # instructions of the tape
        row_of: list[int] = []
        while len(row_of) < len(instructions):
            row = rows.get(len(row_of), [len(row_of)])
            row_of += [len(self.rows)] * len(row)
            self.rows.append(row)
        self.size = len(self.rows)
        self.ops = [instructions[row[0]][0] for row in self.rows]
        self.leaf = [op in LEAVES for op in self.ops]
        reads = ([row_of[a] for k in row for a in operands(instructions[k])] for row in self.rows)
        self.read = [tuple(dict.fromkeys(row)) for row in reads]
        self.values = [tuple(a for a in reads if not self.leaf[a]) for reads in self.read]
        self.users: list[list[int]] = [[] for _ in self.rows]
        for k, values in enumerate(self.values):
            for a in values:
                self.users[a].append(k)
        self.left = [len(users) for users in self.users]  # uses still to come
        self._rest = [sum(users) for users in self.users]  # of one that is left: which it is
        self.growth = [1 if users else 0 for users in self.users]  # of values alive, by placing it
        for users in self.users:
            if len(users) == 1:
                self.growth[users[0]] -= 1
        self.missing = [len(values) for values in self.values]
        self.order: list[int] = []
        self._placed = [False] * self.size

    def first(self) -> list[int]:
        """Instructions that need no other."""
        return [k for k in range(self.size) if not self.leaf[k] and self.missing[k] == 0]

    def place(self, k: int) -> list[int]:
        """Put an instruction next; those that needed nothing else."""
        for a in (*self.read[k], k):
            if not self._placed[a]:  # a leaf comes just before its first use
                self._placed[a] = True
                self.order.append(a)
        for a in self.values[k]:
            self.left[a] -= 1
            self._rest[a] -= k
            if self.left[a] == 1:  # the last use will end its life
                self.growth[self._rest[a]] -= 1
        fresh = []
        for user in self.users[k]:
            self.missing[user] -= 1
            if self.missing[user] == 0:
                fresh.append(user)
        return fresh

    def finished(self) -> list[int]:
        """The order of instructions, with leaves that nothing reads at the end."""
        rest = [k for k in range(self.size) if self.leaf[k] and not self._placed[k]]
        return [k for row in self.order + rest for k in self.rows[row]]


def _order(tape: Tape) -> list[int]:
    line = _Line(tape)
    ready = line.first()[::-1]  # the last is looked at first
    while ready:
        growth = [line.growth[k] for k in ready[: -WINDOW - 1 : -1]]
        best = len(ready) - 1 - growth.index(min(growth))
        ready.extend(reversed(line.place(ready.pop(best))))
    return line.finished()


def _spread_order(tape: Tape, single: bool, first: frozenset[int]) -> list[int]:
    line = _Line(tape)
    later = [first.isdisjoint(row) for row in line.rows]
    for k in reversed(range(line.size)):  # other lanes of a bundle may need more
        for a in () if later[k] else line.values[k]:
            later[a] = False
    cycles = [latency(op) for op in line.ops]
    height = [0] * line.size  # cycles from an instruction's start to the end of the line
    for k in reversed(range(line.size)):
        height[k] = cycles[k] + max((height[user] for user in line.users[k]), default=0)
    life, each = (LIFE, 0.5) if single else (1 + sum(cycles), 1.0)
    ready, waiting, now = line.first(), [], 0.0
    there = [0] * line.size  # when an instruction's operands are
    while ready or waiting:
        if not ready:
            now = max(now, waiting[0][0])
        while waiting and waiting[0][0] <= now:
            ready.append(heapq.heappop(waiting)[1])
        k = min(ready, key=lambda k: (later[k], life * line.growth[k] - height[k], k))
        ready.remove(k)
        for user in line.users[k]:
            there[user] = max(there[user], now + cycles[k])
        for user in line.place(k):
            heapq.heappush(waiting, (there[user] if later[user] else 0.0, user))
        now += each
    return line.finished()
