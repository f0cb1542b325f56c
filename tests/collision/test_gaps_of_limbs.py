"""Gaps of all pairs of limbs of real robots against MuJoCo's distances."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import grubler as gb
from formats.shared_models import path
from grubler.formats._files import Files
from grubler.formats._report import Complaints
from grubler.formats._xml import read_xml
from grubler.formats.mjcf_compile import compile_mjcf


def geoms(m) -> dict[str, int]:
    """MuJoCo's geoms that may touch, by the names that the reader gives them."""
    found, count = {}, {}
    for g in range(m.ngeom):
        if not (m.geom_contype[g] or m.geom_conaffinity[g]):
            continue
        name, body = m.geom(g).name, m.body(m.geom_bodyid[g]).name
        if not name:
            name, count[body] = f"{body}.{count.get(body, 0)}", count.get(body, 0) + 1
        found[name] = g
    return found


@pytest.mark.parametrize("name", ["cassie_mjcf/cassie.xml", "kangaroo_pal_mjcf/kangaroo.xml"])
def test_gaps_of_limbs(name):
    mujoco = pytest.importorskip("mujoco")
    file = path(name)
    files = Files(file.parent)
    m = compile_mjcf(file, read_xml(file, files), Complaints(), files).model
    d, fromto = mujoco.MjData(m), np.zeros(6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gb.load(file)
        plan = gb.Contacts(model, pairs="all", ground=False, limit=10**6)
    of, seen = geoms(m), 0
    for seed in range(5):
        q, v = model.random_state(seed)
        d.qpos[:] = gb.convert.to_mujoco(model, m, q, v).q
        mujoco.mj_forward(m, d)
        gaps: dict = {}
        for gap, point in zip(gb.contact_candidates(model, q, plan).gap, plan.points):
            gaps[point.pair.names] = min(gap, gaps.get(point.pair.names, np.inf))
        for pair, gap in gaps.items():
            expected = mujoco.mj_geomDistance(m, d, *(of[x] for x in pair), 10.0, fromto)
            assert abs(gap - expected) < 1e-12, pair
            seen += 1
    assert seen > 200
