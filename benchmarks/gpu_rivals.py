"""The same tree through JAX and torch: an articulated-body algorithm written for them.

Runs on the GPU machine, with NumPy and one of the two. Bodies are unrolled and constants baked in,
as a user of either would write it for speed; the 6x6 products once as matrix products and once as
multiply-and-sum, which the compilers of both can fuse.

    python gpu_rivals.py FOLDER jax-matmul N
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np


class Library:
    """The few functions that differ between NumPy, JAX and torch."""

    def __init__(self, name: str, fused: bool):
        self.fused = fused
        if name == "torch":
            import torch

            self.xp, self.concatenate, self.stack = torch, torch.cat, torch.stack
            self.constant = lambda x: torch.tensor(x, dtype=torch.float32, device="cuda")
        elif name == "jax":
            import jax.numpy as xp

            self.xp, self.concatenate, self.stack = xp, xp.concatenate, xp.stack
            self.constant = lambda x: xp.asarray(x, dtype=xp.float32)
        else:
            self.xp, self.concatenate, self.stack = np, np.concatenate, np.stack
            self.constant = np.asarray

    def mm(self, a, b):
        return (a[:, :, None] * b[None, :, :]).sum(1) if self.fused else a @ b

    def mv(self, a, x):
        return (a * x[None, :]).sum(1) if self.fused else a @ x


def cross(lib, a, b):
    return lib.stack([
        a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0],
    ])  # fmt: skip


def cross_motion(lib, v, m):
    w, u = v[:3], v[3:]
    return lib.concatenate([cross(lib, w, m[:3]), cross(lib, w, m[3:]) + cross(lib, u, m[:3])])


def cross_force(lib, v, f):
    w, u = v[:3], v[3:]
    return lib.concatenate([cross(lib, w, f[:3]) + cross(lib, u, f[3:]), cross(lib, w, f[3:])])


def rotation(lib, axis: int, angle):
    """Coordinates of the parent to those of a body turned about an axis."""
    c, s = lib.xp.cos(angle), lib.xp.sin(angle)
    one, zero = c * 0 + 1, c * 0
    rows = {
        0: [one, zero, zero, zero, c, s, zero, -s, c],
        1: [c, zero, -s, zero, one, zero, s, zero, c],
        2: [c, s, zero, -s, c, zero, zero, zero, one],
    }[axis]
    return lib.stack(rows).reshape(3, 3)


def base_rotation(lib, h):
    w, x, y, z = h[0], h[1], h[2], h[3]
    rows = [
        1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y),
        2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x),
        2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y),
    ]  # fmt: skip
    return lib.stack(rows).reshape(3, 3)


def spatial(lib, E, r):
    """The 6x6 motion transform of a rotation E after a translation r."""
    skew = lib.constant([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    zero = E * 0
    top = lib.concatenate([E, zero], 1)
    return lib.concatenate([top, lib.concatenate([-lib.mm(E, skew), E], 1)], 0)


def solve(lib, A, b):
    """Symmetric 6x6 by an unrolled L D L^T."""
    n = 6
    L, D = [[None] * n for _ in range(n)], [None] * n
    for j in range(n):
        D[j] = A[j, j] - sum(L[j][k] * L[j][k] * D[k] for k in range(j))
        for i in range(j + 1, n):
            L[i][j] = (A[i, j] - sum(L[i][k] * L[j][k] * D[k] for k in range(j))) / D[j]
    y = []
    for i in range(n):
        y.append(b[i] - sum(L[i][k] * y[k] for k in range(i)))
    x = [y[i] / D[i] for i in range(n)]
    for i in reversed(range(n)):
        x[i] = x[i] - sum(L[k][i] * x[k] for k in range(i + 1, n))
    return lib.stack(x)


def aba(lib, robot, q, v, tau):
    """Forward dynamics of a floating tree of revolute joints, one state."""
    bodies = robot["bodies"]
    number = len(bodies)
    inertia = [lib.constant(b["inertia"]) for b in bodies]
    base = base_rotation(lib, q[3:7])
    X, V, C = [None] * number, [v[:6]] + [None] * (number - 1), [None] * number
    IA, pA = list(inertia), [None] * number
    pA[0] = cross_force(lib, V[0], lib.mv(inertia[0], V[0]))
    for i in range(1, number):
        b = bodies[i]
        k, p = b["axis"], b["parent"]
        E = lib.mm(rotation(lib, k, q[6 + i]), lib.constant(b["E"]))
        X[i] = spatial(lib, E, b["r"])
        unit = lib.constant(np.eye(6)[k])
        joint = unit * v[5 + i]
        V[i] = lib.mv(X[i], V[p]) + joint
        C[i] = cross_motion(lib, V[i], joint)
        pA[i] = cross_force(lib, V[i], lib.mv(inertia[i], V[i]))
    U, D, u = [None] * number, [None] * number, [None] * number
    for i in reversed(range(1, number)):
        k, p = bodies[i]["axis"], bodies[i]["parent"]
        U[i] = IA[i][:, k]
        D[i] = 1.0 / U[i][k]
        u[i] = tau[5 + i] - pA[i][k]
        Ia = IA[i] - U[i][:, None] * U[i][None, :] * D[i]
        pa = pA[i] + lib.mv(Ia, C[i]) + U[i] * (D[i] * u[i])
        IA[p] = IA[p] + lib.mm(X[i].T, lib.mm(Ia, X[i]))
        pA[p] = pA[p] + lib.mv(X[i].T, pa)
    a = [solve(lib, IA[0], tau[:6] - pA[0])] + [None] * (number - 1)
    gravity = lib.mv(base, lib.constant(robot["gravity"]))
    qdd = [a[0] + lib.concatenate([gravity * 0, gravity])]
    for i in range(1, number):
        k, p = bodies[i]["axis"], bodies[i]["parent"]
        moved = lib.mv(X[i], a[p]) + C[i]
        qddi = D[i] * (u[i] - (U[i] * moved).sum())
        a[i] = moved + lib.constant(np.eye(6)[k]) * qddi
        qdd.append(qddi.reshape(1))
    return lib.concatenate(qdd)


def tape_in_jax(lines, outputs, q, v, tau):
    """The compiler's own instructions as operations on whole batches, for XLA to fuse."""
    import jax.numpy as xp

    given, values = (q.T, v.T, tau.T), []
    binary = {"add": xp.add, "sub": xp.subtract, "mul": xp.multiply, "div": xp.divide}
    for op, *a in lines:
        if op == "const":
            values.append(np.float32(a[0]))
        elif op == "input":
            values.append(given[a[0]][a[1]])
        elif op in binary:
            values.append(binary[op](values[a[0]], values[a[1]]))
        elif op == "neg":
            values.append(-values[a[0]])
        else:
            values.append(getattr(xp, op)(values[a[0]]))
    return xp.stack([values[k] for k in outputs], -1)


def run_jax(folder: Path, kind: str, states, robot):
    import jax

    jax.config.update("jax_default_matmul_precision", "highest")
    if kind == "tape":
        tape = json.loads((folder / "tree_tape.json").read_text())
        fn = jax.jit(lambda q, v, t: tape_in_jax(tape["lines"], tape["outputs"], q, v, t))
    else:
        lib = Library("jax", kind == "fused")
        fn = jax.jit(jax.vmap(lambda q, v, t: aba(lib, robot, q, v, t)))
    states = [jax.device_put(x) for x in states]
    return lambda: fn(*states), jax.block_until_ready, np.asarray


def run_torch(kind: str, states, robot):
    import torch

    lib = Library("torch", "fused" in kind)
    fn = torch.func.vmap(lambda q, v, t: aba(lib, robot, q, v, t))
    if kind.startswith("compile"):
        fn = torch.compile(fn)
    states = [torch.from_numpy(x).cuda() for x in states]
    return lambda: fn(*states), lambda _: torch.cuda.synchronize(), lambda y: y.cpu().numpy()


def main() -> None:
    folder, variant, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    library, kind = variant.split("-", 1)
    robot = json.loads((folder / "tree.json").read_text())
    data = np.load(folder / "quadruped_forward_dynamics.npz")
    reference = data["out0"]
    repeats = -(-size // len(reference))
    states = [
        np.tile(data[k].astype(np.float32), (repeats, 1))[:size] for k in ("in0", "in1", "in2")
    ]
    start = time.perf_counter()
    if library == "jax":
        call, wait, fetch = run_jax(folder, kind, states, robot)
    else:
        call, wait, fetch = run_torch(kind, states, robot)
    out = call()
    wait(out)
    first = time.perf_counter() - start
    found = fetch(out)[: len(reference)]
    norm = np.linalg.norm(reference, axis=1)
    error = np.linalg.norm(found - reference, axis=1) / norm
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        wait(call())
        best = min(best, time.perf_counter() - start)
    print(json.dumps({
        "variant": variant, "states": size, "per_second": size / best, "first_call_s": first,
        "error_median": float(np.median(error)),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
