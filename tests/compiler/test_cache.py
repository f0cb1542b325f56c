"""The cache on disk: found again, rebuilt when damaged, shared, done without."""

import os
import stat
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

import grubler.compiler as gc
from grubler.compiler import cache, cpu


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUBLER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compilations(monkeypatch):
    """How often code was generated."""
    calls = []
    original = cpu.object_code
    monkeypatch.setattr(cpu, "object_code", lambda *a: calls.append(1) or original(*a))
    return calls


def double(x):
    return x * 2.0


X = np.arange(3.0)


def run():
    np.testing.assert_array_equal(gc.compile_function(double, [3])(X), X * 2)


def entries(folder):
    return [p for p in folder.rglob("*") if p.is_file()]


def test_code_is_found_again(folder, compilations):
    run()
    run()
    assert len(compilations) == 1 and len(entries(folder)) == 1


def test_a_key_spares_the_tracing(folder, compilations):
    calls = []

    def fn(x):
        calls.append(1)
        return (x * 2.0, x[0])

    for _ in range(3):
        f = gc.compile_function(fn, [3], key="double")
        a, b = f(X + 1)
        np.testing.assert_array_equal(a, X * 2 + 2)
        assert b.shape == () and b == 1
    assert len(calls) == len(compilations) == 1
    assert (
        f.operations.multiplications == 3 and len(calls) == 2
    )  # the tape is traced when asked for
    gc.compile_function(fn, [3], key="another")
    gc.compile_function(fn, [4], key="double")
    assert len(calls) == 4


@pytest.mark.parametrize("damage", [b"", b"junk", b"grubler1" + bytes(100), None])
def test_damaged_entries_are_rebuilt(folder, compilations, damage):
    gc.compile_function(double, [3], key="k")(X)
    for path in entries(folder):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] if damage is None else damage)
    np.testing.assert_array_equal(gc.compile_function(double, [3], key="k")(X), X * 2)
    assert len(compilations) == 2
    run()
    assert len(compilations) == 2


def test_what_code_depends_on_is_in_its_name(folder, compilations, monkeypatch):
    run()
    gc.compile_function(double, [3], dtype="float32")(X)
    gc.compile_function(lambda x: x * 3.0, [3])(X)
    assert len(compilations) == 3
    monkeypatch.setattr(cache, "sources", lambda part="": "changed")
    run()
    assert len(compilations) == 4


def test_an_unwritable_folder_is_one_warning(tmp_path, monkeypatch, compilations):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("GRUBLER_CACHE_DIR", str(blocked / "cache"))
    with pytest.warns(RuntimeWarning, match="GRUBLER_CACHE_DIR"):
        run()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run()
    assert len(compilations) == 2


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(tmp_path, monkeypatch):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    monkeypatch.setenv("GRUBLER_CACHE_DIR", str(tmp_path))
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        run()
    tmp_path.chmod(stat.S_IRWXU)


def test_no_cache(folder, monkeypatch):
    monkeypatch.setenv("GRUBLER_CACHE_DIR", "")
    run()
    assert not folder.exists()


def test_processes_side_by_side(folder):
    code = textwrap.dedent(
        """
        import numpy as np, grubler.compiler as gc
        for n in range(3, 7):
            f = gc.compile_function(lambda x: np.sin(x) * 2.0, [n], key=f"sine {n}")
            x = np.arange(float(n))
            assert np.allclose(f(x), np.sin(x) * 2)
            assert np.allclose(f(np.tile(x, (9, 1)))[8], np.sin(x) * 2)
        """
    )
    processes = [subprocess.Popen([sys.executable, "-W", "error", "-c", code]) for _ in range(4)]
    assert [p.wait(60) for p in processes] == [0] * 4
    assert not [p for p in entries(folder) if p.suffix == ".part"]
    assert len(entries(folder)) == 12


def test_garbage_in_cycles_does_not_crash():
    """Compiled functions that only the cycle collector can free, engines and all."""
    import gc

    from grubler.compiler import compile_function

    for i in range(40):
        f = compile_function(lambda x, i=i: np.sin(x) + float(i), [(3,)], name=f"cycle{i}")
        f.itself = f
        assert f(np.zeros(3))[0] == i
        del f
        if i % 10 == 9:
            gc.collect()
