"""The GPU target without a GPU: PTX is made, and assembled where CUDA's assembler is present."""

import re
import shutil
import subprocess

import numpy as np
import pytest

import grubler as gb
from grubler.compiler import compile_function, iterate, otherwise
from grubler.compiler.backends.gpu.module import ARCHITECTURES, assemble, module
from grubler.compiler.backends.gpu.plans import alive, plans
from grubler.compiler.backends.gpu.ptx import Plan
from grubler.compiler.backends.gpu.registers import spills
from grubler.compiler.frontend.trace import trace
from grubler.compiler.ir.tape import evaluate, operands
from grubler.compiler.passes.seldom import usual
from grubler.compiler.passes.simplify import optimize
from grubler.compiler.runtime.cuda import compile_cuda

needs_ptxas = pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on this machine")


def assembled(ptx, folder, arch="sm_90"):
    """(registers, bytes spilled) of each kernel, by CUDA's own assembler."""
    path = folder / "code.ptx"
    path.write_text(ptx)
    done = subprocess.run(
        ["ptxas", f"-arch={arch}", "-v", "-o", str(folder / "code.cubin"), str(path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    parts = done.stderr.split("Compiling entry function")[1:]
    return {
        re.search(r"'(\w+)'", part)[1]: (
            int(re.search(r"Used (\d+) registers", part)[1]),
            int(re.search(r"(\d+) bytes spill stores", part)[1]),
        )
        for part in parts
    }


def newton(x, a):
    return x - 0.5 * (x - a / x), x * x - a


class TestCode:
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("robot", ["quadruped", "four_bar", "tello"])
    def test_robots_assemble(self, robot, dtype, tmp_path):
        model = gb.robots.load(robot)
        f = gb.compile(gb.forward_dynamics, model, target="cuda", dtype=dtype)
        text = f.ptx(0)
        assert ".target sm_90" in text and text.count(".entry") == 2
        if shutil.which("ptxas"):
            found = assembled(text, tmp_path)
            assert set(found) == {"columns", "rows"}
            if robot != "tello":
                assert max(spilled for _, spilled in found.values()) <= 64

    @needs_ptxas
    @pytest.mark.parametrize("tolerance", [None, 1e-6])
    def test_loops_assemble(self, tolerance, tmp_path):
        def root(a):
            step = newton if tolerance else lambda x, a: newton(x, a)[0]
            return iterate(step, a, a, count=20, tolerance=tolerance)

        assembled(compile_cuda(root, [(2,)], dtype="float32").ptx(0), tmp_path)

    @needs_ptxas
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_branches_assemble(self, dtype, tmp_path):
        model = gb.robots.load("quadruped")
        feet = tuple(gb.Constraint(f"{leg}_foot_contact", "point") for leg in ("HR", "FL"))
        f = gb.compile(
            gb.constrained_forward_dynamics, model, constraints=feet, method="pv_early",
            target="cuda", dtype=dtype,
        )  # fmt: skip
        assert set(assembled(f.ptx(0), tmp_path)) == {"columns", "rows", "seldom"} == {*f.frames(0)}

    def test_states_that_take_a_branch_are_marked(self):
        """What the first of two kernels computes: the same but for a NaN where a branch is taken,
        without anything that branches alone need."""

        def fn(x, y):
            root = otherwise(x[0] > 0.0, np.sqrt(x), lambda: np.exp(np.cos(x)))
            return np.zeros(0), otherwise(y[0] < 1.0, root + y, lambda: root * np.tanh(y))

        tape = optimize(trace(fn, [(2,), (2,)]))
        first = usual(tape)
        assert tape.branches and not first.branches and usual(first) is first
        assert not {"exp", "cos", "tanh"} & {instruction[0] for instruction in first.instructions}
        for x, y, marked in ((1.0, 0.0, False), (-1.0, 0.0, True), (1.0, 2.0, True)):
            given = np.array([x, 4.0]), np.array([y, 0.5])
            (_, found), (_, wanted) = evaluate(first, *given), evaluate(tape, *given)
            assert np.isnan(found[0]) == marked
            if not marked:
                np.testing.assert_array_equal(found, wanted)

    def test_a_branch_that_no_result_needs(self):
        def fn(x):
            otherwise(x[0] > 0.0, x, lambda: np.exp(x))
            return x * 2.0

        f = compile_cuda(fn, [2])
        assert set(f.frames(0)) == {"columns", "rows"} and f.ptx(0).count(".entry") == 2

    @pytest.mark.parametrize("staged", [False, True])
    def test_what_only_a_nested_branch_reads(self, staged, tmp_path):
        def fn(x, a, b):
            return otherwise(
                x[0] > 0.0, x, lambda: otherwise(a[0] > 0.0, a * x, lambda: np.exp(b) * a)
            )

        tape = optimize(trace(fn, [2, 2, 2]), chains=False)
        plan = Plan(staged=staged, values=8)
        ir, _ = module(tape, "float64", {"columns": plan, "rows": plan})
        text = assemble(ir, "sm_90", 0)
        if shutil.which("ptxas"):
            assembled(text, tmp_path)
        assert text.count(".entry") == 3

    @needs_ptxas
    @pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
    def test_architectures(self, arch, tmp_path):
        f = gb.compile(gb.energy, gb.robots.load("arm7"), target="cuda", arch=arch)
        assert f".target {arch}" in f.ptx(0)
        assembled(f.ptx(0), tmp_path, arch)

    def test_no_slow_divisions_in_fp32(self):
        f = gb.compile(
            gb.forward_dynamics, gb.robots.load("quadruped"), target="cuda", dtype="float32"
        )
        assert "div.rn" not in f.ptx(0) and "div.full" not in f.ptx(0)

    def test_fp64_is_never_contracted(self):
        """Products and sums carry their rounding: the assembler may not join them, and the bits
        are the CPU's."""
        f = gb.compile(gb.inverse_dynamics, gb.robots.load("arm7"), target="cuda")
        assert not re.search(r"\b(mul|add|sub)\.f64", f.ptx(0))


@pytest.fixture(scope="module")
def tape():
    model = gb.robots.load("quadruped")
    shapes = [(model.nq,), (model.nv,), (model.nv,)]
    return optimize(trace(lambda q, v, tau: gb.forward_dynamics(model, q, v, tau), shapes))


class TestRegisters:
    @pytest.mark.parametrize("registers", [40, 70, 100])
    def test_moves_bring_every_operand(self, tape, registers):
        """A machine with that many registers, stepped through: each operand is there."""
        plan = spills(tape, registers)
        held, memory = set(), {}
        last = {a: k for k, ins in enumerate(tape.instructions) for a in operands(ins)}
        for k, instruction in enumerate(tape.instructions):
            for action, value, slot in plan.before.get(k, ()):
                if action == "store":
                    assert value in held
                    memory[slot] = value
                    held.discard(value)
                else:
                    assert action == "read" or memory[slot] == value
                    held.add(value)
            for a in operands(instruction):
                assert a in held or tape.instructions[a][0] == "const"
            held = {a for a in held if last.get(a, -1) > k}
            held.add(k)
        assert plan.before
        assert plan.slots == max(slot for m in plan.before.values() for _, _, slot in m) + 1

    def test_no_moves_where_everything_fits(self, tape):
        assert spills(tape, 10_000).before == {}

    def test_fewer_registers_more_moves(self, tape):
        reloads = [spills(tape, n).reloads for n in (200, 150, 100, 60)]
        assert reloads == sorted(reloads)

    @needs_ptxas
    def test_plans_hold_what_they_promise(self, tape, tmp_path):
        plan = Plan(values=100, registers=128, shared=110)
        ir, frames = module(tape, "float32", {"columns": plan})
        found = assembled(assemble(ir, "sm_90", 0), tmp_path)
        assert found["columns"][0] <= 128 and found["columns"][1] == 0
        assert frames["columns"]["shared"] <= 110 * 128 * 4

    @pytest.mark.parametrize(("size", "rows"), [(100, 128), (500, 32), (5000, None)])
    def test_large_outputs(self, size, rows):
        """What does not fit a block's shared memory goes by smaller blocks, then by columns."""
        large = optimize(trace(lambda x: np.outer(x, x).ravel()[:size], [(80,)]))
        tried = plans(large, "float64")
        assert (tried[0]["rows"].block if "rows" in tried[0] else None) == rows
        for pair in tried:
            frames = module(large, "float64", pair)[1]
            assert all(frame["shared"] <= 227 * 1024 for frame in frames.values())

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_blocks_fit_a_multiprocessor(self, tape, dtype):
        assert alive(tape) > 100
        for pair in plans(tape, dtype):
            frames = module(tape, dtype, pair)[1]
            assert all(frame["shared"] <= 227 * 1024 for frame in frames.values())


class TestInterface:
    def test_unknown_names(self):
        model = gb.robots.load("arm7")
        with pytest.raises(gb.InputError, match="target"):
            gb.compile(gb.energy, model, target="cud")
        with pytest.raises(gb.InputError, match="architecture"):
            gb.compile(gb.energy, model, target="cuda", arch="sm_70")
        with pytest.raises(gb.InputError, match="dtype"):
            gb.compile(gb.energy, model, target="cuda", dtype="float16")
        with pytest.raises(gb.InputError, match="lanes"):
            gb.compile(gb.energy, model, target="cuda", lanes=4)
        with pytest.raises(gb.InputError, match="arch"):
            gb.compile(gb.energy, model, arch="sm_90")
        assert "sm_90" in ARCHITECTURES

    def test_tape_and_signature(self):
        model = gb.robots.load("arm7")
        f = gb.compile(gb.inverse_dynamics, model, target="cuda", dtype="float32")
        assert f.dtype == "float32" and f.arch == "sm_90"
        assert [a.name for a in f.inputs] == ["q", "v", "a"]
        assert f.operations.total > 100 and "sm_90" in repr(f)

    def test_ptx_from_the_cache(self, tmp_path, monkeypatch):
        monkeypatch.setenv("GRUBLER_CACHE_DIR", str(tmp_path))
        model = gb.robots.load("arm7")
        first = gb.compile(gb.energy, model, target="cuda").ptx(0)
        monkeypatch.setattr(
            "grubler.compiler.backends.gpu.module.assemble", None
        )  # would fail if called
        assert gb.compile(gb.energy, model, target="cuda").ptx(0) == first

    def test_gpu_array_for_cpu_code(self):
        class OnGpu:
            def __dlpack_device__(self):
                return 2, 0

        f = compile_function(lambda x: x + 1.0, [(2,)])
        with pytest.raises(gb.InputError, match="lies on a GPU"):
            f(OnGpu())
