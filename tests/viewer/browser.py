"""A real browser for the viewer, and the picture of it in the docs:

python tests/view/browser.py docs/viewer.png
"""

from __future__ import annotations

import contextlib
import shutil
import sys

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-quic",
    "--disable-component-update", "--disable-sync",
    # WebGL in software
    "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]  # fmt: skip


@contextlib.contextmanager
def chromium():
    """Debian's Chromium without a screen, driven by playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, headless=True, args=FLAGS, timeout=60_000
        )
        yield browser
        browser.close()


@contextlib.contextmanager
def page_of(browser, viewer, width=900, height=480):
    """The viewer's page, loaded, and the list of errors that it reports."""
    page = browser.new_page(viewport={"width": width, "height": height})
    errors: list[str] = []
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("requestfailed", lambda request: errors.append(f"failed: {request.url}"))
    page.set_default_timeout(60_000)
    page.goto(viewer.url)
    page.get_by_text("Show", exact=True).wait_for()  # the last control
    page.locator("canvas").first.wait_for()
    yield page, errors
    page.close()


def cassie():
    """Cassie with its meshes and loops, from the package example-robot-data."""
    import warnings
    from importlib.metadata import distribution

    import grubler as gb

    prefix = "cmeel.prefix/share/example-robot-data/robots/cassie_description/robots"
    file = distribution("example-robot-data").locate_file(f"{prefix}/cassie_v2.sdf")
    with warnings.catch_warnings():  # it says more than the dynamics needs
        warnings.simplefilter("ignore")
        return gb.load(str(file))


STEP = {
    "left-pitch-op": 0.35, "left-knee-op": -0.45, "left-tarsus-crank-joint": -0.25,
    "right-pitch-op": -0.15, "right-knee-op": -0.1, "right-tarsus-crank-joint": -0.3,
}  # fmt: skip


def shot(path: str) -> None:
    """Cassie taking a step; rods, springs and feet follow the sliders."""
    from grubler.viewer import view

    with chromium() as browser, view(cassie(), port=0, block=False) as viewer:
        for name, value in STEP.items():
            reach = viewer.set(name, value)
            assert reach.reached, reach.message
        with page_of(browser, viewer, 1240, 680) as (page, _errors):
            # the notice that WebGL runs in software
            page.add_style_tag(content="[class*=mantine-Notification] { display: none }")
            page.wait_for_timeout(15_000)  # rendered in software, it fades in slowly
            page.screenshot(path=path)


if __name__ == "__main__":
    shot(sys.argv[1])
