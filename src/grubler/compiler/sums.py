"""Sums as chains of multiply-adds: the term that is known last is added last.

A recursion over joints is one long chain: an inertia waits for a division, the next one for it. A
sum `a + b + c` as written may add the term that everything waits for first, and the others after
it. Here a sum is taken apart into its terms, products among them, and put together again in the
order in which they become known, by a simple model of a processor (`schedule.LATENCY`). A term
that is no product begins the chain where it is not the last, so that every product costs one
instruction. On an arm of seven joints C-ABA needs 8 % fewer instructions, and the longest way
through them is 15 % shorter.

Chains hold the factors of a product where the product alone would do. Where code is larger than
the instruction cache it is read from beyond, and what counts there is its size: `fits` says which
tapes are small enough. (Measured: 15 ns for each kB of code that fits in 32 kB, 26 for each of
code that does not.)

Sums are reassociated: results differ in the last bits from the order written. What compensates
rounding errors, a sum less its own terms, stays as written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .schedule import latency
from .tape import Instruction, Loop, Tape, operands, reordered, with_operands

SMALL = 2000  # instructions, about 30 kB of machine code


def fits(tape: Tape) -> bool:
    """Whether a tape's machine code fits in the instruction cache."""
    leaves = sum(instruction[0] in ("const", "input") for instruction in tape.instructions)
    return tape.total - leaves <= SMALL


class Term(NamedTuple):
    """A term of a sum: when it is known, its sign, the value or the factors that it consists of."""

    known: int
    positive: bool
    factors: tuple[int, ...]


def chained(tape: Tape) -> Tape:
    """The tape with its sums as chains of multiply-adds; loops' steps likewise."""
    loops = tuple(Loop(chained(loop.step), loop.count, loop.tolerance) for loop in tape.loops)
    sums, inner = _sums(tape)
    new: list[Instruction] = []
    known: list[int] = []  # when each new value is there, in cycles
    place: dict[int, int] = {}

    def put(*instruction) -> int:
        start = max((known[a] for a in operands(instruction)), default=0)
        known.append(start + latency(instruction[0]))
        new.append(instruction)
        return len(new) - 1

    for k, instruction in enumerate(tape.instructions):
        if k in sums:
            terms = []
            for value, positive in sums[k]:
                whole = value in place
                read = (value,) if whole else operands(tape.instructions[value])
                factors = tuple(place[a] for a in read)
                terms.append(Term(max(known[a] for a in factors), positive, factors))
            place[k] = _chain(terms, put)
        elif k not in inner:
            place[k] = put(*with_operands(instruction, [place[a] for a in operands(instruction)]))
    results = [tuple(place[v] for v in values) for values in tape.results]
    ordered, results = reordered(new, results)
    return Tape(tape.inputs, tape.outputs, ordered, tuple(results), loops)


def _sums(tape: Tape):
    """Terms and their signs of each sum, by its last instruction; and what the chains compute by
    themselves: partial sums, and products that appear in sums alone."""
    instructions = tape.instructions
    users: dict[int, list] = {}
    for k, instruction in enumerate(instructions):
        for a in operands(instruction):
            users.setdefault(a, []).append(k)
    for value in (value for values in tape.results for value in values):
        users.setdefault(value, []).append(None)

    def is_sum(k) -> bool:
        return k is not None and instructions[k][0] in ("add", "sub")

    partial = {k for k in users if is_sum(k) and len(users[k]) == 1 and is_sum(users[k][0])}
    sums: dict[int, list[tuple[int, bool]]] = {}
    inner: set[int] = set()
    for k in reversed(range(len(instructions))):
        if is_sum(k) and k not in inner:
            sums[k], gone = _terms(instructions, k, partial)
            if _compensates(instructions, sums[k]):
                sums[k], gone = _terms(instructions, k, set())
            inner |= gone
    products = {k for k in users if instructions[k][0] == "mul" and all(map(is_sum, users[k]))}
    return sums, inner | products - _worth_computing(sums, products)


def _terms(instructions, root: int, partial: set[int]) -> tuple[list[tuple[int, bool]], set[int]]:
    """The terms of a sum with their signs, in the order written, and its partial sums."""
    terms, gone, stack = [], set(), [(root, True)]
    while stack:
        k, positive = stack.pop()
        if k != root and k not in partial:
            terms.append((k, positive))
            continue
        if k != root:
            gone.add(k)
        op, a, b = instructions[k]
        stack += [(b, positive == (op == "add")), (a, positive)]
    return terms, gone


def _compensates(instructions, terms) -> bool:
    """Whether a term is itself a sum of which another term is part: (s + y) - s - y."""
    values = {k for k, _ in terms}
    return any(
        instructions[k][0] in ("add", "sub") and values.intersection(instructions[k][1:])
        for k in values
    )


def _worth_computing(sums, products: set[int]) -> set[int]:
    """Products that several sums share, where one of those has nothing else to begin with."""
    needy = {k for k, terms in sums.items() if all(value in products for value, _ in terms)}
    within: dict[int, set[int]] = {}
    for k, terms in sums.items():
        for value, _ in terms:
            if value in products:
                within.setdefault(value, set()).add(k)
    computed = set()
    for value in sorted(within, key=lambda value: len(needy & within[value]), reverse=True):
        if len(within[value]) > 1 and needy & within[value]:
            computed.add(value)
            needy -= within[value]
    return computed


def _chain(terms: list[Term], put: Callable[..., int]) -> int:
    """The sum of terms, one instruction each but for the first."""
    terms = sorted(terms, key=lambda term: term.known)  # stable: ties stay as written
    first = _first(terms)
    terms.remove(first)
    positive, total = first.positive, first.factors[0]
    if len(first.factors) == 2:
        total = put("mul", *first.factors)
    for term in terms:
        product = len(term.factors) == 2
        if term.positive == positive:
            op = "fma" if product else "add"
        elif positive:
            op = "fnma" if product else "sub"
        else:
            op, positive = "fms" if product else "sub", True
            total = put(op, *term.factors, total)
            continue
        total = put(op, *term.factors, total) if product else put(op, total, *term.factors)
    return total if positive else put("neg", total)


def _first(terms: list[Term]) -> Term:
    """What a chain begins with: a value that is no product, unless it is known long after the
    rest; and rather a positive one."""
    whole = [t for t in terms if len(t.factors) == 1]
    best = next((t for t in whole if t.positive), whole[0] if whole else None)
    positive = next((t for t in terms if t.positive and t is not best), None)
    if best is None:
        return positive or terms[0]
    others = max(t.known for t in terms if t is not best)
    return positive if positive and others + latency("fma") < best.known else best
