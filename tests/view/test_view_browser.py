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
