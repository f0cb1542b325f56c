"""Code for other processors than this one: without AVX-512, without AVX; NEON in an emulator."""

from __future__ import annotations

import platform
from dataclasses import replace

import numpy as np
import pytest

import grubler as gb
from grubler.compiler.backends.cpu import host as cpu
from grubler.compiler.runtime import program

from .emulated import Machine

HERE = cpu.host()
OLDER = {  # LLVM's name, features taken away, bytes of a register
    "avx2": ("haswell", "avx512", 32),
    "sse2": ("x86-64-v2", "avx", 16),
}
TOLERANCE = {"float64": 1e-11, "float32": 2e-3}


def states(model, count, dtype):
    rows = [(*model.random_state(seed), np.full(model.nv, 0.3)) for seed in range(count)]
    return [np.stack(x).astype(dtype) for x in zip(*rows, strict=True)]


def expected(model, batch):
    return np.stack([gb.forward_dynamics(model, *map(np.float64, row)) for row in zip(*batch)])


def close(ours, reference, dtype):
    assert np.abs(ours - reference).max() < TOLERANCE[dtype] * np.abs(reference).max()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("generation", OLDER)
def test_an_older_x86_processor(generation, dtype, monkeypatch):
    name, without, width = OLDER[generation]
    features = ",".join(
        f"-{f[1:]}" if f[1:].startswith(without) or (f[1:] in ("fma", "f16c", "evex512") and
        generation == "sse2") else f
        for f in HERE.features.split(",")
    )  # fmt: skip
    monkeypatch.setattr(cpu, "host", lambda: replace(
        HERE, name=name, features=features, vector_bytes=width))  # fmt: skip
    model = gb.robots.load("mini_cheetah")
    fd = gb.compile(gb.forward_dynamics, model, dtype=dtype)
    assert fd.lanes == width // np.dtype(dtype).itemsize
    batch = states(model, 2 * fd.lanes + 1, dtype)
    reference = expected(model, batch)
    close(fd(*batch), reference, dtype)
    close(fd(*(x[0] for x in batch)), reference[0], dtype)


@pytest.fixture
def neon(monkeypatch):
    arm = cpu.Cpu("aarch64-linux-gnu", "cortex-a72", "+neon", 16)
    monkeypatch.setattr(cpu, "host", lambda: arm)
    return arm


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("robot", ["mini_cheetah", "four_bar"])
def test_neon_batches_of_any_size(robot, dtype, neon):
    model = gb.robots.load(robot)
    tape = gb.compile(gb.forward_dynamics, model, dtype=dtype).tape
    lanes = neon.lanes(dtype)
    code = cpu.object_code(program.module(tape, dtype, lanes), neon)
    for count in (1, lanes, lanes + 1, 2 * lanes + 1):
        machine = Machine(code)
        batch = states(model, count, dtype)
        out = np.zeros((count, model.nv), dtype)
        places = [machine.put(x) for x in (*batch, out)]
        rows = [(at, x.shape[1], 1) for at, x in zip(places, (*batch, out), strict=True)]
        scratch = machine.put(np.zeros(lanes * sum(x.shape[1] for x in (*batch, out)), dtype))
        machine.call("batch", machine.put(np.array(rows, np.int64)), 0, count, scratch & -16)
        close(machine.get(places[-1], out), expected(model, batch), dtype)


def test_neon_single_state_and_closed_loops(neon):
    """The Newton loop of `assemble`, one state."""
    model = gb.robots.load("four_bar")
    q, _ = model.random_state(1)
    guess = q + 0.05
    assemble = gb.compile(gb.assemble, model)
    code = cpu.object_code(program.module(assemble.tape, "float64", 1), neon)
    machine = Machine(code)
    sizes = [a.shape for a in assemble.outputs]
    arrays = [guess, *(np.zeros(shape) for shape in sizes)]
    places = [machine.put(x) for x in arrays]
    machine.call("one", machine.put(np.array(places, np.uint64)))
    closed = machine.get(places[1], arrays[1])
    assert model.loop_gap(closed) < 1e-12 < model.loop_gap(guess)
