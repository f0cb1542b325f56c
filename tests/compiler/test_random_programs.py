"""Whatever is handed to a compiled function: a right answer or an error, never a crash."""

import functools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import grubler.compiler as gc
from grubler.errors import InputError


def test_the_same_array_twice():
    x = np.arange(3.0)
    np.testing.assert_array_equal(product()(x, x), x * x)
    np.testing.assert_array_equal(product().bind(x, x)(), x * x)


@functools.cache
def product():
    return gc.compile_function(lambda x, y: x * y, [3, 3])


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.data(),
    st.one_of(hnp.floating_dtypes(), hnp.integer_dtypes(), hnp.complex_number_dtypes(),
              hnp.boolean_dtypes(), hnp.unicode_string_dtypes()),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
    st.sampled_from(["call", "soa", "bind", "out"]),
)  # fmt: skip
def test_no_argument_crashes(draw, dtype, shape, way):
    f = product()
    x = draw.draw(hnp.arrays(dtype, shape))
    if draw.draw(st.booleans()):
        x = x.T
    if x.ndim and draw.draw(st.booleans()):
        x = x[::-1]
    y = np.ones(3)
    calls = {
        "call": lambda: f(x, y),
        "soa": lambda: f.structure_of_arrays(x, y),
        "bind": lambda: f.bind(x, y).__call__(),
        "out": lambda: f(y, y, out=x),
    }
    try:
        with np.errstate(all="ignore"):
            result = calls[way]()
    except InputError:
        return
    if way in ("call", "bind"):
        assert result.shape == x.shape and result.dtype == np.float64
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(result, x.astype(float))


@pytest.mark.parametrize("junk", [(), (1,), (None, None), (np.zeros(3),), ("a", "b"), ([], {})])
def test_junk_arguments(junk):
    g = gc.compile_function(lambda x, y: x * y, [3, 3]).prepare()
    with pytest.raises(InputError):
        g(*junk)
