"""The runtime without a GPU: it imports alone, reads bundles, and says clearly what is missing."""

import ctypes
import json
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest

import grubler as gb
from grubler.gpu import GpuError, GpuFunction, InputError, available, dlpack, driver, load
from grubler.gpu.launch import Launch


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle")
    compiled = gb.compile(gb.energy, gb.robots.load("arm7"), target="cuda", dtype="float32")
    gb.export(compiled, folder, target="cuda", candidates=2)
    return folder


class TestBundle:
    def test_files(self, bundle):
        names = {path.name for path in bundle.iterdir()}
        assert {"energy.json", "energy.0.ptx", "energy.1.ptx", "grubler_bundle.py"} <= names
        signature = json.loads((bundle / "energy.json").read_text())
        assert signature["dtype"] == "float32" and len(signature["candidates"]) == 2

    def test_loads_without_the_compiler(self, bundle):
        """In a process where the compiler's dependencies cannot be imported."""
        script = f"""
            import sys
            for name in ("casadi", "llvmlite", "grubler", "platformdirs"):
                sys.modules[name] = None  # importing it raises ImportError
            sys.path.insert(0, {str(bundle)!r})
            import grubler_bundle
            f = grubler_bundle.load()
            print(f.name, f.dtype, [a.shape for a in f.inputs])
            try:
                import numpy
                f(numpy.zeros((4, 7)), numpy.zeros((4, 7)))
            except grubler_bundle.GpuError as error:
                print("GpuError", error)
            except grubler_bundle.InputError as error:
                print("InputError", error)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert "energy float32 [(7,), (7,)]" in done.stdout
        assert ("CPU's memory" if available() else "GpuError") in done.stdout

    def test_names(self, bundle, tmp_path):
        assert load(bundle).name == load(bundle, "energy").name == "energy"
        with pytest.raises(InputError, match="holds no function 'enrgy', but: energy"):
            load(bundle, "enrgy")
        with pytest.raises(InputError, match="none"):
            load(tmp_path)

    def test_damaged(self, bundle, tmp_path):
        (tmp_path / "f.json").write_text("{}")
        with pytest.raises(InputError, match="damaged"):
            load(tmp_path)

    def test_wrong_target(self, bundle, tmp_path):
        model = gb.robots.load("arm7")
        on_cpu = gb.compile(gb.energy, model)
        on_gpu = gb.compile(gb.energy, model, target="cuda")
        with pytest.raises(gb.InputError, match="compiled for target='cpu'"):
            gb.export(on_cpu, tmp_path, target="cuda")
        with pytest.raises(gb.InputError, match="compiled for target='cuda'"):
            gb.export(on_gpu, tmp_path)
        with pytest.raises(gb.InputError, match="target"):
            gb.export(on_gpu, tmp_path, target="gpu")


class TestMissing:
    def test_no_driver(self, bundle, monkeypatch):
        def absent(name):
            raise OSError(f"{name}: cannot open shared object file")

        driver.library.cache_clear()
        monkeypatch.setattr(ctypes, "CDLL", absent)
        assert not available()
        f = load(bundle)
        with pytest.raises(GpuError, match=r"no NVIDIA driver.*target='cpu'"):
            f(np.zeros((2, 7), np.float32), np.zeros((2, 7), np.float32))
        cpu = gb.compile(gb.energy, gb.robots.load("arm7"))  # goes on working
        assert np.isfinite(cpu(np.zeros(7), np.zeros(7))).all()
        driver.library.cache_clear()

    @pytest.mark.parametrize(
        ("code", "words"), [(100, "finds no GPU"), (999, "does not start"), (803, "does not start")]
    )
    def test_driver_without_gpu(self, monkeypatch, code, words):
        class Fake:
            def cuInit(self, _):
                return code

            def cuGetErrorString(self, _, __):
                return 0

        driver.library.cache_clear()
        monkeypatch.setattr(ctypes, "CDLL", lambda name: Fake())
        with pytest.raises(GpuError, match=words):
            driver.library()
        driver.library.cache_clear()

    @pytest.mark.parametrize(
        ("code", "words"), [(2, "smaller batch"), (900, r"prepare\(\)"), (700, "failed while")]
    )
    def test_codes(self, monkeypatch, code, words):
        monkeypatch.setattr(driver, "library", lambda: None)
        monkeypatch.setattr(driver, "_message", lambda lib, code: f"CUDA error {code}")
        with pytest.raises(GpuError, match=words):
            driver.check(code, "launching")

    def test_older_gpu(self):
        old = object.__new__(driver.Device)
        old.capability, old.name = 75, "Old GPU"
        with pytest.raises(GpuError, match=r"sm_90 and newer, but Old GPU is sm_75.*arch='sm_75'"):
            old.require("sm_90")


class FakeArray:
    """An array that claims to lie on a GPU: address, shape and strides of a NumPy array."""

    def __init__(self, array, device=(2, 0)):
        self.array, self.device = array, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


class FakeDevice:
    index = 0


@pytest.fixture
def function(bundle, monkeypatch):
    """A function whose launches are prepared but never happen."""
    monkeypatch.setattr(driver, "library", lambda: None)
    monkeypatch.setattr(driver, "device", lambda index: FakeDevice())
    monkeypatch.setattr(GpuFunction, "kernel", lambda self, device, layout: None)
    return load(bundle)


def batch(n=10, dtype=np.float32):
    return FakeArray(np.zeros((n, 7), dtype))


def launch(function, *arguments, out=None, stream=None, states_last=False):
    return Launch(function, arguments, out, stream, states_last)


def outs(*shapes):
    return tuple(FakeArray(np.zeros(shape, np.float32)) for shape in shapes)


class TestCalls:
    def shapes(self, function, *batch):
        return [(*batch, *a.shape) for a in function.outputs]

    def test_layouts(self, function):
        out = outs(*self.shapes(function, 10))
        assert launch(function, batch(), batch(), out=out).layout == "rows"
        columns = [FakeArray(np.zeros((7, 10), np.float32).T) for _ in range(2)]
        assert launch(function, *columns, out=out).layout == "columns"
        last = [FakeArray(np.zeros((7, 10), np.float32)) for _ in range(2)]
        out = outs(*[(*a.shape, 10) for a in function.outputs])
        prepared = launch(function, *last, out=out, states_last=True)
        assert prepared.layout == "columns" and prepared.states == 10

    def test_one_state_and_shared_argument(self, function):
        one = FakeArray(np.zeros(7, np.float32))
        out = outs(*self.shapes(function))
        assert launch(function, one, one, out=out).states == 1
        out = outs(*self.shapes(function, 10))
        assert launch(function, batch(), one, out=out).states == 10

    def test_strides_reach_the_kernel(self, function):
        wide = FakeArray(np.zeros((10, 20), np.float32)[:, 3:10])
        prepared = launch(function, wide, batch(), out=outs(*self.shapes(function, 10)))
        assert prepared.memory[2] == 20 and prepared.memory[3] == 1
        assert prepared.memory[len(prepared.memory) - 1] == 10

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (lambda: (batch(),), "takes 2 arguments"),
            (lambda: (np.zeros((4, 7), np.float32), batch()), "'q'.*CPU's memory"),
            (lambda: (batch(), np.zeros((10, 7), np.float32)), "'v'.*CPU's memory"),
            (lambda: ([1.0] * 7, batch()), "'q' is an object of type list"),
            (lambda: (batch(dtype=np.float64), batch()), "dtype float64.*float32"),
            (lambda: (batch(10), batch(11)), "holds 11 states, but 'q' holds 10"),
            (lambda: (FakeArray(np.zeros((4, 6), np.float32)), batch()), r"expected \(7,\), or"),
            (lambda: (batch(), FakeArray(np.zeros((10, 7), np.float32), (2, 1))), "on GPU 1"),
            (lambda: (FakeArray(np.zeros((4, 7), np.float32), (10, 0)), batch()), "kind 10"),
        ],
    )
    def test_bad_arguments(self, function, arguments, words):
        with pytest.raises(InputError, match=words):
            launch(function, *arguments(), out=outs(*self.shapes(function, 10)))

    def test_bad_outputs(self, function):
        first, *rest = self.shapes(function, 10)
        with pytest.raises(InputError, match="give out="):
            launch(function, batch(), batch())
        with pytest.raises(InputError, match="out must be"):
            launch(function, batch(), batch(), out=outs(first, *rest, first))
        with pytest.raises(InputError, match="has shape"):
            launch(function, batch(), batch(), out=outs((11, *first[1:]), *rest))
        shared = FakeArray(np.zeros((10, 7), np.float32))
        inside = FakeArray(shared.array.ravel()[: int(np.prod(first))].reshape(first))
        with pytest.raises(InputError, match="overlaps argument"):
            launch(function, shared, batch(), out=(inside, *outs(*rest)))

    @pytest.mark.parametrize("stream", ["s", 1.5, True, -1, object()])
    def test_bad_streams(self, function, stream):
        with pytest.raises(InputError, match="stream is an object of type"):
            launch(function, batch(), batch(), stream=stream)

    def test_streams(self):
        class Torch:
            cuda_stream = 7

        class CuPy:
            ptr = 8

        class Protocol:
            def __cuda_stream__(self):
                return (0, 9)

        assert [dlpack.stream_handle(s) for s in (5, Torch(), CuPy(), Protocol())] == [5, 7, 8, 9]

    def test_gradients_are_not_dropped_silently(self, function):
        value = batch()
        value.requires_grad = True
        with pytest.raises(InputError, match="detach"):
            launch(function, value, batch())


class Tensor:
    """As much of torch's as a call looks at, over a NumPy array."""

    __module__ = "torch"
    is_cuda, requires_grad = True, False

    class _Device:
        index = 0

    device = _Device()

    def __init__(self, array):
        self.array, self.dtype = array, f"torch.{array.dtype}"
        self.shape, self.ndim = array.shape, array.ndim

    def stride(self):
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def data_ptr(self):
        return self.array.ctypes.data

    def __getitem__(self, key):
        return Tensor(self.array[key])


class TestRepeatedCalls:
    """A call of a known kind skips the checks, not what they protect from."""

    @pytest.fixture
    def f(self, monkeypatch):
        from .fake_gpu import install

        self.kernel = install(monkeypatch)
        self.streams = []
        monkeypatch.setattr(dlpack, "current_stream", lambda value, device: (7, True))
        monkeypatch.setattr(
            dlpack, "empty", lambda like, shape, dtype, device: Tensor(np.full(shape, np.nan))
        )
        self.model = gb.robots.load("arm7")
        return gb.compile(gb.forward_dynamics, self.model, target="cuda")

    def arrays(self, n, seed=0):
        rng = np.random.default_rng(seed)
        return [rng.normal(size=(n, 7)) for _ in range(3)]

    def test_other_addresses_same_kind(self, f, monkeypatch):
        cpu = gb.compile(gb.forward_dynamics, self.model)
        made = []
        original = Launch.__init__
        monkeypatch.setattr(
            Launch, "__init__", lambda self, *a: (made.append(1), original(self, *a))[0] and None
        )
        for seed in range(4):
            given = self.arrays(5, seed)
            found = f(*map(Tensor, given))
            np.testing.assert_allclose(found.array, cpu(*given), rtol=1e-12)
            out = Tensor(np.zeros((5, 7)))
            assert f(*map(Tensor, given), out=out) is out
            np.testing.assert_allclose(out.array, cpu(*given), rtol=1e-12)
        assert len(made) == 2  # with out= and without
        given = self.arrays(9)
        np.testing.assert_allclose(f(*map(Tensor, given)).array, cpu(*given), rtol=1e-12)
        columns = [np.ascontiguousarray(x.T) for x in given]
        found = f.structure_of_arrays(*map(Tensor, columns))
        np.testing.assert_allclose(found.array.T, cpu(*given), rtol=1e-12)
        assert len(made) == 4

    def test_still_refused(self, f):
        given = [Tensor(x) for x in self.arrays(5)]
        out = Tensor(np.zeros((5, 7)))
        f(*given, out=out)
        with pytest.raises(InputError, match="overlaps argument 'tau'"):
            f(*given, out=given[2])
        need = Tensor(given[2].array)
        need.requires_grad = True
        with pytest.raises(InputError, match="gradient"):
            f(*given[:2], need, out=out)
        with pytest.raises(InputError, match="shape"):
            f(*given, out=Tensor(np.zeros((4, 7))))
        with pytest.raises(InputError, match="dtype float32"):
            f(*given[:2], Tensor(given[2].array.astype(np.float32)), out=out)

    def test_memory_of_kinds_is_bounded(self, f):
        for n in range(1, 300):
            f(*[Tensor(np.zeros((n, 7))) for _ in range(3)])
        assert len(f._repeats) <= 256


def test_a_kernel_for_branches_follows(monkeypatch):
    """Both are launched on the same arguments, each with blocks for its own number of states."""
    launched = []

    def launch(handle, blocks, *rest):
        launched.append((handle, blocks, rest[2], rest[5], rest[7]))
        return 0

    monkeypatch.setattr(driver, "library", lambda: SimpleNamespace(cuLaunchKernel=launch))
    monkeypatch.setattr(driver, "_current_context", lambda: 7)
    module = SimpleNamespace(device=SimpleNamespace(context=SimpleNamespace(value=7)))
    first = driver.Kernel(module, "columns", {"block": 128, "shared": 64, "states": 128})
    first.then = driver.Kernel(module, "seldom", {"block": 64, "shared": 16, "states": 2048})
    first.launch(5000, "arguments", 0)
    assert launched == [("columns", 40, 128, 64, "arguments"), ("seldom", 3, 64, 16, "arguments")]
