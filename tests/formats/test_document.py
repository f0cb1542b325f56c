"""docs/formats.md: every example of a format is the same four-bar, every line of Python runs."""

import re
from pathlib import Path

import numpy as np
import pytest
from shared_models import error

import grubler as gb
from grubler.formats import load

DOCUMENT = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.S)


def find(language: str, start: str) -> str:
    return next(text for text in blocks(language) if text.startswith(start))


URDF = find("xml", "<robot")
BARE = re.sub(r"  <loop .*</loop>\n", "", URDF, flags=re.S)


def beside(tmp_path, start: str) -> gb.Model:
    pytest.importorskip("yaml")
    (tmp_path / "robot.urdf").write_text(BARE)
    (tmp_path / "robot.yaml").write_text(find("yaml", start))
    return load(tmp_path / "robot.yaml", strict=True)


def replaced(start: str) -> gb.Model:
    return load(BARE.replace("</robot>", find("xml", start) + "</robot>"), strict=True)


def mjcf() -> gb.Model:
    pytest.importorskip("mujoco")
    return load(find("xml", "<mujoco"), strict=True)


FORMATS = {
    "loop_joint": lambda _: replaced("<loop_joint"),
    "constraint": lambda _: replaced("<constraint"),
    "sdf": lambda _: load(find("xml", "<sdf"), strict=True),
    "mjcf": lambda _: mjcf(),
    "hyrodyn": lambda folder: beside(folder, "submechanisms"),
    "gepetto": lambda folder: beside(folder, "closed_loop"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_four_bar(name, tmp_path):
    known, model = load(URDF, strict=True), FORMATS[name](tmp_path)
    assert (known.nv, model.nv, len(known.actuators) <= len(model.actuators)) == (1, 1, True)
    at = known.assemble({"motor": 0.3}, fixed=["motor"])
    start = {n: known.unpack(at)[known.body_of_joint(n).index] for n in ("motor", "elbow", "pivot")}
    found = []
    for m in (known, model):
        q, v = gb.from_spanning(m, start, {"motor": 1.1, **_rates(m, start)})
        tau = gb.generalized_force(m, q, {"motor": 0.2, "pivot": -0.1})
        a = gb.forward_dynamics(m, q, v, tau)
        span = gb.spanning_state(m, q, v, a).accelerations
        found.append([span[m.spanning_names.index(n)] for n in start])
        assert gb.Passive.of(m).damping == {"motor": 0.01}
    assert error(*map(np.array, found)) < 1e-9


TRANSMISSION = """<transmission name="t"><type>transmission_interface/SimpleTransmission</type>
<joint name="motor"/><actuator name="motor"/></transmission>"""


def _rates(model, positions) -> dict:
    q, _ = gb.from_spanning(model, positions)
    G = gb.spanning_map(model, q)[0][:, 0]
    names = model.spanning_names
    scale = 1.1 / G[names.index("motor")]
    return {n: float(scale * x) for n, x in zip(names, G, strict=True)} | {"motor": 1.1}


def test_its_python_runs(tmp_path, monkeypatch):
    pytest.importorskip("yaml")
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    Path("cassie.xml").write_text(find("xml", "<mujoco"))
    Path("upload").mkdir()
    for name in ("robot.urdf", "upload/robot.urdf"):
        Path(name).write_text(BARE)
    Path("robot.yaml").write_text(find("yaml", "closed_loop"))
    first, *rest = blocks("python")
    space = {"gb": gb}
    exec(first.replace('"robot.urdf", base="free"', '"robot.urdf", base="fixed"'), space)
    driven = URDF.replace("</robot>", f"{TRANSMISSION}</robot>")
    model = load(driven.replace('name="motor" type', 'name="motor" independent="true" type'))
    q, v = model.random_state(0)
    space |= {"model": model, "q": q, "v": v, "a": np.ones(1)}
    for code in rest:
        exec(code, space)
    assert space["closed"].nq == 1 and space["crossed"].nq == 1
