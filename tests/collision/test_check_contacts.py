"""`check` lists the shapes that may touch."""

import json

import pytest
from test_contact_plan import LEG, arena, with_mesh

import grubler as gb
from grubler.cli import main


def test_pairs_are_listed():
    plan = gb.Contacts(LEG, friction={"sole": 0.6})
    report = gb.check(LEG, samples=1, contacts=plan)
    rows = {(p.first, p.second): p for p in report.touching.pairs}
    assert rows["sole", "ground"].friction == 0.6 and rows["sole", "ground"].points == 1
    assert rows["trunk_box", "ground"].bodies == ("trunk", "world")
    assert report.touching.points == 13
    assert "4 pairs of shapes may touch, at 13 candidate points" in report.table()
    assert json.loads(report.to_json())["touching"]["pairs"][0]["first"] == "trunk_box"
    assert gb.check(LEG, samples=1).touching is None


def test_all_pairs_of_a_file(capsys, tmp_path):
    pytest.importorskip("mujoco")
    report = gb.check(arena, samples=1, contacts=True)
    assert report.ok and ("gb", "gc") in {(p.first, p.second) for p in report.touching.pairs}
    file = tmp_path / "box.urdf"
    file.write_text(
        '<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" '
        'izz="1" ixy="0" ixz="0" iyz="0"/></inertial><collision name="skin"><geometry>'
        '<sphere radius="0.1"/></geometry></collision></link></robot>'
    )
    assert main(["check", str(file), "--base", "free", "--contacts", "--samples", "1"]) == 0
    assert "skin" in capsys.readouterr().out


def test_shapes_that_cannot_be_used_are_a_warning():
    report = gb.check(with_mesh("missing"), samples=1, contacts=True)
    assert report.ok and any("'foot.stl'" in w and "missing" in w for w in report.warnings)
    with pytest.raises(gb.InputError, match="contacts is 3"):
        gb.check(LEG, samples=1, contacts=3)
