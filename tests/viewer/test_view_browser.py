"""The viewer in a real browser: Debian's Chromium, driven by playwright."""

from __future__ import annotations

import time

import numpy as np
import pytest
from browser import CHROMIUM, chromium, page_of

import grubler as gb
from conftest import load
from grubler.viewer import view

pytest.importorskip("viser", reason="the extra grubler[view] is not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
if CHROMIUM is None:
    pytest.skip("chromium is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


def shown(page, joint: str):
    return page.locator(f"td[data-joint='{joint}']")


def eventually(page, check, seconds: float = 60) -> None:
    """Until something holds: software rendering keeps the page waiting."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "this did not happen"
        page.wait_for_timeout(100)


def picture(page) -> bytes:
    return page.locator("canvas").first.screenshot()


def test_a_slider_moves_the_dependent_joints(browser):
    model = load("four_bar")
    with (
        view(model, port=0, block=False) as viewer,
        page_of(browser, viewer) as (page, errors),
    ):
        follower = viewer.q[2]
        assert shown(page, "follower").inner_text() == f"{follower:+.4f}"
        assert page.get_by_text("crank, coupler, follower").is_visible()  # the cluster tree
        before = picture(page)
        page.locator("input[type=text], input[inputmode]").first.fill("1.6")
        expected = model.assemble({"crank": 1.6, "coupler": -0.5, "follower": 1.6}, ["crank"])
        eventually(page, lambda: shown(page, "follower").inner_text() == f"{expected[2]:+.4f}")
        assert viewer.q[0] == pytest.approx(1.6) and viewer.gap < 1e-10
        assert np.abs(viewer.q - expected).max() < 1e-9
        eventually(page, lambda: picture(page) != before)
        handle = page.get_by_role("slider").first  # by keyboard, as the mouse would
        handle.focus()
        at = viewer.q[0]
        for _ in range(5):
            handle.press("ArrowRight")
        eventually(page, lambda: abs(viewer.q[0] - at - 0.005) < 1e-6)
        assert viewer.gap < 1e-10
        page.get_by_role("button", name="Reset").click()
        eventually(page, lambda: shown(page, "follower").inner_text() == f"{follower:+.4f}")
        assert viewer.q[2] == pytest.approx(follower)
        assert errors == []


def test_a_trajectory_plays(browser):
    model = load("four_bar")
    run = gb.Simulator(model, dt=1e-2).run(model.neutral(), np.zeros(model.nv), steps=300)
    with (
        view(run, port=0, block=False) as viewer,
        page_of(browser, viewer) as (page, errors),
    ):
        before = shown(page, "crank").inner_text()
        page.get_by_role("button", name="Play").click()
        eventually(page, lambda: shown(page, "crank").inner_text() != before)
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("button", name="Play").wait_for()
        assert not viewer.playback.playing and viewer.playback.now > 0
        assert errors == []


def test_a_walking_robot_loads(browser):
    with (
        view(load("mini_cheetah"), port=0, block=False) as viewer,
        page_of(browser, viewer) as (page, errors),
    ):
        page.get_by_text("Floating base", exact=True).wait_for()
        eventually(page, lambda: len(picture(page)) > 10_000)  # white would be far smaller
        assert errors == []


LOOK = """<robot name="shapes"><link name="base"><collision>
<geometry><box size=".5 .5 .1"/></geometry></collision></link>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0"
iyy="1" iyz="0" izz="1"/></inertial>
<visual><geometry><capsule radius=".05" length=".3"/></geometry></visual>
<visual><origin xyz="0 0 .3"/><geometry><sphere radius=".1"/></geometry></visual>
<visual><geometry><cylinder radius=".02" length=".9"/></geometry></visual>
<visual><geometry><mesh filename="corner.obj"/></geometry></visual>
<visual><geometry><mesh filename="gone.stl"/></geometry></visual></link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
</joint></robot>"""


def test_shapes_of_a_file(browser, tmp_path):
    """Every kind of shape reaches the page; a mesh that is not there is named on it."""
    (tmp_path / "corner.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 2 3 4\n")
    (tmp_path / "look.urdf").write_text(LOOK)
    with (
        view(gb.load(tmp_path / "look.urdf"), port=0, block=False) as viewer,
        page_of(browser, viewer) as (page, errors),
    ):
        assert page.get_by_text("1 mesh not found (gone.stl)").is_visible()
        before = picture(page)
        assert len(before) > 5_000
        page.locator("input[type=text], input[inputmode]").first.fill("1.2")
        eventually(page, lambda: abs(viewer.q[0] - 1.2) < 1e-9 and picture(page) != before)
        assert errors == []
