"""Object files are checked before LLVM loads them: whatever they hold, the process lives."""

import os
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import grubler.compiler as gc
from grubler.compiler.backends.cpu import host as cpu
from grubler.compiler.runtime import cache, elf
from grubler.compiler.runtime.program import Program, module

pytestmark = pytest.mark.skipif(not elf.CHECKABLE, reason="object files have another format here")
X = np.arange(3.0)
EMPTY = "define void @f() {\n ret void\n}"


def triple(x):
    return np.sin(x) * 3.0 + np.where(x > 1.0, x, -x)


@pytest.fixture(scope="module")
def code():
    tape = Program(triple, [3], dtype=np.dtype(float)).tape
    return {lanes: cpu.object_code(module(tape, "float64", lanes)) for lanes in (1, 4)}


def test_what_we_make_is_right(code):
    assert [elf.damage(c) for c in code.values()] == [None, None]
    arm = cpu.Cpu("aarch64-linux-gnu", "", "", 0)
    foreign = cpu.object_code(EMPTY, arm)
    if "x86" in cpu.host().triple:
        assert "processor" in elf.damage(foreign)


@pytest.mark.parametrize("operation", ["exp", "log", "power", "tanh", "arctan2", "fmod", "arccosh"])
def test_functions_of_the_c_library_are_known(operation):
    fn = getattr(np, operation)

    def f(x):
        return fn(x, x) if fn.nin == 2 else fn(x)

    tape = Program(f, [3], dtype=np.dtype(float)).tape
    for lanes in (1, 8):
        assert elf.damage(cpu.object_code(module(tape, "float64", lanes))) is None


def test_every_prefix_is_damaged(code):
    whole = code[1]
    end = struct.unpack_from("<Q", whole, 40)[0] + 64 * struct.unpack_from("<H", whole, 60)[0]
    for size in [*range(0, 200), *range(200, min(end, len(whole)), 97)]:
        assert elf.damage(whole[:size])


def test_an_unknown_symbol_is_named(code):
    text = "declare void @nowhere_at_all()\n" + EMPTY.replace("{", "{ call void @nowhere_at_all()")
    assert "nowhere_at_all" in elf.damage(cpu.object_code(text))


@pytest.mark.parametrize("payload", [b"", b"garbage" * 100, b"\x7fELF" + bytes(1000), "another"])
def test_garbage_under_the_right_digest_is_rebuilt(tmp_path, monkeypatch, payload):
    """Nothing of an entry is believed before it was checked, its digest or not."""
    monkeypatch.setenv("GRUBLER_CACHE_DIR", str(tmp_path / "cache"))
    expected = gc.compile_function(triple, [3])(X)
    if payload == "another":  # a sound object file without our functions
        payload = cpu.object_code(EMPTY)
    for path in (tmp_path / "cache").iterdir():
        cache.write(path.stem, payload)
    np.testing.assert_array_equal(gc.compile_function(triple, [3])(X), expected)
    for path in (tmp_path / "cache").iterdir():
        assert len(cache.read(path.stem)) > 1100


MUTATE = textwrap.dedent(
    """
    import struct, sys
    import numpy as np
    from grubler.compiler.backends.cpu import host as cpu
    from grubler.compiler.runtime import elf
    code, rng = open(sys.argv[1], "rb").read(), np.random.default_rng(int(sys.argv[2]))
    start, number = struct.unpack_from("<Q", code, 40)[0], struct.unpack_from("<H", code, 60)[0]
    tables = [(0, 64), (start, start + 64 * number)]
    for i in range(number):
        kind, = struct.unpack_from("<I", code, start + 64 * i + 4)
        offset, size = struct.unpack_from("<QQ", code, start + 64 * i + 24)
        if kind in (2, 3, 4):
            tables.append((offset, offset + size))
    refused = loaded = 0
    for _ in range(int(sys.argv[3])):
        data = bytearray(code)
        for _ in range(rng.integers(1, 4)):
            low, high = tables[rng.integers(len(tables))]
            data[rng.integers(low, high)] = rng.choice([0, 1, 2, 127, 128, 255, rng.integers(256)])
        if elf.damage(bytes(data)):
            refused += 1
            continue
        loaded += 1
        try:
            cpu.Library(bytes(data)).address("one")
        except RuntimeError:
            pass
    print(refused, loaded)
    """
)


@pytest.mark.parametrize("seed", range(2))
def test_damaged_tables_never_end_the_process(code, tmp_path, seed):
    path = tmp_path / "code.o"
    path.write_bytes(code[1])
    run = subprocess.run(
        [sys.executable, "-c", MUTATE, str(path), str(seed), "300"],
        capture_output=True, text=True, timeout=100, check=False, env=os.environ,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    refused, loaded = map(int, run.stdout.split())
    assert refused > 50 and refused + loaded == 300
