"""Hostile and broken text: a clear error of our own or a model, never anything else."""

import random
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shared_models import MODELS, path

import grubler as gb
from grubler.errors import GrublerError, InputError, ModelError
from grubler.formats import FormatWarning, describe, load
from grubler.formats._xml import MAX_DEPTH, read_xml

BOMB = """<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>"""
EXTERNAL = '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/hostname">]>'
ROOTS = {
    "robot": "<robot name='{}'/>",
    "sdf": "<sdf version='{}'/>",
    "mujoco": "<mujoco model='{}'/>",
}


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("declaration", [BOMB, EXTERNAL])
def test_entities_are_refused(root, declaration, tmp_path):
    text = declaration + ROOTS[root].format("&a;")
    with pytest.raises(ModelError, match="document type declaration"):
        load(text)
    file = tmp_path / "x.xml"
    file.write_text(text)
    with pytest.raises(ModelError, match=r"x.xml, line 1: a document type declaration"):
        load(file)


@pytest.mark.parametrize("root", ROOTS)
def test_deep_nesting_is_refused(root):
    deep = MAX_DEPTH + 5
    text = f"<{root}>" + "<body>" * deep + "</body>" * deep + f"</{root}>"
    with pytest.raises(ModelError, match=f"nested deeper than {MAX_DEPTH}"):
        load(text)


def test_huge_files_are_refused(tmp_path):
    file = tmp_path / "huge.urdf"
    with open(file, "wb") as f:
        f.truncate(65 * 2**20)
    with pytest.raises(ModelError, match=r"'huge.urdf' has 65 MiB"):
        load(file)


def test_a_long_chain_is_read():
    link = """<link name="l{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/>
        </inertial></link>"""
    joint = """<joint name="j{0}" type="revolute"><parent link="l{1}"/><child link="l{0}"/>
        </joint>"""
    n = 300
    parts = [link.format(i) for i in range(n)] + [joint.format(i, i - 1) for i in range(1, n)]
    assert load(f"<robot name='r'>{''.join(parts)}</robot>").nv == n - 1


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00\x01\x02", b"<robot", b"\xff\xfe<\x00", "<robot name='é'/>".encode("latin-1"),
     b"<?xml version='1.0' encoding='x'?><robot/>", b"{}", b"<a/><b/>"],
)  # fmt: skip
def test_files_that_are_not_xml(data, tmp_path):
    file = tmp_path / "x.urdf"
    file.write_bytes(data)
    with pytest.raises(ModelError, match=r"x.urdf|description"):
        load(file)


def test_paths_that_lead_nowhere(tmp_path):
    for name in (tmp_path, tmp_path / "none.urdf", "a\0b"):
        with pytest.raises(ModelError, match="cannot read"):
            load(name)
    with pytest.raises(InputError, match="not int"):
        load(3)


YAML = {
    "not yaml": ("a: [", "not well-formed YAML"),
    "a list": ("- a", "expected a mapping"),
    "nothing known": ("a: 1", "neither 'submechanisms'"),
    "alias": ("a: &x [1]\nb: [*x, *x]", "aliases"),
    "python": ("a: !!python/object/apply:os.getcwd []", "not well-formed YAML"),
    "loops": ("closed_loop: 3", "not a list of pairs"),
    "pairs": ("closed_loop: [[a]]", "not a pair of frames"),
    "frames": ("closed_loop: [[a, zz]]", "no frame named 'zz'"),
    "types": ("closed_loop: [[a, b]]\ntype: [3d, 6d]", "not one entry for each"),
    "type": ("closed_loop: [[a, b]]\ntype: [4d]", "neither 3d nor 6d"),
    "motor": ("closed_loop: []\nname_mot: [zz]", "no joint named 'zz'"),
    "joint type": (
        "closed_loop: []\njoint_name: [j]\njoint_type: [UJOINT_XX]",
        "did you mean .UJOINT",
    ),
    "no joint type": ("closed_loop: []\njoint_name: [j]\njoint_type: [[1]]", "no joint_type"),
    "half a joint": (
        "closed_loop: []\njoint_name: [j]\njoint_type: [UJOINT_XY]\nname_mot: [j]",
        "no joint named 'j'",
    ),
    "parts": ("submechanisms: {a: 1}", "not a list of mappings"),
    "names": ("submechanisms: [{jointnames: 3}]", "not a list of names"),
    "joint": ("submechanisms: [{jointnames: [zz]}]", "no joint named 'zz'"),
    "cut": ("submechanisms: [{loop_constraints: [{cut_joint: zz}]}]", "no joint named 'zz'"),
    "body": (
        "submechanisms: [{loop_constraints: [{cut_joint: j, predecessor_body: zz}]}]",
        "no link named 'zz'",
    ),
    "axes": (
        "submechanisms: [{loop_constraints: [{cut_joint: j, predecessor_body: a, "
        "successor_body: b}]}]",
        "no 'constraint_axes'",
    ),
    "axis": (
        "submechanisms: [{loop_constraints: [{cut_joint: j, predecessor_body: a, "
        "successor_body: b, constraint_axes: [{axis: [1, 2]}]}]}]",
        "six finite numbers",
    ),
    "slanted": (
        "submechanisms: [{loop_constraints: [{cut_joint: j, predecessor_body: a, "
        "successor_body: b, constraint_axes: [{axis: [0, 0, 0, 1, 1, 0]}]}]}]",
        "not along a coordinate",
    ),
}
ARM = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1"/></inertial></link><joint name="j" type="revolute">
<parent link="a"/><child link="b"/></joint></robot>"""


@pytest.mark.parametrize("case", YAML)
def test_yaml_beside_a_urdf(case, tmp_path):
    pytest.importorskip("yaml")
    text, message = YAML[case]
    (tmp_path / "robot.urdf").write_text(ARM)
    (tmp_path / "robot.yaml").write_text(text)
    with pytest.raises(GrublerError, match=message):
        load(tmp_path / "robot.yaml")


def test_gepetto_joint_types(tmp_path):
    pytest.importorskip("yaml")
    (tmp_path / "robot.urdf").write_text(ARM)
    (tmp_path / "robot.yaml").write_text(
        "closed_loop: []\njoint_name: [j]\njoint_type: [SPHERICAL]\nname_mot: []"
    )
    assert load(tmp_path / "robot.yaml").joint("j").kind == "spherical"
    (tmp_path / "two.yaml").write_text("closed_loop: []")
    (tmp_path / "other.urdf").write_text(ARM)
    with pytest.raises(ModelError, match="which URDF it belongs to is not clear"):
        load(tmp_path / "two.yaml")


# Fuzzing: mutations of real texts.

SOURCES = {
    "urdf+": "grbda_urdfplus/planar_leg_linkage.urdf",
    "drake": "cassie_dairlib_urdf/cassie_full_model.urdf",
    "head": "rh5_manus_hyrodyn/model/submechanisms_urdf/Head.urdf",
    "sdf": "stewart_sdf/stewart_sdf.sdf",
    "mjcf": "robotiq_2f85_mjcf/2f85.xml",
    "gepetto": "gepetto_5bar_linkage/robot.yaml",
    "hyrodyn": "rh5_manus_hyrodyn/model/submechanisms_urdf/submechanism_wrist.yml",
}
WORDS = [
    "nan", "inf", "-1", "0", "1e308", "", "world", "0 0 0", "true", "fixed", "revolute", "<",
    "</link>", "<loop/>", "\0", "é", "name", "base_link", "9" * 400, "*x", "[", "{", "- ",
]  # fmt: skip


@cache
def text_of(kind: str) -> str:
    return (MODELS / SOURCES[kind]).read_text()


def mutate(text: str, seed: int, count: int) -> str:
    """Words and lines replaced, dropped, doubled or swapped; the text cut."""
    rng = random.Random(seed)
    for _ in range(count):
        how = rng.randrange(6)
        i, j = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        lines = text.split("\n")
        k, l = (rng.randrange(len(lines)) for _ in range(2))
        if how == 0:
            words = text[i:].split('"', 2)
            if len(words) == 3:
                text = text[:i] + words[0] + '"' + rng.choice(WORDS) + '"' + words[2]
        elif how == 1:
            del lines[k]
            text = "\n".join(lines)
        elif how == 2:
            lines[k], lines[l] = lines[l], lines[k]
            text = "\n".join(lines)
        elif how == 3:
            lines.insert(k, lines[l])
            text = "\n".join(lines)
        elif how == 4:
            text = text[:i] + rng.choice(WORDS) + text[i + rng.randrange(4) :]
        elif rng.random() < 0.3:
            text = text[:j]
        text = text or "x"
    return text


@pytest.mark.parametrize("kind", SOURCES)
@settings(
    max_examples=60, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(seed=st.integers(0, 2**32), count=st.integers(1, 6))
def test_mutated_files(kind, tmp_path, seed, count):
    """Reading gives a description or an error of ours, within bounded time."""
    source = path(SOURCES[kind])
    if kind == "mjcf":
        pytest.importorskip("mujoco")
    file = tmp_path / source.name
    file.write_text(mutate(text_of(kind), seed, count), errors="replace")
    options = {}
    if kind in ("gepetto", "hyrodyn"):
        pytest.importorskip("yaml")
        urdf = "robot.urdf" if kind == "gepetto" else "left_wrist_mechanism.urdf"
        options["submechanisms"], file = file, source.parent / urdf
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FormatWarning)
            found = describe(file, **options)
            if kind not in ("drake", "sdf", "hyrodyn"):  # assembling what is broken takes long
                model = found.build()
    except GrublerError as error:
        assert str(error)
        return
    if kind not in ("drake", "sdf", "hyrodyn"):
        assert isinstance(model, gb.Model)
        assert np.all(np.isfinite(model.neutral()))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_any_bytes_are_xml_or_an_error(tmp_path_factory, data):
    file = tmp_path_factory.getbasetemp() / "bytes.xml"
    file.write_bytes(data)
    try:
        read_xml(file)
    except ModelError as error:
        assert "bytes.xml" in str(error)
