"""What the GPU runtime promises about arrays, streams, graphs and errors, tried one by one."""

from __future__ import annotations

import time
import traceback

import numpy as np

N = 1000


def checks(folder) -> dict[str, str]:
    """The name of each check and "ok", or what went wrong."""
    context = Context(folder)
    results = {}
    for name, check in CHECKS.items():
        try:
            said = check(context)
            results[name] = said if isinstance(said, str) else "ok"
        except Exception as error:
            results[name] = f"FAILED: {type(error).__name__}: {str(error)[:200]}"
            traceback.print_exc()
        print("  ", name, ":", results[name], flush=True)
    return results


class Context:
    def __init__(self, folder):
        import grubler_bundle

        self.folder = folder

        self.bundle = grubler_bundle
        self.f = grubler_bundle.load("mini_cheetah_forward_dynamics_float32")
        self.g = grubler_bundle.load("mini_cheetah_forward_dynamics_float64")
        data = np.load(folder / "mini_cheetah_forward_dynamics.npz")
        self.given = [data[f"in{i}"][:N].astype(np.float32) for i in range(3)]
        self.wanted = data["out0"][:N]

    def right(self, found) -> None:
        error = np.abs(np.asarray(found) - self.wanted).max() / np.abs(self.wanted).max()
        assert error < 1e-4, f"error {error}"


def torch_rows(c):
    import torch

    states = [torch.from_numpy(x).cuda() for x in c.given]
    out = c.f(*states)
    assert isinstance(out, torch.Tensor) and out.shape == (N, 18)
    c.right(out.cpu())
    into = torch.zeros_like(out)
    assert c.f(*states, out=into) is into
    c.right(into.cpu())


def torch_columns(c):
    import torch

    states = [torch.from_numpy(x.T.copy()).cuda() for x in c.given]
    out = c.f.structure_of_arrays(*states)
    assert out.shape == (18, N)
    c.right(out.cpu().T)
    c.right(c.f(*[x.T for x in states]).cpu())  # strided views of columns


def torch_stream(c):
    import torch

    states = [torch.from_numpy(x).cuda() for x in c.given]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        out = c.f(*states)
    side.synchronize()
    c.right(out.cpu())
    out = c.f(*states, stream=side)
    side.synchronize()
    c.right(out.cpu())


def torch_graph(c):
    import torch

    states = [torch.from_numpy(x).cuda() for x in c.given]
    c.f.prepare(0)
    out = torch.zeros((N, 18), device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c.f(*states, out=out)
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    c.right(out.cpu())


def cupy_arrays(c):
    import cupy

    states = [cupy.asarray(x) for x in c.given]
    out = c.f(*states)
    assert isinstance(out, cupy.ndarray)
    c.right(out.get())
    with cupy.cuda.Stream(non_blocking=True) as stream:
        out = c.f(*states)
        stream.synchronize()
    c.right(out.get())


def jax_arrays(c):
    import jax

    states = [jax.device_put(x) for x in c.given]
    out = c.f(*states)
    assert isinstance(out, jax.Array)
    c.right(out)


def mixed_libraries(c):
    import cupy
    import torch

    q, v, tau = c.given
    out = c.f(torch.from_numpy(q).cuda(), cupy.asarray(v), torch.from_numpy(tau).cuda())
    c.right(out.cpu())


def one_state_and_shared(c):
    import torch

    q, v, tau = (torch.from_numpy(x).cuda() for x in c.given)
    one = c.f(q[0], v[0], tau[0])
    assert one.shape == (18,) and np.allclose(one.cpu(), c.wanted[0], rtol=1e-3, atol=1e-2)
    shared = c.f(q, v, tau[0])
    same = c.f(q, v, tau[0].expand(N, 18).contiguous())
    assert torch.equal(shared, same)
    assert c.f(q[:0], v[:0], tau[:0]).shape == (0, 18)
    odd = c.f(q[:777], v[:777], tau[:777])
    assert torch.equal(odd, c.f(q, v, tau)[:777])


def columns_equal_rows(c):
    import torch

    states = [torch.from_numpy(x).double().cuda() for x in c.given]
    rows = c.g(*states)
    columns = c.g.structure_of_arrays(*[x.T.contiguous() for x in states])
    assert torch.equal(rows, columns.T)


def _cost(call, wait) -> float:
    """Microseconds of a call on the Python side."""
    for _ in range(20):
        call()
    wait()
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(200):
            call()
        best = min(best, (time.perf_counter() - start) / 200 * 1e6)
        wait()
    return best


def call_overhead_torch(c):
    import torch

    states = [torch.from_numpy(x).cuda() for x in c.given]
    out = torch.zeros((N, 18), device="cuda")
    bound = c.f.bind(*states, out=out)
    calls = (lambda: c.f(*states), lambda: c.f(*states, out=out), bound)
    costs = [_cost(call, torch.cuda.synchronize) for call in calls]
    c.right(out.cpu())
    return "{:.0f} µs a call, {:.0f} with out=, {:.0f} bound".format(*costs)


def call_overhead_cupy(c):
    import cupy

    states = [cupy.asarray(x) for x in c.given]
    out = cupy.zeros((N, 18), np.float32)
    bound = c.f.bind(*states, out=out)
    calls = (lambda: c.f(*states), lambda: c.f(*states, out=out), bound)
    costs = [_cost(call, cupy.cuda.Device().synchronize) for call in calls]
    c.right(out.get())
    return "{:.0f} µs a call, {:.0f} with out=, {:.0f} bound".format(*costs)


def repeated_calls(c):
    """The quick path of a second call keeps all promises of the first."""
    import torch

    q, v, tau = (torch.from_numpy(x).cuda() for x in c.given)
    c.right(c.f(q, v, tau).cpu())
    back = [x.flip(0).contiguous() for x in (q, v, tau)]
    c.right(c.f(*back).flip(0).cpu())  # other addresses
    out = torch.zeros((N, 18), device="cuda")
    c.f(q, v, tau, out=out)
    c.f(*back, out=out)
    c.right(out.flip(0).cpu())
    _refused(c.bundle.InputError, lambda: c.f(q, v, tau, out=tau), "overlaps")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        found = c.f(q, v, tau)
    side.synchronize()
    c.right(found.cpu())
    need = tau.clone().requires_grad_()
    return _refused(c.bundle.InputError, lambda: c.f(q, v, need), "gradient")


def every_operation(c):
    """Within the bounds that the CPU's code keeps to NumPy."""
    import cupy

    said = []
    for dtype in ("float32", "float64"):
        f = c.bundle.load(f"operations_{dtype}")
        data = np.load(c.folder / f"operations_{dtype}.npz")
        for i, array in enumerate(f.outputs):
            x, wanted, bound = (data[f"{array.name}_{k}"] for k in ("x", "result", "bound"))
            found = f(*[cupy.asarray(x[:, k : k + 1]) for k in range(3)])[i].get()[:, 0]
            with np.errstate(all="ignore"):
                good = np.abs(found.astype(float) - wanted.astype(float)) <= bound
            good |= (found == wanted) | (np.isnan(found) & np.isnan(wanted)) | np.isinf(bound)
            if not good.all():
                k = int(np.flatnonzero(~good)[0])
                said.append(f"{array.name} {dtype}: {x[k]} gives {found[k]}, not {wanted[k]}")
    assert not said, "; ".join(said)
    return f"ok: {len(f.outputs)} operations, two precisions"


def _simulation(c, batch=16):
    data = np.load(c.folder / "mini_cheetah_semi_implicit.npz")
    given = [data[f"in{i}"][:batch].astype(np.float32) for i in range(2)]
    simulation = c.bundle.load_simulation("mini_cheetah_semi_implicit_float32_1", batch=batch)
    return simulation, given


def simulation_controllers(c):
    """Python controllers of each library, against a table of the torques that they gave."""
    import cupy
    import jax
    import torch

    simulation, given = _simulation(c)
    starts = {
        "torch": [torch.from_numpy(x).cuda() for x in given],
        "cupy": [cupy.asarray(x) for x in given],
        "jax": [jax.device_put(x) for x in given],
    }
    costs, first = [], None
    for name, (q, v) in starts.items():
        run = simulation.run(q, v, lambda t, q, v: -0.3 * v + 0.1 * t, steps=30)
        start = time.perf_counter()
        run = simulation.run(q, v, lambda t, q, v: -0.3 * v + 0.1 * t, steps=30)
        costs.append(f"{name} {(time.perf_counter() - start) / 30 * 1e6:.0f} µs a step")
        _, Q, V, tau = run.numpy()
        wanted = (-0.3 * V[:-1] + 0.1 * run.time[:-1, None, None]).astype(np.float32)
        assert np.allclose(tau[:-1], wanted, rtol=1e-5, atol=1e-6)
        _, Q2, V2, _ = simulation.run(*given, tau[:-1], steps=30).numpy()
        assert np.array_equal(Q, Q2) and np.array_equal(V, V2)
        first = Q if first is None else first
        assert np.allclose(Q, first, rtol=1e-5, atol=1e-6)
    device = simulation.run(*starts["torch"], steps=3)
    assert torch.equal(torch.from_dlpack(device.q).cpu(), torch.from_numpy(device.q.numpy()))
    assert cupy.array_equal(cupy.from_dlpack(device.v), cupy.asarray(device.v.numpy()))
    table = torch.from_numpy(tau[:-1].astype(np.float32)).cuda()
    _, Q3, _, _ = simulation.run(*starts["torch"], table, steps=30).numpy()
    assert np.array_equal(Q3, Q)
    return "; ".join(costs)


def simulation_errors(c):
    import torch

    simulation, given = _simulation(c)
    q, v = (torch.from_numpy(x).cuda() for x in given)
    failed = c.bundle.SimulationError

    def lost(t, q, v):
        return torch.full_like(v, float("nan") if t > 0.0045 else 0.0)

    _refused(failed, lambda: simulation.run(q, v, lost, steps=9), "step 5", "not finite")
    wild = np.zeros((40, 16, 18))
    wild[7, 3] = 1e30
    _refused(failed, lambda: simulation.run(q, v, wild, steps=40), "blew up", "of robot 3")
    _refused(failed, lambda: simulation.run(q, v, lambda t, q, v: v[0, :3], steps=2), "shape")
    _refused(failed, lambda: simulation.run(q, v, lambda t, q, v: given[1], steps=2), "GPU")
    cpu = [torch.from_numpy(x) for x in given]
    _refused(c.bundle.InputError, lambda: simulation.run(*cpu, steps=2), "CPU's memory")
    return _refused(c.bundle.InputError, lambda: simulation.run(q, given[1], steps=2), "'v'", "GPU")


def _refused(error, call, *words) -> str:
    try:
        call()
    except error as raised:
        missing = [w for w in words if w not in str(raised)]
        assert not missing, f"{raised} does not say {missing}"
        return "ok"
    raise AssertionError("no error")


def cpu_array(c):
    return _refused(c.bundle.InputError, lambda: c.f(*c.given), "'q'", "CPU's memory")


def wrong_dtype(c):
    import torch

    states = [torch.from_numpy(x).double().cuda() for x in c.given]
    return _refused(c.bundle.InputError, lambda: c.f(*states), "float64", "float32")


def wrong_stream(c):
    import torch

    states = [torch.from_numpy(x).cuda() for x in c.given]
    return _refused(c.bundle.InputError, lambda: c.f(*states, stream="s"), "stream", "str")


def mixed_devices(c):
    import torch

    q, v, tau = (torch.from_numpy(x) for x in c.given)
    return _refused(c.bundle.InputError, lambda: c.f(q.cuda(), v, tau.cuda()), "'v'")


def overlapping_out(c):
    import torch

    q, v, tau = (torch.from_numpy(x).cuda() for x in c.given)
    return _refused(c.bundle.InputError, lambda: c.f(q, v, tau, out=tau), "overlaps")


def newer_architecture(c):
    from grubler_gpu import driver

    there = driver.device(0)
    return _refused(c.bundle.GpuError, lambda: there.require("sm_999"), "sm_999", there.name)


def broken_code(c):
    from grubler_gpu import driver

    there = driver.device(0)
    text = ".version 8.3\n.target sm_90\n.address_size 64\nnonsense"
    return _refused(c.bundle.GpuError, lambda: driver.Module(there, text, "sm_80"), "assemble")


def out_of_memory(c):
    import torch

    q, v, tau = (torch.from_numpy(x[:1]).cuda() for x in c.given)
    many = 1_800_000_000  # states whose accelerations alone take 130 GB
    states = [x.expand(many, -1) for x in (q, v)]
    hog = torch.empty(80 << 30, dtype=torch.uint8, device="cuda")
    try:
        return _refused((c.bundle.GpuError, RuntimeError), lambda: c.f(*states, tau[0]), "memory")
    finally:
        del hog
        torch.cuda.empty_cache()


CHECKS = {
    "torch (N, n), out=": torch_rows,
    "torch (n, N) and strided views": torch_columns,
    "torch on another stream, stream=": torch_stream,
    "captured in a CUDA graph": torch_graph,
    "CuPy, current stream": cupy_arrays,
    "JAX": jax_arrays,
    "torch and CuPy together": mixed_libraries,
    "one state, an argument shared by all, none, odd batches": one_state_and_shared,
    "(N, n) and (n, N) give the same bits in fp64": columns_equal_rows,
    "cost of a call from Python, torch": call_overhead_torch,
    "cost of a call from Python, CuPy": call_overhead_cupy,
    "calls of a known kind": repeated_calls,
    "every operation within the CPU's bounds": every_operation,
    "simulation: controllers of torch, CuPy, JAX": simulation_controllers,
    "simulation: errors": simulation_errors,
    "error: array in the CPU's memory": cpu_array,
    "error: dtype": wrong_dtype,
    "error: stream of a wrong type": wrong_stream,
    "error: arguments on different devices": mixed_devices,
    "error: out overlaps an argument": overlapping_out,
    "error: GPU older than the code": newer_architecture,
    "error: code that cannot be assembled": broken_code,
    "error: out of memory": out_of_memory,
}
