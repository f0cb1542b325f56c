"""SDF's <include>: models of other files, named, placed, nested; what is missing or wrong."""

import numpy as np
import pytest
from shared_models import same_dynamics
from test_sdf import INERTIAL, WORLD, joint, link, sdf

import grubler as gb
from grubler.errors import ModelError
from grubler.formats import FormatWarning, load

FINGER = sdf(
    '<pose>9 9 9 0 0 0</pose><link name="root">', INERTIAL, '</link><link name="tip">'
    "<pose>0.3 0 0 0 0 0</pose>", INERTIAL, "</link>",
    joint("bend", "revolute", "root", "tip", "0 1 0"),
).replace('name="m"', 'name="finger"')  # fmt: skip


def include(uri: str, name: str = "", more: str = "") -> str:
    title = f"<name>{name}</name>" if name else ""
    return f"<include><uri>{uri}</uri>{title}{more}</include>"


def hand(*includes: str) -> str:
    return sdf(WORLD, link("a"), *includes,
               joint("left", "revolute", "a", "l::root", "1 0 0"),
               joint("right", "fixed", "a", "finger::root", ""))  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "robot").mkdir()
    (tmp_path / "finger").mkdir()
    (tmp_path / "finger" / "new.sdf").write_text(FINGER)
    (tmp_path / "finger" / "model.config").write_text(
        '<model><name>finger</name><sdf version="1.4">old.sdf</sdf>'
        '<sdf version="1.12">new.sdf</sdf></model>'
    )
    (tmp_path / "robot" / "local.sdf").write_text(FINGER)
    return tmp_path


def test_models_by_name_and_by_path(folder):
    """Beside the file's folder, with a model.config; in it, by relative path."""
    pose = '<pose relative_to="a">0 1 0 0 0 0.5</pose>'
    path = folder / "robot" / "hand.sdf"
    path.write_text(
        hand(include("model://finger", "l", pose),
             include("local.sdf", more="<pose>0 -1 0 0 0 0</pose>"))
    )  # fmt: skip
    model = load(path, strict=True)
    assert sorted(model.v_names) == ["finger::bend", "l::bend", "left"]
    at = gb.frame_pose(model, model.neutral(), "l::tip")[1]
    np.testing.assert_allclose(at, [0.3 * np.cos(0.5), 1 + 0.3 * np.sin(0.5), 0], atol=1e-12)
    at = gb.frame_pose(model, model.neutral(), "finger::tip")[1]
    np.testing.assert_allclose(at, [0.3, -1, 0], atol=1e-12)

    def inner(name, pose):  # the same, written out as nested models
        text = FINGER.split(">", 1)[1].rsplit("</sdf>", 1)[0]
        return text.replace('name="finger"', f'name="{name}"').replace(
            "<pose>9 9 9 0 0 0</pose>", pose
        )

    written = load(hand(inner("l", pose), inner("finger", "<pose>0 -1 0 0 0 0</pose>")))
    for seed in range(3):
        assert same_dynamics(written, model, seed) < 1e-12


def test_in_a_world_with_search_paths(folder, monkeypatch):
    text = f"""<sdf version="1.12"><world name="w">{include("model://finger", "one")}
    {include("model://finger", "two", "<static>true</static>")}</world></sdf>"""
    with pytest.raises(ModelError, match=r"no <model>; lines 1, 2: .*'model://finger' is not"):
        load(text)
    for options in ({"package_dirs": [folder]}, {}):
        model = load(text, strict=True, **options)
        assert model.nv == 7  # one floats and bends, two is static
        monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(folder))


def test_in_an_included_file(folder):
    (folder / "robot" / "pair.sdf").write_text(
        sdf(include("model://finger", "f"), joint("weld", "fixed", "world", "f::root", ""))
    )
    (folder / "robot" / "all.sdf").write_text(
        f'<sdf version="1.12">{include("pair.sdf", "outer")}</sdf>'
    )
    assert load(folder / "robot" / "all.sdf", strict=True).v_names == ("f::bend",)


def test_what_is_wrong_is_said(folder):
    robot = folder / "robot"
    path = robot / "x.sdf"
    (robot / "two.sdf").write_text('<sdf version="1.12"><model name="a"/><model name="b"/></sdf>')
    (robot / "old.sdf").write_text(FINGER.replace("1.12", "1.4"))
    (robot / "robot.urdf").write_text('<robot name="r"><link name="a"/></robot>')
    cases = {
        include("x.sdf"): "includes itself",
        include("two.sdf"): "has 2 models",
        include("old.sdf"): "convert the older file",
        include("robot.urdf"): "only SDF is included",
        include("local.sdf").replace("<include>", '<include merge="true">'): "not supported",
        "<include/>": "<uri>",
    }
    for text, message in cases.items():
        path.write_text(sdf(WORLD, link("a"), text))
        with pytest.raises(ModelError, match=message) as caught:
            load(path)
        assert "x.sdf, line 1" in str(caught.value)
    path.write_text(sdf(WORLD, link("a"), include("https://example.org/m"), include("gone"),
                        include("local.sdf", more="<plugin/>")))  # fmt: skip
    with pytest.warns(FormatWarning) as warned:
        load(path)
    messages = " ".join(str(w.message) for w in warned)
    for part in ("'https://example.org/m' is not there", "'gone' is not there",
                 "<plugin> in <include>"):  # fmt: skip
        assert part in messages


def test_includes_do_not_explode(folder):
    """Each of twelve files includes the next one twice: 4096 models."""
    for i in range(12):
        twice = include(f"b{i + 1}.sdf", "p") + include(f"b{i + 1}.sdf", "q")
        (folder / f"b{i}.sdf").write_text(sdf(link("a"), twice))
    (folder / "b12.sdf").write_text(sdf(link("a")))
    with pytest.raises(ModelError, match="more than 1000 files"):
        load(folder / "b0.sdf")


def test_includes_are_not_too_deep(folder):
    for i in range(60):
        (folder / f"d{i}.sdf").write_text(sdf(link("a"), include(f"d{i + 1}.sdf", "p")))
    with pytest.raises(ModelError, match="deeper than 40"):
        load(folder / "d0.sdf")
