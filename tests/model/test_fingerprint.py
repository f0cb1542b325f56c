"""What the cache knows things by: whatever changes a result changes the key."""

import copy
import dataclasses
import functools
import os
import subprocess
import sys
from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest

import grubler as gb
from conftest import load
from grubler.algebra.spatial import Transform
from grubler.compiled import problem as compiled
from grubler.model.fingerprint import UNKNOWN, data_digest, fingerprint


def variants(x, seen=None):
    """(path, copy of x that differs from it in one place), for every place inside."""
    seen = set() if seen is None else seen
    if isinstance(x, np.ndarray):
        yield from array_variants(x)
    elif dataclasses.is_dataclass(x):
        if id(x) in seen:
            return
        seen.add(id(x))
        for f in dataclasses.fields(x):
            if f.metadata.get("fingerprint") is not False:
                for path, value in variants(getattr(x, f.name), seen):
                    other = copy.copy(x)
                    object.__setattr__(other, f.name, value)
                    yield f".{f.name}{path}", other
    elif isinstance(x, Mapping):
        for key, value in x.items():
            for path, other in variants(value, seen):
                yield f"[{key!r}]{path}", {**x, key: other}
            yield f"[without {key!r}]", {k: v for k, v in x.items() if k != key}
            yield f"[not {key!r}]", {f"{k}'" if k == key else k: v for k, v in x.items()}
    elif isinstance(x, (tuple, list)):
        for i, value in enumerate(x):
            for path, other in variants(value, seen):
                items = [*x[:i], other, *x[i + 1 :]]
                yield f"[{i}]{path}", x._make(items) if hasattr(x, "_make") else type(x)(items)
        yield "+[None]", type(x)([*x, None]) if not hasattr(x, "_make") else (*x, None)
    elif isinstance(x, slice):
        yield ".start", slice(x.start + 1 if x.start is not None else 1, x.stop, x.step)
        yield ".stop", slice(x.start, x.stop + 1 if x.stop is not None else 1, x.step)
    elif isinstance(x, bool):
        yield "", not x
    elif isinstance(x, (float, np.floating)):
        yield "", np.nextafter(x, np.inf)
        yield "", -x if x else -0.0
    elif isinstance(x, (int, np.integer)):
        yield "", x + 1
    elif isinstance(x, str):
        yield "", x + "'"
    elif x is None:
        yield "", 0.0


def array_variants(x):
    if x.size and x.dtype.kind == "f":
        for i in range(x.size):
            other = np.array(x)
            other.flat[i] = np.nextafter(other.flat[i], np.inf)
            yield f".flat[{i}]", other
    yield ".dtype", x.astype(np.float32)
    yield ".shape", x.reshape(1, *x.shape)


@pytest.mark.parametrize("robot", ["four_bar", "six_bar", "joint_sampler", "loop_sampler"])
def test_every_field_of_a_model_is_in_its_fingerprint(robot):
    model = load(robot)
    known, number = {fingerprint(model)}, 0
    changed = list(variants(model))
    step = max(1, len(changed) // 600)  # of large models not all: seconds
    for path, other in changed[::step]:
        found = fingerprint(other)
        assert found, f"{path} has no fingerprint"
        assert found not in known, f"{path} is not in the fingerprint"
        known.add(found)
        number += 1
    assert number > 300


CASES = [
    gb.Passive({"a": 0.5}, {"a": 0.1}, {"a": (1.0, 0.2)}, 1e-2, 3.0, 0.5),
    gb.Constraint("hand", (0, 1), "foot", [1.0, 2.0], np.ones(3), 0.1, 0.9, 0.5),
    gb.Closure("c", ("a", "b"), ("c", "d"), "weld", (np.eye(3), np.zeros(3)), 0.2, 0.8),
    Transform(np.eye(3), np.arange(3.0)),
    {"method": "pv", "frames": ["hand", ("foot", (3, 4, 5))], "f_ext": {"a": np.ones(6)}},
]


@pytest.mark.parametrize("x", CASES, ids=lambda x: type(x).__name__)
def test_every_field_of_what_is_given_is_in_its_fingerprint(x):
    found = [fingerprint(x), *(fingerprint(other) for _, other in variants(x))]
    assert all(found) and len(set(found)) == len(found) > 5
    assert fingerprint(copy.deepcopy(x)) == found[0]


def test_collections_are_written_apart():
    different = [
        (), ((),), ("",), ("a", "b"), ("ab",), ("a", ("b",)), (["a"], "b"), ({"a": "b"},),
        ({"a": None},),
        ({}, "a", "b"), (1,), (1.0,), (True,), ("1",), (None,), ("None",), (1j,), (b"1",),
        (np.zeros(2),), (np.zeros((2, 1)),), (np.zeros(2, np.float32),), (np.zeros(2, int),),
        (0.0,), (-0.0,), (slice(1),), (range(1),), ({1, 2},), ({1},), (frozenset({1}),),
        (gb.forward_dynamics,), (gb.inverse_dynamics,), (functools.partial(gb.forward_dynamics),),
        (functools.partial(gb.forward_dynamics, method="kkt"),), (np.float32(1),), (np.int64(1),),
    ]  # fmt: skip
    found = [fingerprint(*x) for x in different]
    assert all(found) and len(set(found)) == len(found)


def test_equal_contents_have_equal_fingerprints():
    for x in (MappingProxyType({"a": 0.5}), OrderedDict(a=0.5), Fraction(1, 3), Decimal("0.1")):
        assert fingerprint(x) == fingerprint(copy.copy(x) if x.__hash__ else type(x)({"a": 0.5}))
    assert fingerprint(np.asfortranarray(np.eye(3) + 1)) == fingerprint(np.eye(3) + 1)
    assert fingerprint({"c", "a", "b"}) == fingerprint({"b", "c", "a"})
    text = "from grubler.model.fingerprint import *; print(fingerprint({'c', 'a', 'b'}, slice(3)))"
    there = [
        subprocess.check_output(
            [sys.executable, "-c", text], env=os.environ | {"PYTHONHASHSEED": seed}, text=True
        )
        for seed in "12"
    ]
    assert there[0] == there[1] == fingerprint({"c", "a", "b"}, slice(3)) + "\n"


class OwnPassive(gb.Passive):
    def force(self, model, q, v):
        return np.zeros(model.nv)


class OwnFloat(float):
    pass


class OwnDict(dict):
    def get(self, *_):
        return 7.0


@functools.wraps(gb.forward_dynamics)
def pretender(*arguments, **options):
    return gb.inverse_dynamics(*arguments, **options)


OwnTuple = namedtuple("OwnTuple", "a")
itself: list = []
itself.append(itself)
NO_DATA = [
    OwnPassive({"a": 1.0}), OwnFloat(1), OwnDict(a=1.0), pretender, OwnTuple(1), lambda: 0,
    object(), np.array([object()]), np.ma.array([1.0]), np.sin, len, load("four_bar").random_state,
    itself, UNKNOWN, gb.Passive(damping=OwnDict(a=1.0)), gb.Passive,
]  # fmt: skip


@pytest.mark.parametrize("x", NO_DATA, ids=lambda x: type(x).__name__)
def test_what_is_not_known_has_no_fingerprint(x):
    for found in (fingerprint(x), fingerprint([x]), fingerprint({"a": x}, 1), fingerprint("a", x)):
        assert found is UNKNOWN and not found and found != found
        with pytest.raises(TypeError):
            hash(found)
        for text in (str, "{}".format, "a".__add__):
            with pytest.raises(TypeError):
                text(found)


def test_unknown_parts_name_no_entry():
    from grubler.compiler.runtime import cache

    for part in (None, UNKNOWN):
        with pytest.raises(TypeError):
            cache.digest("signature", part)
    assert cache.digest("a", "b") != cache.digest("a\x1fb") != cache.digest("ab")


@pytest.fixture
def keys(monkeypatch):
    """The keys that compiled functions were asked for with."""
    asked, original = [], compiled.compiler.compile_function

    def spy(*arguments, key=None, **options):
        asked.append(key)
        return original(*arguments, key=key, **options)

    monkeypatch.setattr(compiled.compiler, "compile_function", spy)
    return asked


class TestSimulators:
    def test_passive_forces_without_fingerprint_have_no_key(self, keys):
        model = load("four_bar")
        gb.Simulator(model, passive=gb.Passive(damping=OwnDict(crank=0.5)))
        gb.Simulator(model, passive=OwnPassive(damping={"crank": 0.5}))
        assert keys == [None, None]

    def test_passive_forces_act_however_they_are_given(self):
        """Mappings and numbers of any kind: the same motion, and never that without damping."""
        model = load("four_bar")
        q, v = model.random_state(1)

        def speed(damping):
            passive = None if damping is None else gb.Passive(damping=damping)
            return gb.Simulator(model, passive=passive).step(q, v, np.zeros(1))[1][0]

        free, expected = speed(None), speed({"crank": 0.5})
        assert abs(free - expected) > 1e-6
        for damping in (
            MappingProxyType({"crank": 0.5}), {"crank": np.float64(0.5)}, OwnDictOf({"crank": 0.5}),
            {"crank": np.float32(0.5)}, OrderedDict(crank=0.5), {"crank": OwnFloat(0.5)},
        ):  # fmt: skip
            assert speed(damping) == expected

    def test_each_option_is_in_the_key(self, keys):
        model = load("four_bar")
        passive = gb.Passive({"crank": 0.5}, {"crank": 0.1}, {"crank": (1.0, 0.2)}, 1e-2, 3.0, 0.5)
        changed = [p for path, p in variants(passive) if "not" not in path and "+" not in path]
        sampled = [p for p in changed if p.friction_speed > 0]
        options = [
            {}, {"dt": 2e-3}, {"integrator": "rk4"}, {"substeps": 2}, {"dtype": "float32"},
            {"passive": passive}, *({"passive": p} for p in sampled),
        ]  # fmt: skip
        for option in options:
            gb.Simulator(model, **option)
        assert all(keys) and len(set(keys)) == len(options)


class OwnDictOf(dict):
    pass


def own(model, q, v, *, gain=1.0):
    return gain * v


class TestKeys:
    def test_a_key_stands_for_code_and_not_for_numbers(self, keys):
        """One key for two models, options or arguments must not give one code."""
        a = load("four_bar")
        b = gb.with_parameters(a, {"mass": 2 * gb.parameter_values(a, "mass")})
        given = [
            (a, {}), (b, {}), (a, {"gain": 2.0}), (a, {"inputs": ["v", "q"]}),
            (a, {"parameters": ["mass"]}),
        ]  # fmt: skip
        for model, options in given:
            gb.compile(own, model, key="own", **options)
        gb.compile(own, a, key="another")
        assert all(keys) and len(set(keys)) == 6
        gb.compile(own, a, key="own")
        assert keys[0] == keys[-1]

    def test_data_in_a_users_function_count(self):
        def law(gain):
            return lambda q: gain * q

        assert data_digest(law(1.0)) == data_digest(law(1.0)) != data_digest(law(2.0))

    @pytest.mark.parametrize("key", ["", 3, b"k", ["k"]])
    def test_a_key_is_a_text(self, key):
        with pytest.raises(gb.InputError, match="key"):
            gb.compile(own, load("four_bar"), key=key)

    def test_another_function_under_a_known_key_is_refused(self, tmp_path, monkeypatch):
        """Machine code of two functions must never be mixed."""
        monkeypatch.setenv("GRUBLER_CACHE_DIR", str(tmp_path / "cache"))
        model = load("four_bar")
        first = gb.compile(lambda model, q: 2.0 * q, model, key="k")
        np.testing.assert_array_equal(first(model.neutral()), 2 * model.neutral())
        second = gb.compile(lambda model, q: 3.0 * q, model, key="k")
        with pytest.raises(gb.InputError, match="another key"):
            second(np.stack([model.neutral()] * 3))


def test_a_trajectory_belongs_to_its_model_with_users_code_too(tmp_path):
    def build(mass):
        b = gb.ModelBuilder("mine")
        for name in ("x", "y"):
            b.add_body(name, mass, inertia=(1, 0, 0, 1, 0, 1))
            b.add_joint(f"j{name}", "revolute", "world", name)
        b.add_constraint("c", gamma=_sine, independent=["jx"], dependent=["jy"])
        return b.build()

    model = build(1.0)
    run = gb.Simulator(model).run(model.neutral(), np.zeros(1), steps=2)
    path = run.save(tmp_path / "run")
    np.testing.assert_array_equal(gb.Trajectory.load(path, build(1.0)).q, run.q)
    with pytest.raises(gb.InputError, match="other numbers"):
        gb.Trajectory.load(path, build(2.0))


def _sine(y):
    return np.stack([np.sin(y[0])])
