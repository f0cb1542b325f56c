"""Several models in one world, as one model: `scene`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..arguments import is_numbers, public, shown
from ..errors import InputError, ModelError
from ..mechanism.loops.modules import ClosedForm
from . import Model
from .builder import ModelBuilder

Models: TypeAlias = Model | Mapping[str, Model] | Iterable[Model]


@public
def scene(
    robots: Models, objects: Models = (), *, places: Mapping[str, Any] | None = None,
    closures: Mapping[str, Any] | None = None,
    name: str = "scene", analytic: bool | None = None,
) -> Model:  # fmt: skip
    """One model of several: robots and objects in one world, compiled and batched like any other.

    `robots` and `objects` are a Model, Models by name, or a list, named after the models. What is
    theirs is called "name/...". `places` gives by name where a model's world is: a position (3,),
    or a rotation matrix and a position, (R, p). `closures` join frames for good: by name
    (kind, first, second), or (kind, first, second, options), with a kind and options of
    `ModelBuilder.add_loop`, and frames as "name/frame" or "world". `analytic` as in
    `ModelBuilder.build`; by default True if one of the models closes loops so. Contacts between
    them: `Contacts(scene, pairs=[("arm/hand", "box")])`.
    """
    models = _named(robots, {})
    models = _named(objects, models)
    if not models:
        raise InputError("a scene needs at least one model: give robots or objects")
    for key in places or {}:
        if key not in models:
            raise InputError(f"places: no model named '{key}': known: {', '.join(models)}")
    b = ModelBuilder(name, gravity=next(iter(models.values())).gravity)
    for key, model in models.items():
        R, p = _place(key, (places or {}).get(key))
        b.add_model(key, model, xyz=p, R=R)
    for key, closure in (closures or {}).items():
        _close(b, key, closure, models)
    if analytic is None:
        analytic = any(map(_analytic, models.values()))
    return b.build(analytic=analytic)


def _named(given, models: dict[str, Model]) -> dict[str, Model]:
    """The models by name, after those that have one."""
    models = dict(models)
    if isinstance(given, Model):
        given = [given]
    if isinstance(given, Mapping):
        pairs = [*given.items()]
    elif isinstance(given, Iterable) and not isinstance(given, str):
        pairs = [(None, model) for model in given]
    else:
        raise InputError(f"robots and objects are Models, not {shown(given)}")
    for key, model in pairs:
        if not isinstance(model, Model):
            raise InputError(f"robots and objects are Models, not {shown(model)}")
        if key is None:
            key, k = model.name, 1
            while key in models:
                key, k = f"{model.name}.{k}", k + 1
        if not isinstance(key, str) or not key or "/" in key or key == "world":
            raise InputError(f"the name of a model is {key!r}: give a text without '/'")
        if key in models:
            raise InputError(f"'{key}' names two models: names are unique")
        models[key] = model
    return models


def _place(key: str, place) -> tuple[np.ndarray, np.ndarray]:
    if place is None:
        return np.eye(3), np.zeros(3)
    if is_numbers(place) and np.shape(place) == (3,):
        return np.eye(3), np.asarray(place, dtype=float)
    if isinstance(place, tuple) and len(place) == 2:
        R, p = place
        if is_numbers(R) and is_numbers(p) and np.shape(R) == (3, 3) and np.shape(p) == (3,):
            return np.asarray(R, dtype=float), np.asarray(p, dtype=float)
    raise InputError(f"the place of '{key}' is {shown(place)}: give (x, y, z), or (R, p)")


def _close(b: ModelBuilder, key: str, closure, models: Mapping[str, Model]) -> None:
    """A loop joint between two frames."""
    if not (isinstance(closure, (tuple, list)) and len(closure) in (3, 4)):
        raise InputError(f"closure '{key}' is {shown(closure)}: give (kind, first, second)")
    kind, *ends, options = (*closure, {}) if len(closure) == 3 else closure
    joined = {}
    for side, end in zip(("predecessor", "successor"), ends):
        body, R, p = _end(key, end, models)
        joined |= {side: body, f"{side}_R": R, f"{side}_xyz": p}
    first, second = joined.pop("predecessor"), joined.pop("successor")
    b.add_loop(key, kind, first, second, **joined, **options)


def _end(key: str, end, models: Mapping[str, Model]):
    """The body that carries a frame "model/frame", and the frame's place on it."""
    if end == "world":
        return "world", np.eye(3), np.zeros(3)
    owner, _, frame = end.partition("/") if isinstance(end, str) else ("", "", "")
    if owner not in models:
        raise InputError(
            f"closure '{key}' ends at {end!r}: give 'name/frame', with one of {', '.join(models)}"
        )
    try:
        found = models[owner].frame(frame)
    except ModelError as error:
        raise InputError(f"closure '{key}': {error}") from None
    if found.body < 0:
        raise InputError(f"closure '{key}': '{end}' is fixed to the world: end at 'world'")
    body = f"{owner}/{models[owner].bodies[found.body].name}"
    return body, found.placement.E.T, found.placement.r


def _analytic(model: Model) -> bool:
    """Whether a loop of the model is closed in closed form."""
    return any(
        isinstance(step, ClosedForm)
        for cluster in model.clusters
        for step in getattr(cluster.embedding, "steps", ())
    )
