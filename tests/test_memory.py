"""What is known of models is kept in caches of a known size: old models go."""

import functools
import gc
import importlib
import pkgutil
import weakref

import numpy as np

import grubler
import grubler as gb

MOST = 4096  # entries of the largest cache
FEW = {  # without a size: of these arguments there are only a few in a process
    "grubler.compiler.runtime.cache.sources",  # packages
    "grubler.gpu.dlpack._library",  # libraries of arrays
    "grubler.gpu.driver.device",  # GPUs
}
LIVING = 256  # models that the caches of their functions hold at most
MODELS = LIVING + 40


def caches():
    """Every cached function of the package, by its name."""
    found = {}
    for info in pkgutil.walk_packages(grubler.__path__, "grubler."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for owner in (module, *(x for x in vars(module).values() if isinstance(x, type))):
            for thing in vars(owner).values():
                thing = getattr(thing, "__func__", thing)
                if isinstance(thing, functools._lru_cache_wrapper):
                    found[f"{thing.__module__}.{thing.__qualname__}"] = thing
    return found


def test_every_cache_has_a_size():
    known = caches()
    assert len(known) > 20
    endless = {name for name, fn in known.items() if fn.cache_parameters()["maxsize"] is None}
    takes_nothing = {name for name in endless if not known[name].__wrapped__.__code__.co_argcount}
    assert endless - takes_nothing <= FEW
    assert max(fn.cache_parameters()["maxsize"] or 0 for fn in known.values()) <= MOST


def small(number: int) -> gb.Model:
    b = gb.ModelBuilder(f"small {number}")
    b.add_body("arm", 1.0 + number, (0.1, 0, 0), (1, 0, 0, 1, 0, 1))
    b.add_joint("hinge", "revolute", "world", "arm", axis=(0, 1, 0))
    return b.build()


def used(model: gb.Model) -> None:
    q, v = model.random_state(0)
    tau = np.zeros(1)
    gb.forward_dynamics(model, q, v, tau)
    gb.forward_dynamics(model, q, v, tau, method="lagrange")
    gb.forward_dynamics(model, q, v, tau, method="approximate")
    gb.inverse_osim(model, q, ["arm"], method="pv_osim_fast")


def test_models_are_let_go():
    """Each has been in every cache that these functions use, and has been put out by later ones."""
    living = []
    for number in range(MODELS):
        model = small(number)
        used(model)
        living.append(weakref.ref(model))
    del model
    gc.collect()
    alive = [number for number, ref in enumerate(living) if ref() is not None]
    assert min(alive) >= MODELS - LIVING
