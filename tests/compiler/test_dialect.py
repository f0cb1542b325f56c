"""Functions outside the dialect: the error names the rule and the line."""

import math

import numpy as np
import pytest

import grubler.compiler as gc
from grubler.errors import InputError


def uses_if(x):
    if x[0] > 0:
        return x
    return -x


def uses_and(x):
    return x[0] > 0 and x[1] > 0


def uses_array(x):
    return np.array([x[0], x[1]])


def uses_max(x):
    return max(x[0], x[1])


def uses_math(x):
    return x * math.sin(x[0])


def uses_float(x):
    return x * float(x[1])


def writes_argument(x):
    x[0] = 1.0
    return x


def writes_zeros(x):
    y = np.zeros(2)
    y[0] = x[0]
    return y


def writes_augmented(x):
    x += 1.0
    return x


def uses_svd(x):
    return np.linalg.svd(np.stack([x, x]))[1]


def uses_range(x):
    return list(range(x[0]))


def adds_axis(x):
    return x[None, :] * 2.0


CASES = {
    adds_axis: "np.stack",
    uses_if: "np.where", uses_and: "np.where", uses_array: "np.stack", uses_max: "np.maximum",
    uses_math: r"math", uses_float: "float", writes_argument: "in place", writes_zeros: "write",
    writes_augmented: "in place", uses_svd: "cannot be traced", uses_range: "loop",
}  # fmt: skip


@pytest.mark.parametrize("fn", CASES, ids=lambda fn: fn.__name__)
def test_rule_and_line_are_named(fn):
    with pytest.raises(gc.DialectError, match=CASES[fn]) as caught:
        gc.compile_function(fn, [2])
    assert isinstance(caught.value, InputError)
    assert f"'{fn.__name__}'" in str(caught.value)
    assert "test_dialect.py line" in str(caught.value)


def test_what_a_function_returns():
    for bad in (None, {"a": 1}, "text", [[1.0, 2.0]]):
        with pytest.raises(gc.DialectError, match="return"):
            gc.compile_function(lambda x, bad=bad: bad, [2])
    with pytest.raises(gc.DialectError, match="nothing"):
        gc.compile_function(lambda x: (), [2])
    with pytest.raises(gc.DialectError, match="two axes"):
        gc.compile_function(lambda x: x.reshape(2, 1, 1), [2])


def test_other_errors_come_through():
    def fails(x):
        raise KeyError("unknown frame")

    with pytest.raises(KeyError, match="unknown frame"):
        gc.compile_function(fails, [2])


def test_scalars_may_be_added_up():
    def total(x):
        s = 0.0
        for i in range(3):
            s += x[i]
        return s

    assert gc.compile_function(total, [3])(np.ones(3)) == 3.0


def test_tracing_leaves_symbols_as_they_were():
    import casadi

    before = dict(casadi.ArrayInterface.__dict__)
    with pytest.raises(gc.DialectError):
        gc.compile_function(uses_if, [2])
    assert dict(casadi.ArrayInterface.__dict__) == before


def test_logging(caplog):
    with caplog.at_level("INFO", logger="grubler"):
        gc.compile_function(lambda x: x * 5.0, [2])(np.ones(2))
    assert any("trace" in m for m in caplog.messages)
    assert any("compile" in m or "load" in m for m in caplog.messages)
