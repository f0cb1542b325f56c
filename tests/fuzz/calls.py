"""Wrong calls: public functions with arguments of wrong kinds, shapes and values.

Each call must return, or raise a GrublerError. Python's own TypeError for a wrong number or name of
arguments is right, too, and an ImportError that names a missing package. Anything else is a
finding: another error, a crash of the process, or more than 10 s of CPU time.

    python tests/fuzz/calls.py --count 20000 --seed 1
    python tests/fuzz/calls.py --hours 2 --state /tmp/calls.json      # goes on where it stopped
    python tests/fuzz/calls.py --only 1234 --seed 1                   # one call, with its traceback

Call number i of a seed is the same in every run. Functions come from the table of public names.
"""

from __future__ import annotations

import argparse
import inspect
import io
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import numpy as np

import grubler as gb

CPU_SECONDS = 10
SMALL = ("four_bar", "six_bar", "arm7", "parallel_four_bar")
LARGE = ("quadruped", "loop_sampler", "joint_sampler")  # of every kind of joint and loop, and slow
MODELS = 10 * SMALL + LARGE
LEFT_OUT = {"view", "gpu", "robots", "convert", "Simulator", "Trajectory", "Passive", "Report"}
MODULES = ("robots", "convert")
METHODS = {
    "ModelBuilder": (
        "add_body", "add_joint", "add_loop", "add_coupling", "add_constraint", "add_frame",
        "add_actuator", "add_shape", "exclude_contact", "allow_contact", "add_model", "build",
    ),
    "Model": (
        "body", "joint", "body_of_joint", "frame", "pack", "unpack", "assemble", "check_closed",
        "loop_gap", "integrate", "repartition", "random_state",
    ),
    "compiled": ("__call__", "bind", "structure_of_arrays", "prepare"),
}  # fmt: skip

load = cache(gb.robots.load)


@cache
def compiled(name: str):
    return gb.compile(gb.forward_dynamics, load(name))


class Call:
    """Call number `index` of a seed: what is called, and with which arguments."""

    def __init__(self, seed: int, index: int):
        self.rng = np.random.default_rng([seed, index])
        self.name = self.pick(MODELS)
        self.model = load(self.name)
        self.q, self.v = self.model.random_state(0)
        self.label, self.fn = self.pick(targets())
        self.fn = self.fn(self) if isinstance(self.fn, partial) else self.fn
        self.arguments, self.options = self.drawn()

    def pick(self, options):
        options = list(options)
        return options[self.rng.integers(len(options))]

    def drawn(self) -> tuple[list, dict]:
        """Arguments for the signature: most are right, at least one is wrong."""
        try:
            parameters = list(inspect.signature(self.fn).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        kinds = inspect.Parameter
        chosen = []
        for p in parameters:
            if p.kind is kinds.VAR_POSITIONAL:
                names = ("q", "v", "tau") if self.label.startswith("compiled") else ()
                chosen += [(kinds.POSITIONAL_ONLY, name) for name in names]
            elif p.kind is not kinds.VAR_KEYWORD and (
                p.default is kinds.empty or self.rng.random() < 0.35
            ):
                chosen.append((p.kind, p.name))
        wrong = set(
            self.rng.integers(max(1, len(chosen)), size=self.pick([1, 1, 1, 2, 3])).tolist()
        )
        arguments, options = [], {}
        for i, (kind, name) in enumerate(chosen):
            value = self.wrong(name) if i in wrong else self.right(name)
            if kind in (kinds.KEYWORD_ONLY,) or options or (i and self.rng.random() < 0.2):
                options[name] = value
            else:
                arguments.append(value)
        if self.label.startswith("compiled"):
            arguments, options = [*arguments, *options.values()], {}
        if self.rng.random() < 0.03:
            options[self.pick(["nonsense", "method", "frames", "dtype", "n"])] = self.any()
        return arguments, options

    def right(self, name: str):
        m = self.model
        values = {
            "model": m, "q": self.q, "v": self.v, "a": self.v, "tau": np.ones(m.nv),
            "fn": self.pick([gb.forward_dynamics, gb.mass_matrix, gb.energy, gb.inverse_dynamics]),
            "frame": m.bodies[-1].name, "frames": [m.bodies[-1].name], "constraints": [],
            "q_guess": self.q, "body": m.bodies[0].name, "compiled": compiled(self.name),
            "b": np.ones(6), "torques": np.ones(m.nv_span), "positions": {}, "velocities": None,
            "efforts": np.zeros(len(m.actuators)), "method": self.pick(["auto", "projected"]),
            "parameters": ["mass"], "dtype": "float32", "inputs": ["q"], "shapes": {},
            "name": self.pick(["a", "four_bar"]), "folder": tempfile.gettempdir() + "/wrong_calls",
            "path": tempfile.gettempdir() + "/wrong_calls.urdf", "values": {"mass": m_mass(m)},
            "kind": "revolute", "parent": "world", "child": "a", "mass": 1.0, "dt": 0.01,
            "inertia": (1, 0, 0, 1, 0, 1), "joint": m.joints[0].name, "rows": "weld",
            "primary": m, "closures": (), "first": ("primary", m.bodies[-1].name), "count": 3,
            "step": lambda x: 0.5 * x, "state": np.ones(3), "ok": True, "seed": 1, "key": "k",
        }  # fmt: skip
        return values[name] if name in values else self.any()

    def wrong(self, name: str):
        near = self.right(name) if self.rng.random() < 0.6 else None
        if isinstance(near, np.ndarray):
            return self.spoilt(near)
        if isinstance(near, str):
            return self.pick(
                [
                    near + "x",
                    near[:-1],
                    near.upper(),
                    [near],
                    near.encode(errors="replace"),
                    (near, 7),
                ]
            )
        if isinstance(near, gb.Model):
            return self.pick([near.name, near.bodies, None, load(self.pick(MODELS)), gb.Model])
        return self.any()

    def spoilt(self, x):
        other = load(self.pick(MODELS))
        changes = (
            lambda: x[:-1], lambda: np.append(x, 1.0), lambda: x[:, None], lambda: x[None],
            lambda: x + 1j, lambda: x * np.nan, lambda: x * np.inf, lambda: x * 1e300,
            lambda: x * 0, lambda: x.astype(object), lambda: x.astype(str), lambda: x > 0,
            lambda: x.astype(np.float16), lambda: list(x), lambda: dict(enumerate(x)),
            lambda: np.array([]), lambda: np.ma.array(x, mask=True), other.neutral,
            lambda: x.astype(">f8"), lambda: np.zeros((3, *x.shape)), lambda: memoryview(x),
            lambda: np.broadcast_to(1.0, x.shape), lambda: x[::-1], lambda: x.astype("U3"),
            lambda: [[1.0], [1.0, 2.0]], lambda: [*x.tolist()[:-1], "x"], lambda: 10.0 * x,
            lambda: np.full(x.shape, None), lambda: x.astype(np.longdouble),
        )  # fmt: skip
        try:
            return self.pick(changes)()
        except (TypeError, ValueError, IndexError):  # of an array that is no array of numbers
            return x[..., None]

    def any(self):
        values = (
            None, True, -1, 0, 7, 3.5, float("nan"), float("inf"), 1e308, 10**400, "x", "", "world",
            b"x", [], {}, (), object(), print, 1j, set(), {"x": 1.0}, {1: 2}, [None], ["x"],
            ("x", "x"), [["x", (9,)]], np.zeros(3), np.zeros((0, 6)), np.full(4, np.nan),
            np.zeros((2, 2, 2)), [[]],
            np.array("x"), np.array(None), np.array([object()]), np.datetime64("2020"), range(3),
            Fraction(1, 3), lambda *_: None, gb.Model, np, "\ud800", "a" * 10_000, "\0",
            iter([1.0]),
            np.float32(2), np.array(2.0), [10**400], {"mass": "x"}, {"mass": np.ones(2)}, -1e-300,
            self.model, self.q, self.v, [self.model], {"x": self.model}, (self.model.name, 3),
            gb.Constraint("x"), [gb.Constraint(self.model.bodies[-1].name, "x")],
            [(self.model.bodies[-1].name, (7, "x"))], {self.model.bodies[0].name: "x"},
            {self.model.bodies[0].name: np.zeros(5)}, {self.model.joints[0].name: np.zeros(9)},
            {self.model.joints[0].name: None}, [self.model.joints[0].name],
            self.model.joints[0].name,
        )  # fmt: skip
        return values[self.rng.integers(len(values))]

    def __str__(self) -> str:
        given = [shown(x) for x in self.arguments]
        given += [f"{k}={shown(x)}" for k, x in self.options.items()]
        return f"{self.label}({', '.join(given)}) on {self.name}"


def m_mass(model):
    return gb.parameter_values(model, "mass")


def shown(x) -> str:
    text = repr(x)
    return ascii(text if len(text) < 70 else text[:60] + " ...")


@cache
def targets() -> tuple:
    """(label, function) of everything that is called; partials make one for the call's model."""
    found = []
    for name in gb.__all__:
        value = getattr(gb, name)
        is_error = isinstance(value, type) and issubclass(value, Exception)
        if name not in LEFT_OUT and callable(value) and not is_error and name != "Model":
            found.append((name, value))
    for module in MODULES:
        space = getattr(gb, module)
        for name in getattr(space, "__all__", [n for n in dir(space) if not n.startswith("_")]):
            value = getattr(space, name)
            if inspect.isfunction(value) and module in value.__module__:
                found.append((f"{module}.{name}", value))
    found += [(f"ModelBuilder.{n}", partial(of_builder, n)) for n in METHODS["ModelBuilder"]]
    found += [(f"Model.{n}", partial(of_model, n)) for n in METHODS["Model"]]
    found += [(f"compiled.{n}", partial(of_compiled, n)) for n in METHODS["compiled"]]
    return tuple(found)


def of_builder(method: str, call: Call):
    b = gb.ModelBuilder("robot")
    b.add_body("a", 1.0, inertia=(1, 0, 0, 1, 0, 1))
    b.add_body("b", 1.0, inertia=(1, 0, 0, 1, 0, 1))
    b.add_joint("j", "revolute", "a", "b")
    return getattr(b, method)


def of_model(method: str, call: Call):
    return getattr(call.model, method)


def of_compiled(method: str, call: Call):
    return getattr(compiled(call.name), method)


class TooLong(BaseException):
    pass


def _too_long(*_):
    raise TooLong


def outcome(call: Call) -> str | None:
    """What is wrong with how a call ended, or None."""
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        with (
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            call.fn(*call.arguments, **call.options)
    except (gb.GrublerError, ImportError):
        return None
    except TooLong:
        return f"more than {CPU_SECONDS} s"
    except TypeError as error:
        inner = traceback.extract_tb(error.__traceback__)[-1]
        if inner.name in ("outcome", "explained"):  # of the call itself
            return None
        return described(error)
    except BaseException as error:
        return described(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def described(error: BaseException) -> str:
    own = [f for f in traceback.extract_tb(error.__traceback__) if "grubler" in f.filename]
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "nowhere"
    return ascii(f"{place} {type(error).__name__}: {error}")[1:200]


def worker(seed: int, start: int, stop: int, until: float, pipe: int) -> None:
    """Calls start..stop-1, one line for each before it begins, and one for each finding."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(pipe, "w", buffering=1) as out:
        for index in range(start, stop):
            if time.time() > until:
                return
            out.write(f"begin {index}\n")
            wrong = outcome(Call(seed, index))
            if wrong:
                out.write(f"wrong {index} {wrong}\n")
        out.write(f"begin {stop}\n")


def run(seed: int, start: int, stop: int, until: float = float("inf")) -> tuple[int, dict]:
    """(the next call, findings by number): calls in children, a new one after each crash."""
    found: dict[int, str] = {}
    while start < stop and time.time() < until:
        read, write = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(read)
            code = 1
            try:
                worker(seed, start, stop, until, write)
                code = 0
            finally:
                os._exit(code)
        os.close(write)
        with os.fdopen(read) as lines:
            for line in lines:
                kind, number, *rest = line.rstrip("\n").split(" ", 2)
                start = int(number)
                if kind == "wrong":
                    found[start] = rest[0]
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            found[start] = f"the process ended with {status}"
            start += 1
        elif start < stop and time.time() > until:
            break
    return start, found


def main(arguments=None) -> int:
    sys.stdout.reconfigure(errors="backslashreplace")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, help="how many calls")
    parser.add_argument("--hours", type=float, help="how long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, help="file that keeps the next call and findings")
    parser.add_argument("--only", type=int, help="one call, in this process")
    given = parser.parse_args(arguments)
    if given.only is not None:
        call = Call(given.seed, given.only)
        print(call, flush=True)
        print(call.fn(*call.arguments, **call.options))
        return 0
    state = {"seed": given.seed, "next": 0, "found": {}}
    if given.state and given.state.exists():
        state = json.loads(given.state.read_text())
    until = time.time() + 3600 * given.hours if given.hours else float("inf")
    last = state["next"] + (given.count or (10**9 if given.hours else 1000))
    while state["next"] < last and time.time() < until:
        stop = min(last, state["next"] + 500)
        state["next"], found = run(state["seed"], state["next"], stop, until)
        for index, wrong in found.items():
            print(f"{index}: {wrong}\n    {Call(state['seed'], index)}", flush=True)
        state["found"] |= {str(i): wrong for i, wrong in found.items()}
        if given.state:
            given.state.write_text(json.dumps(state, indent=1))
    print(f"{state['next']} calls, {len(state['found'])} findings")
    return 1 if state["found"] else 0


if __name__ == "__main__":
    sys.exit(main())
