"""Derivatives of gaps by the tangent coordinates of the configuration."""

from __future__ import annotations

import numpy as np
import pytest
from against import drawn
from test_closed_forms import DEGENERATE, model_of

import grubler as gb
from grubler.collision import closed_forms
from grubler.collision.boxes import FAR
from grubler.mechanism.geometry import HeightField, Hull


def waves(x, y):
    return 0.1 * np.sin(2 * x) * np.cos(3 * y)


def shape(kind, rng):
    if kind is HeightField:
        return HeightField(function=waves)
    return Hull(rng.normal(size=(5, 3))) if kind is Hull else drawn(kind, rng)


def gaps(model, q, contacts):
    return gb.contact_candidates(model, q, contacts).gap


@pytest.mark.parametrize(
    "kinds", closed_forms.FORMS, ids=lambda k: f"{k[0].__name__}-{k[1].__name__}"
)
def test_against_differences(kinds):
    """Exact derivatives, away from where another point or face becomes the nearest."""
    rng = np.random.default_rng(8)
    model = model_of(*(shape(kind, rng) for kind in kinds))
    plan = gb.Contacts(model, ground=False, pairs=[("a", "b")])
    jacobian = gb.compile(gb.jacobian(gaps, model, wrt="q", contacts=plan), model)
    h, seen = 1e-6, 0
    for seed in range(5):
        q, _ = model.random_state(seed)
        J, numeric = jacobian(q), np.zeros((len(plan), model.nv))
        for c, d in enumerate(np.eye(model.nv)):
            ahead, behind = (gaps(model, model.integrate(q, d, s * h), plan) for s in (1, -1))
            numeric[:, c] = (ahead - behind) / (2 * h)
        smooth = (np.abs(numeric).max(axis=1) < 100) & (gaps(model, q, plan) < FAR)
        assert np.abs(J - numeric)[smooth].max(initial=0.0) < 1e-8
        seen += smooth.sum()
    assert seen >= 5


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_cases_have_finite_derivatives(case):
    a, b, p, _ = DEGENERATE[case]
    model = model_of(a, b)
    plan = gb.Contacts(model, ground=False, pairs=[("a", "b")])
    q = model.neutral()
    q[:3] = p
    jacobian = gb.compile(gb.jacobian(gaps, model, wrt="q", contacts=plan), model)
    assert np.all(np.isfinite(jacobian(q)))


def test_all_forms_compile_for_gpus():
    rng = np.random.default_rng(9)
    for kinds in closed_forms.FORMS:
        model = model_of(*(shape(kind, rng) for kind in kinds))
        plan = gb.Contacts(model, ground=False, pairs=[("a", "b")])
        assert gb.compile(gb.contact_candidates, model, contacts=plan, target="cuda")
