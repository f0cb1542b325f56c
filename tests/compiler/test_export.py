"""Exported C and object files, compiled or linked by the system's compiler, against our own."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import grubler.compiler as gc
from grubler.errors import InputError

from .by_hand import in_two_legs, star

CC = shutil.which("gcc") or shutil.which("cc")
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler")


def linked(files, folder):
    """The exported function as a shared library."""
    library = folder / "library.so"
    sources = [str(f) for f in files if f.suffix in (".c", ".o")]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
    subprocess.run([CC, *flags, "-o", str(library), *sources, "-lm"], check=True)
    return ctypes.CDLL(str(library))


def call(function, compiled, arguments):
    out = [np.full(a.shape, 7, compiled.dtype) for a in compiled.outputs]
    function.restype = None
    pointers = [ctypes.c_void_p(np.ascontiguousarray(a).ctypes.data) for a in (*arguments, *out)]
    function(*pointers)
    return out


def everything(x, y):
    where = np.where(np.logical_or(x < y, x == 0.0), np.sqrt(np.abs(y)), np.arctan2(x, y))
    rest = np.minimum(x, y) * np.sign(x) + np.floor(y) - np.copysign(x, y) / (2.0 + np.cos(x))
    both = np.where(np.logical_and(x > 0.0, np.logical_not(y > 0.0)), 1.0, 0.0)
    return where, np.stack([rest, both]), np.exp(-x[0] * x[0]) ** 1.5


def loop(x, a):
    step = lambda x, a: (x - (x * x - a) / (2.0 * x), x * x - a)  # noqa: E731
    y, r, k = gc.iterate(step, x, a, count=20, tolerance=1e-9)
    return y, r, gc.iterate(lambda x, a: x * 0.5 + a, y, a, count=3) + k


def branch(x, y):
    z = gc.iterate(lambda z, y: z * 0.5 + y, x, y, count=3)
    return gc.otherwise(x[0] < y[0], z + x, lambda: np.sin(z) * y) * 2.0, z


def nested(x, y):
    def inside():
        u = np.exp(-x) + y
        return gc.otherwise(x[1] < y[1], u, lambda: gc.iterate(lambda u: u * 0.5 + 1.0, u, count=3))

    return gc.otherwise(x[0] < y[0], x - y, inside) * 3.0, x[0] * y


def one_way(x, y):
    """All results are a branch's: what comes after its condition belongs to one way."""
    u = x - y
    late = np.tanh(u) + gc.otherwise(u[2] > 0.0, x, lambda: x * y)

    def inside():
        w = np.exp(-u)
        z = gc.otherwise(u[1] < 0.0, w * y, lambda: w - np.sin(w))
        return np.concatenate([z, z * w])

    both = gc.otherwise(u[0] < 0.0, np.concatenate([late, late * late]), inside)
    return both[:3], both[3:]


@needs_cc
@pytest.mark.parametrize("language", ["c", "object"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("fn", [everything, loop, branch, nested, one_way])
def test_exported_code_computes_the_same(tmp_path, fn, dtype, language):
    compiled = gc.compile_function(fn, [3, 3], dtype=dtype)
    files = gc.export(compiled, tmp_path, language=language)
    function = getattr(linked(files, tmp_path), fn.__name__)
    rng = np.random.default_rng(0)
    for _ in range(12):
        x, y = rng.normal(size=(2, 3)).astype(dtype)
        if fn is loop:
            x, y = np.ones(3, dtype), np.abs(y) + np.float32(0.1)
        if dtype == "float32" and fn is loop:
            continue  # 1e-9 is below fp32: how long it wanders is not defined
        rtol = 1e-12 if dtype == "float64" else 1e-4
        for got, want in zip(call(function, compiled, (x, y)), compiled(x, y)):
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


@needs_cc
def test_exported_dynamics(tmp_path, dynamics):
    fn, compiled, nq, nv = dynamics
    files = gc.export(compiled, tmp_path / "out", name="fd")
    function = linked(files, tmp_path).fd
    rng = np.random.default_rng(0)
    x = [rng.normal(size=n) for n in (nq, nv, nv)]
    np.testing.assert_allclose(call(function, compiled, x)[0], fn(*x), rtol=1e-9)
    text = (tmp_path / "out" / "fd.h").read_text()
    assert "const double *q" in text and 'extern "C"' in text


@needs_cc
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("limbs", [0, 2, 3, 4, 6])
def test_equal_limbs_in_vectors(tmp_path, limbs, dtype):
    fn, shapes = (star(limbs), [2 * limbs, 2 * limbs, 4]) if limbs else (in_two_legs, [4, 2])
    compiled = gc.compile_function(fn, shapes, dtype=dtype)
    files = gc.export(compiled, tmp_path, vectors=True, name="fn")
    assert "vector_size" in files[0].read_text()
    assert "vector_size" not in gc.export(compiled, tmp_path / "plain")[0].read_text()
    function = linked(files, tmp_path).fn
    rng = np.random.default_rng(0)
    for _ in range(24):
        x = [rng.normal(size=n).astype(dtype) for n in shapes]
        rtol = 1e-12 if dtype == "float64" else 1e-4
        (got,) = call(function, compiled, x)
        np.testing.assert_allclose(got, compiled(*x), rtol=rtol, atol=rtol)


@needs_cc
@pytest.mark.parametrize("language", ["c", "c++"])
def test_header_is_valid_on_its_own(tmp_path, dynamics, language):
    gc.export(dynamics[1], tmp_path, name="fd")
    use = tmp_path / "use.c"
    kind = "void (*f)(const double *, const double *, const double *, double *)"
    use.write_text(f'#include "fd.h"\n{kind} = fd;\n')
    command = [CC, "-x", language, "-Wall", "-Werror", "-fsyntax-only", str(use)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if language == "c++" and "cc1plus" in done.stderr:
        pytest.skip("no C++ compiler")
    assert done.returncode == 0, done.stderr


def test_vectors_are_asked_for_in_c_alone(tmp_path, dynamics):
    with pytest.raises(InputError, match="language='c'"):
        gc.export(dynamics[1], tmp_path, language="object", vectors=True)


def test_names_that_c_reserves(tmp_path):
    compiled = gc.compile_function(lambda x, y: x * y, [2, 2], names=["double", "s1"])
    source = gc.export(compiled, tmp_path, name="fd")[0].read_text()
    assert "a_double[0]" in source and "a_s1[0]" in source


def test_object_for_another_processor(tmp_path, dynamics):
    files = gc.export(
        dynamics[1], tmp_path, language="object", triple="aarch64-linux-gnu", cpu_name="cortex-a72",
        name="fd",
    )  # fmt: skip
    data = files[0].read_bytes()
    assert data[:4] == b"\x7fELF" and data[18] == 183  # EM_AARCH64


def test_bad_exports(tmp_path, dynamics):
    compiled = dynamics[1]
    with pytest.raises(InputError, match="language"):
        gc.export(compiled, tmp_path, language="cpp")
    with pytest.raises(InputError, match="C function"):
        gc.export(compiled, tmp_path, name="1 2")
    with pytest.raises(InputError, match="triple"):
        gc.export(compiled, tmp_path, language="object", triple="pdp11-unknown")
