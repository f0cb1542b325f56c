"""The compiler's tests keep their cache to themselves and compile small things."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("GRUBLER_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()


@pytest.fixture(scope="session")
def dynamics():
    """Forward dynamics of a small floating mechanism: the NumPy function, compiled, nq, nv."""
    import grubler.compiler as gc

    from .by_hand import quadruped

    fn, nq, nv = quadruped(legs=2, links=2)
    return fn, gc.compile_function(fn, [nq, nv, nv]), nq, nv
