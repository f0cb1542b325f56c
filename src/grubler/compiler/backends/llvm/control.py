"""Loops and branches in LLVM IR, for every target.

`e` is the emitter, `emit` emits a step and names what it gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...ir.tape import Loop

if TYPE_CHECKING:
    from .emitter import Emitter

# How much more often a branch's condition holds, for the order of the code: what is seldom needed
# stands aside.
HOLDS = 10_000


def emit_branch(values: list[str], e: Emitter, ok: str, active: Any, emit: Any) -> list[str]:
    """`values` where `ok` in each lane, else what the branch gives; the names of its results.

    `active` are the lanes that take the branch around, None where there is none; `emit` is told
    those that take this one, and names what it gives.
    """
    failing = _failing(e, ok, active)
    before, seldom, done = e.label, e.new_label("seldom"), e.new_label("done")
    _fork(e, failing, seldom, done)
    e.start_block(seldom)
    chosen = [e.select(ok, value, other) for value, other in zip(values, emit(failing))]
    after = e.label
    e.line(f"br label %{done}")
    e.start_block(done)
    return _joined(e, (before, values), (after, chosen))


def fork(e: Emitter, ok: str) -> str:
    """Begin the block where a condition of a single state fails; the label of the other."""
    seldom, usual = e.new_label("seldom"), e.new_label("usual")
    _fork(e, _failing(e, ok, None), seldom, usual)
    e.start_block(seldom)
    return usual


def _failing(e, ok: str, active) -> str:
    failing = e.logical("xor", ok, e.true())
    return failing if active is None else e.logical("and", failing, active)


def _fork(e, failing: str, seldom: str, usual: str) -> None:
    e.line(f"br i1 {e.any(failing)}, label %{seldom}, label %{usual}, !prof "
           f"!{{!\"branch_weights\", i32 1, i32 {HOLDS}}}")  # fmt: skip


def _joined(e, *ways: tuple[str, list[str]]) -> list[str]:
    """Values that come by several ways, (label, values) each."""
    return [
        e.define(f"phi {e.type} " + ", ".join(
            f"[ {value}, %{label} ]" for value, (label, _) in zip(values, ways)
        ))
        for values in zip(*(values for _, values in ways))
    ]  # fmt: skip


def emit_loop(e: Emitter, loop: Loop, start: list[str], emit: Callable[..., Any]) -> list[str]:
    """A loop in the generated code; the names of its results."""
    n = loop.state_size
    state, parameters = start[:n], start[n:]
    sizes = [array.size for array in loop.step.inputs[1:]]
    pieces = [parameters[sum(sizes[:i]) : sum(sizes[: i + 1])] for i in range(len(sizes))]
    if loop.tolerance is None and loop.count == 0:
        return [*state, e.number(0.0)]
    before, head, done = e.label, e.new_label("loop"), e.new_label("done")
    e.line(f"br label %{head}")
    e.start_block(head)
    # The phis name what the body's end computes; their text is completed once that is known.
    place = len(e.lines)
    inside = [e.name() for _ in range(n)]
    k, steps, active = e.name(), e.name(), e.name()
    arguments = [inside, *pieces]
    outputs = emit(loop.step, lambda argument, element: arguments[argument][element])
    following, residual, alive, taken = outputs[0], [], active, None
    if loop.tolerance is not None:
        residual = outputs[1]
        alive = e.logical("and", active, _unconverged(e, loop, residual, k))
        following = [e.select(alive, new, old) for new, old in zip(following, inside)]
    more = e.binary("fadd", steps, e.number(1.0))
    taken = e.select(alive, more, steps)
    next_k = e.define(f"add i32 {k}, 1")
    if loop.tolerance is None:
        again = e.define(f"icmp ult i32 {next_k}, {loop.count}")
    else:
        again = e.any(alive)
    e.line(f"br i1 {again}, label %{head}, label %{done}")
    phis = [
        f"  {v} = phi {e.type} [ {s}, %{before} ], [ {new}, %{e.label} ]"
        for v, s, new in zip(inside, state, following)
    ]
    phis.append(f"  {k} = phi i32 [ 0, %{before} ], [ {next_k}, %{e.label} ]")
    phis.append(f"  {steps} = phi {e.type} [ {e.number(0.0)}, %{before} ], [ {taken}, %{e.label} ]")
    phis.append(f"  {active} = phi {e.mask} [ {e.true()}, %{before} ], [ {alive}, %{e.label} ]")
    e.lines[place:place] = phis
    e.start_block(done)
    return [*following, *residual, taken]


def _unconverged(e, loop: Loop, residual: list[str], k: str) -> str:
    """Lanes with a residual beyond tolerance (NaN is not) while steps are left."""
    tolerance = e.number(loop.tolerance)
    open_ = "false" if e.lanes == 1 else "zeroinitializer"
    for r in residual:
        open_ = e.logical("or", open_, e.compare("ogt", e.call("fabs", r), tolerance))
    left = e.define(f"icmp ult i32 {k}, {loop.count}")
    if e.lanes > 1:
        one = e.define(f"insertelement {e.mask} poison, i1 {left}, i64 0")
        zeros = f"<{e.lanes} x i32> zeroinitializer"
        left = e.define(f"shufflevector {e.mask} {one}, {e.mask} poison, {zeros}")
    return e.logical("and", open_, left)
