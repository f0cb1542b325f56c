"""The cache on disk: found again, rebuilt when damaged, shared, done without."""

import os
import shutil
import stat
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

import grubler.compiler as gc
from grubler.compiler.backends.cpu import host as cpu
from grubler.compiler.runtime import cache


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


@pytest.mark.parametrize("damage", [b"", b"junk", b"grubler2" + bytes(100), None])
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


POSIX = pytest.mark.skipif(os.name != "posix", reason="files have no mode")


@POSIX
@pytest.mark.parametrize("umask", [0, 0o002, 0o077])
def test_nobody_else_may_write_or_read(folder, umask):
    before = os.umask(umask)
    try:
        gc.compile_function(double, [3], key="k")(X)
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in entries(folder)} == {0o600}


@POSIX
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
def test_a_folder_that_others_can_write_is_refused(folder, compilations, mode):
    gc.compile_function(double, [3], key="k")(X)
    folder.chmod(mode)
    cache._warned.clear()
    with pytest.warns(RuntimeWarning, match=r"can be written by other users .*chmod go-w"):
        gc.compile_function(double, [3], key="k")(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        run()
    assert len(compilations) == 3  # nothing was read, nothing is lost but time
    assert f"mode {mode:04o}" in cache.refusal(folder) and cache.refusal(folder / "none") is None
    folder.chmod(0o700)
    run()
    assert len(compilations) == 3


@POSIX
@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_can_write_is_refused(folder, compilations, mode):
    run()
    for path in entries(folder):
        path.chmod(mode)
    cache._warned.clear()
    with pytest.warns(RuntimeWarning, match="cache file .* can be written by other users"):
        run()
    assert len(compilations) == 2
    run()  # it was replaced
    assert len(compilations) == 2


@POSIX
@pytest.mark.parametrize("what", ["the cache folder", "the cache file"])
def test_what_belongs_to_another_user_is_refused(folder, compilations, monkeypatch, what):
    run()
    if os.geteuid() == 0:
        for path in [folder] if what == "the cache folder" else entries(folder):
            os.chown(path, 12345, 12345)
    else:
        checked = cache._check
        me = os.geteuid()
        monkeypatch.setattr(
            cache, "_check", lambda status, of: of.startswith(what) and checked(status, of)
        )
        monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    cache._warned.clear()
    with pytest.warns(RuntimeWarning, match=f"{what} .* belongs to user .* GRUBLER_CACHE_DIR"):
        run()
    assert len(compilations) == 2


@POSIX
def test_links_and_pipes_are_not_entries(folder, compilations, tmp_path):
    run()
    (path,) = entries(folder)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    run()
    assert len(compilations) == 2
    path.unlink()
    os.mkfifo(path, 0o600)
    run()  # reading a pipe would wait for ever
    assert len(compilations) == 3


def test_entries_do_not_stand_for_each_other(folder, compilations):
    """An entry under the name of another one is damaged, though each is whole."""
    run()
    gc.compile_function(lambda x: x * 3.0, [3])(X)
    a, b = entries(folder)
    a.rename(folder / "aside")
    b.rename(a)
    (folder / "aside").rename(b)
    run()
    assert len(compilations) == 3


def test_no_cache(folder, monkeypatch):
    monkeypatch.setenv("GRUBLER_CACHE_DIR", "")
    run()
    assert not folder.exists()


def test_sources_count_by_their_contents(tmp_path):
    """A file that changes, with its size and its time kept, is another file."""
    package = tmp_path / "grubler"
    shutil.copytree(Path(cache.__file__).parents[2], package, ignore=lambda *_: ["__pycache__"])
    code = (
        "import grubler, grubler.compiler.runtime.cache as c; "
        "print(grubler.__file__, c.sources(), c.sources('compiler'))"
    )

    def hashes():
        env = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        place, *found = subprocess.check_output(
            [sys.executable, "-c", code], env=env, text=True
        ).split()
        assert Path(place).parent == package
        return found

    def change(path):
        before = path.stat()
        text = path.read_bytes()
        path.write_bytes(text.replace(b". ", b".,", 1))  # in the first docstring
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size

    first = hashes()
    assert hashes() == first
    change(package / "algorithms" / "c_aba.py")
    second = hashes()
    assert second[0] != first[0] and second[1] == first[1]
    change(package / "compiler" / "backends" / "llvm" / "lower.py")
    third = hashes()
    assert third[0] != second[0] and third[1] != second[1]


def test_without_sources_nothing_is_found_again(monkeypatch):
    monkeypatch.setattr(cache, "_files", dict)
    cache.sources.cache_clear()
    first = cache.sources()
    cache.sources.cache_clear()
    assert first != cache.sources()
    cache.sources.cache_clear()


def test_choices_are_kept(folder):
    asked = []

    def decide():
        asked.append(1)
        return "b"

    for _ in range(2):
        assert gc.choice("key", ("a", "b"), decide) == "b"
    assert len(asked) == 1
    assert gc.choice("another", ("a", "b"), decide) == gc.choice("key", ("b", "c"), decide) == "b"
    assert gc.choice(None, ("a", "b"), decide) == gc.choice(None, ("a", "b"), decide) == "b"
    assert len(asked) == 5


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
