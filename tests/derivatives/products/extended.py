"""Tapes evaluated in fifty digits, and derivatives by central differences there.

Nothing of `differentiate/` is used: the function's own tape is run on mpmath's numbers. Loops to a
tolerance run until they are closed to forty digits.
"""

from __future__ import annotations

import mpmath
import numpy as np

import grubler as gb
from grubler import compiler
from grubler.algorithms.assemble import assemble
from grubler.compiler.ir.tape import Tape

mp = mpmath.mp.clone()
mp.dps = 50
STEP = mp.mpf(10) ** -14  # the error of a central difference is its square
CLOSED = mp.mpf(10) ** -42


class NotConverged(ArithmeticError):
    """A loop has no fixed point, or does not reach it."""


def _truth(x) -> bool:
    return x != 0


OPERATIONS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "neg": lambda a: -a, "sq": lambda a: a * a,
    "twice": lambda a: a + a, "inv": lambda a: 1 / a, "sqrt": mp.sqrt, "sin": mp.sin,
    "cos": mp.cos, "tan": mp.tan, "asin": mp.asin, "acos": mp.acos, "atan": mp.atan,
    "atan2": mp.atan2, "exp": mp.exp, "log": mp.log, "pow": lambda a, b: a**b, "tanh": mp.tanh,
    "sinh": mp.sinh, "cosh": mp.cosh, "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh,
    "expm1": mp.expm1, "log1p": mp.log1p, "erf": mp.erf, "hypot": mp.hypot,
    "fmod": lambda a, b: a - b * (mp.floor(abs(a / b)) * mp.sign(a / b)),
    "fabs": abs, "sign": mp.sign, "floor": mp.floor, "ceil": mp.ceil,
    "copysign": lambda a, b: abs(a) if b >= 0 else -abs(a), "fmin": min, "fmax": max,
    "lt": lambda a, b: mp.mpf(a < b), "le": lambda a, b: mp.mpf(a <= b),
    "eq": lambda a, b: mp.mpf(a == b), "ne": lambda a, b: mp.mpf(a != b),
    "not": lambda a: mp.mpf(not _truth(a)),
    "and": lambda a, b: mp.mpf(_truth(a) and _truth(b)),
    "or": lambda a, b: mp.mpf(_truth(a) or _truth(b)),
    "if_else_zero": lambda c, a: a if _truth(c) else mp.mpf(0),
    "select": lambda c, a, b: a if _truth(c) else b,
    "from": lambda a, b: b - a, "fma": lambda a, b, c: a * b + c,
    "fms": lambda a, b, c: a * b - c, "fnma": lambda a, b, c: c - a * b,
    "fnms": lambda a, b, c: -(a * b) - c,
}  # fmt: skip


def run(tape: Tape, arguments: list[list]) -> list[list]:
    """The outputs of a tape, for arguments given as lists of elements."""
    values: list = []
    for op, *rest in tape.instructions:
        if op == "const":
            values.append(mp.mpf(rest[0]))
        elif op == "input":
            values.append(arguments[rest[0]][rest[1]])
        elif op == "result":
            values.append(values[rest[0]][rest[1]])
        elif op == "loop":
            values.append(_loop(tape.loops[rest[0]], [values[a] for a in rest[1:]]))
        elif op == "branch":
            branch = tape.branches[rest[0]]
            ok, *given = (values[a] for a in rest[1:])
            taken, known = given[: branch.size], given[branch.size :]
            if not _truth(ok):
                taken = run(branch.step, [*arguments[: len(branch.step.inputs) - 1], known])[0]
            values.append(taken)
        else:
            try:
                values.append(OPERATIONS[op](*[values[a] for a in rest]))
            except ZeroDivisionError:  # in what np.where does not take
                values.append(mp.nan)
    return [[values[k] for k in result] for result in tape.results]


def _loop(loop, start: list) -> list:
    parts, at = [], 0
    for given in loop.step.inputs:
        parts.append(start[at : at + given.size])
        at += given.size
    x, parameters = parts[0], parts[1:]
    limit = loop.count if loop.tolerance is None else loop.count + 60
    residual: list = []
    for taken in range(limit + 1):
        if loop.tolerance is None and taken == limit:
            break
        following, *rest = run(loop.step, [x, *parameters])
        if loop.tolerance is not None:
            residual = rest[0]
            # a row that is redundant but for the round-off of its description stays open
            still = all(abs(a - b) <= CLOSED for a, b in zip(following, x))
            if still or all(abs(r) <= CLOSED for r in residual):
                break
            if taken == limit:
                raise NotConverged
        x = following
    return [*x, *residual, mp.mpf(taken)]


def numbers(x) -> list:
    return [mp.mpf(float(value)) for value in np.ravel(x)]


def moved(model: gb.Model, q, xi):
    """q ⊕ ξ by the joints' exponentials and Newton's steps with the independent joints held."""
    parts = []
    for cluster in model.clusters:
        joint = cluster.embedding
        positions, own = joint.positions(q[cluster.q]), xi[cluster.v]
        if joint.implicit:
            steps = joint.split(joint.velocity_map(positions, None)[0] @ own)
        else:
            steps, start = {}, 0
            for body in joint.coordinates:
                steps[body.index] = own[start : start + body.joint.nv]
                start += body.joint.nv
        for body in joint.coordinates:
            here = positions[body.index]
            parts.append(body.joint.motion.integrate(here, steps[body.index]))
    return assemble(model, np.concatenate(parts))[0]


class Reference:
    """A function fn(*arrays) and what it gives along lines through a point, in fifty digits.

    `kinds` has for each argument its shape, and None in the place of that of a configuration.
    """

    def __init__(self, fn, model: gb.Model, kinds):
        self.model = model
        self.shapes = [(model.nq,) if kind is None else kind for kind in kinds]
        self.tape = compiler.trace(fn, self.shapes)
        self.on_manifold = [kind is None for kind in kinds]
        self.motion = compiler.trace(
            lambda q, xi: moved(model, q, xi), [(model.nq,), (model.nv,)]
        ) if any(self.on_manifold) else None  # fmt: skip

    def along(self, point, directions, t):
        """The outputs at point ⊕ t directions, one list of elements."""
        arguments = []
        for x, d, manifold in zip(point, directions, self.on_manifold):
            x, d = numbers(x), [t * y for y in numbers(d)]
            if manifold:
                arguments.append(run(self.motion, [x, d])[0])
            else:
                arguments.append([a + b for a, b in zip(x, d)])
        return [value for out in run(self.tape, arguments) for value in out]

    def derivative(self, point, directions) -> np.ndarray:
        """d/dt of the outputs at t = 0."""
        ahead, behind = (self.along(point, directions, s * STEP) for s in (1, -1))
        return np.array([float((a - b) / (2 * STEP)) for a, b in zip(ahead, behind)])

    def second(self, point, directions) -> np.ndarray:
        """d²/dt² of the outputs at t = 0."""
        here = self.along(point, directions, mp.mpf(0))
        ahead, behind = (self.along(point, directions, s * STEP) for s in (1, -1))
        return np.array([float((a - 2 * b + c) / STEP**2) for a, b, c in zip(ahead, here, behind)])
