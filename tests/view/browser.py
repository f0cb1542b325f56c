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


def shot(path: str) -> None:
    """Mini Cheetah, crouching."""
    import grubler as gb
    from grubler.viewer import view

    model = gb.robots.load("mini_cheetah")
    with chromium() as browser, view(model, port=0, block=False) as viewer:
        for leg, (hip, knee) in {
            "FL": (0.9, -1.7), "FR": (0.5, -1.3), "HL": (0.6, -1.4), "HR": (1.0, -1.7)
        }.items():  # fmt: skip
            viewer.set(f"{leg}_abad_link_joint", 0.1 if leg.endswith("L") else -0.1)
            viewer.set(f"{leg}_hip_link_joint", hip)
            viewer.set(f"{leg}_knee_link_joint", knee)
        with page_of(browser, viewer, 1240, 680) as (page, _errors):
            # the notice that WebGL runs in software
            page.add_style_tag(content="[class*=mantine-Notification] { display: none }")
            page.wait_for_timeout(5000)
            page.screenshot(path=path)


if __name__ == "__main__":
    shot(sys.argv[1])
