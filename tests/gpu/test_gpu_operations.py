"""Every operation of the CPU target on the GPU target: its code assembles, and its arithmetic,
run on this CPU with the GPU's approximations imitated at their worst, keeps the CPU's bounds."""

import ctypes
import shutil
import subprocess

import mpmath
import numpy as np
import pytest

from compiler.operations import NORMAL, all_operations, check, samples, tape_of
from grubler.compiler.backends.cpu import host as cpu
from grubler.compiler.backends.gpu.emitter import PtxEmitter
from grubler.compiler.backends.gpu.module import assemble, module
from grubler.compiler.backends.gpu.ptx import Plan
from grubler.compiler.backends.llvm.emitter import Emitter
from grubler.compiler.backends.llvm.lower import _Line
from grubler.compiler.ir.ops import OPS

DTYPES = ("float64", "float32")


class Imitation(PtxEmitter):
    """The GPU's emitter with its hardware's approximations as a CPU computes them, off by as much
    as the hardware may be, in the direction given."""

    def __init__(self, dtype: str, direction: int):
        super().__init__(dtype)
        self.direction = direction

    number = Emitter.number  # there is no constant memory

    def intrinsic(self, name: str, result: str, *arguments: str) -> str:
        values = [a.split(" ", 1)[1] for a in arguments]
        if name.startswith("rcp"):
            bits = -23 if self.single else -20
            value = Emitter.binary(self, "fdiv", Emitter.number(self, 1.0), self._flush(values[0]))
            return self._flush(self._off(value, 2.0**bits))
        if name == "div.approx.f":
            return self._off(Emitter.binary(self, "fdiv", *values), 2.0**-22)
        assert name == "sqrt.approx.f"
        return self._off(Emitter.call(self, "sqrt", *values), 2.0**-23)

    def _off(self, value: str, relative: float) -> str:
        return Emitter.binary(
            self, "fmul", value, Emitter.number(self, 1.0 + self.direction * relative)
        )

    def _flush(self, value: str) -> str:
        tiny = self.compare(
            "olt", Emitter.call(self, "fabs", value),
            Emitter.number(self, float(np.finfo(self.dtype).tiny)),
        )  # fmt: skip
        zero = Emitter.call(self, "copysign", Emitter.number(self, 0.0), value)
        return self.select(tiny, zero, value)


def imitated(op: str, dtype: str, direction: int = 1):
    """The function of rows of arguments that the GPU's code for an operation computes."""
    e = Imitation(dtype, direction)
    tape = tape_of(op)
    line = _Line(
        e, tape, lambda e, argument, element: e.load("%x", argument),
        lambda e, value, output, element: e.store(value, "%out", 0),
    )  # fmt: skip
    line.emit()
    ir = "\n".join([
        *e.declared.values(), "define void @f(ptr %x, ptr %out) {", "entry:", *e.lines,
        "  ret void", "}",
    ])  # fmt: skip
    library = cpu.Library(cpu.object_code(ir))
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address("f"))

    def run(x):
        x, out = np.ascontiguousarray(x), np.full(len(x), np.nan, x.dtype)
        for i in range(len(x)):
            call(x[i:].ctypes.data, out[i:].ctypes.data)
        return out

    run.library = library  # holds the code
    return run


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", sorted(OPS))
def test_arithmetic_within_the_cpus_bounds(op, dtype):
    x = samples(op, dtype, NORMAL)
    for direction in (-1, 0, 1):
        check(op, x, imitated(op, dtype, direction)(x))


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on this machine")
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_assembles(dtype, tmp_path):
    plans = {layout: Plan() for layout in ("columns", "rows")}
    text = assemble(module(all_operations(), dtype, plans)[0], "sm_90", 1)
    assert ".extern .func" not in text  # nothing to link with
    path = tmp_path / "code.ptx"
    path.write_text(text)
    subprocess.run(
        ["ptxas", "-arch=sm_90", "-o", str(tmp_path / "code.cubin"), str(path)], check=True
    )


EXACT = {
    "exp": mpmath.exp, "log": mpmath.log, "expm1": mpmath.expm1, "log1p": mpmath.log1p,
    "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh, "asinh": mpmath.asinh,
    "acosh": mpmath.acosh, "atanh": mpmath.atanh, "erf": mpmath.erf, "pow": mpmath.power,
    "fmod": mpmath.fmod, "hypot": mpmath.hypot,
}  # fmt: skip


def hard_arguments(op: str, dtype: str) -> np.ndarray:
    """Where a function's parts meet, where it cancels, and up to its ends."""
    rng = np.random.default_rng(11)
    end = 700.0 if dtype == "float64" else 85.0
    small = 10.0 ** rng.uniform(-18 if dtype == "float64" else -9, 0, 300)
    wide = rng.uniform(-end, end, 600)
    if op in ("log", "acosh"):
        x = np.concatenate([1 + small, np.exp(np.abs(wide)), 1 + 10 * small])
        x = np.concatenate([x, 1 - small / 2, np.exp(wide)]) if op == "log" else x
    elif op == "log1p":
        x = np.concatenate([small, -small / 1.01, np.exp(np.abs(wide)), rng.uniform(-0.6, 3, 300)])
    elif op == "atanh":
        x = np.concatenate([small / 1.01, 1 - small / 2, -small / 1.01])
    elif op == "pow":
        base = np.exp(np.concatenate([wide, rng.uniform(-1, 1, 600), small]))
        power = rng.uniform(-1, 1, len(base)) * (end / np.abs(np.log(base)).clip(1e-5, None))
        return np.stack([base, power], -1).astype(dtype)
    elif op in ("fmod", "hypot"):
        pair = rng.normal(size=(600, 2)) * 10.0 ** rng.integers(-12, 12, (600, 2))
        return pair.astype(dtype)
    else:
        x = np.concatenate([small, -small, wide, rng.uniform(-4, 4, 600)])
    return x.astype(dtype)[:, None]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", sorted(op for op in OPS if OPS[op].library))
def test_against_exact_values(op, dtype):
    x = hard_arguments(op, dtype)
    info = np.finfo(dtype)
    allowed = 6 if op in ("erf", "pow") else 3
    with mpmath.workprec(300):
        exact = [EXACT[op](*(mpmath.mpf(float(v)) for v in row)) for row in x]
    if op == "fmod":  # C's remainder has the sign of the dividend
        exact = [
            e - abs(mpmath.mpf(float(y))) if e != 0 and e * float(a) < 0 and y > 0
            else e + abs(mpmath.mpf(float(y))) if e != 0 and e * float(a) < 0 else e
            for e, (a, y) in zip(exact, x)
        ]  # fmt: skip
    for direction in (-1, 1):
        got = imitated(op, dtype, direction)(x)
        for row, g, e in zip(x, got, exact):
            if abs(e) > info.max or abs(e) < info.tiny:
                continue
            ulp = mpmath.mpf(2) ** (mpmath.floor(mpmath.log(abs(e), 2)) - info.nmant)
            error = abs(mpmath.mpf(float(g)) - e) / ulp
            assert error < allowed, (row.tolist(), float(g), float(e), float(error))
