"""Readers are bounded in time and memory, and in the files that they open."""

import os
import time

import pytest

from grubler.errors import GrublerError, InputError, ModelError
from grubler.formats import FormatWarning, describe, load
from grubler.formats._files import Files

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
ARM = f"""<robot name="r"><link name="a"/><link name="b">{INERTIAL}{{}}</link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/></joint></robot>"""
BODY = '<body name="b"><joint/><geom size="0.1"/></body>'


def mjcf(body: str = BODY, more: str = "") -> str:
    return f"<mujoco>{more}<worldbody>{body}</worldbody></mujoco>"


def within(seconds: float, action) -> str:
    """The message of the error that an action raises, well before an unbounded one would end."""
    start = time.process_time()
    with pytest.raises(GrublerError) as caught:
        action()
    assert time.process_time() - start < seconds
    return str(caught.value)


def said(source, **options) -> str:
    """What a reader has to say of a description."""
    return "\n".join(describe(source, **options).complaints.messages)


@pytest.fixture
def fifo(tmp_path):
    os.mkfifo(tmp_path / "pipe.xml")
    return tmp_path / "pipe.xml"


def test_only_regular_files_are_opened(fifo):
    for path in (fifo, "/dev/zero", fifo.parent):
        assert "not a regular file" in within(1, lambda path=path: load(path))


@pytest.mark.parametrize("tag", ["include", "Include", "model"])
@pytest.mark.parametrize("as_text", [True, False])
def test_mjcf_includes_only_regular_files(fifo, tag, as_text):
    pytest.importorskip("mujoco")
    for name in ("/dev/zero", str(fifo)):
        text = f'<mujoco><asset><{tag} file="{name}"/></asset>{mjcf()[8:]}'
        file = fifo.parent / "main.xml"
        file.write_text(text)
        source = text if as_text else file
        assert "not a regular file" in within(2, lambda source=source: load(source))


def test_special_files_beside_a_description_are_not_opened(fifo):
    pytest.importorskip("yaml")
    (fifo.parent / "robot.urdf").write_text(ARM.format(""))
    os.mkfifo(fifo.parent / "robot.yaml")
    assert "not a regular file" in within(1, lambda: load(fifo.parent / "robot.yaml"))
    sdf = """<sdf version="1.9"><model name="m"><link name="l"/><include><uri>pipe.xml</uri>
        </include></model></sdf>"""
    (fifo.parent / "m.sdf").write_text(sdf)
    assert "'pipe.xml' is not there" in said(fifo.parent / "m.sdf")


MULTIPLIED = {
    "one": '<replicate count="100000000"><geom size="1"/></replicate>',
    "nested": '<replicate count="1000"><replicate count="1000"><site/></replicate></replicate>',
    "capitals": '<Replicate count="100000000"><geom size="1"/></Replicate>',
    "grid": '<flexcomp type="grid" count="300 300 300" spacing="1 1 1" name="f" dim="3"/>',
}


@pytest.mark.parametrize("case", MULTIPLIED)
def test_what_an_mjcf_multiplies_is_counted_first(case):
    pytest.importorskip("mujoco")
    message = within(2, lambda: load(mjcf(BODY + MULTIPLIED[case])))
    assert "has more than 200,000 elements" in message or "entries: up to" in message


def test_an_included_file_counts_where_it_is_replicated(tmp_path):
    pytest.importorskip("mujoco")
    sites = "<site/>" * 1000
    (tmp_path / "part.xml").write_text(f"<mujoco>{sites}</mujoco>")
    part = '<replicate count="1000"><include file="part.xml"/></replicate>'
    (tmp_path / "main.xml").write_text(mjcf(BODY + part))
    assert "200,000 elements" in within(2, lambda: load(tmp_path / "main.xml"))


def test_what_an_mjcf_reserves_is_not_allocated():
    pytest.importorskip("mujoco")
    size = '<size memory="1000G" nkey="1000000000" nuserdata="1000000000" nuser_body="1000000000"/>'
    assert load(mjcf(more=size)).nv == 1
    field = '<asset><hfield name="h" nrow="20000" ncol="20000" size="1 1 1 1"/></asset>'
    assert "entries: up to" in within(2, lambda: load(mjcf(more=field)))


def test_included_files_end(tmp_path):
    pytest.importorskip("mujoco")
    for i in range(60):
        (tmp_path / f"{i}.xml").write_text(f'<mujoco><include file="{i + 1}.xml"/></mujoco>')
    assert "deeper than 40" in within(2, lambda: load(tmp_path / "0.xml"))


def test_models_within_models_end(tmp_path):
    inner = '<link name="l"/>'
    for i in range(150):
        inner = f'<link name="l"/><model name="m{i}">{inner}</model>'
    head = '<sdf version="1.9"><model name="m">'
    include = "<include><uri>{}.sdf</uri></include>"
    for i in range(3):
        nested = inner.replace('<model name="m0">', f'<model name="m0">{include.format(i + 1)}')
        (tmp_path / f"{i}.sdf").write_text(f"{head}{nested}</model></sdf>")
    (tmp_path / "3.sdf").write_text(f'{head}<link name="l"/></model></sdf>')
    assert "nested deeper than 200" in within(5, lambda: load(tmp_path / "0.sdf"))


def test_text_has_the_size_limit_of_a_file():
    assert "are read up to" in within(2, lambda: load("<robot>" + " " * 65 * 2**20))


def test_text_that_is_not_unicode_is_refused():
    with pytest.raises(ModelError, match="not valid Unicode"):
        load('<robot name="\ud800"/>')


def test_elements_and_bodies_are_counted(monkeypatch):
    assert "500000 elements" in within(20, lambda: load("<robot>" + "<a/>" * 500_001 + "</robot>"))
    monkeypatch.setattr("grubler.formats._description.MAX_BODIES", 1)
    assert load(ARM.format("").replace('<link name="a"/>', '<link name="world"/>').replace(
        '"a"', '"world"')).nv == 1  # fmt: skip
    assert "more than 1 bodies" in within(1, lambda: load(ARM.format("")))


def test_a_mesh_of_a_long_path_is_not_searched_for(tmp_path):
    path = "/".join("a" * 600)
    visuals = "".join(
        f'<visual><geometry><mesh filename="{path}{i}"/></geometry></visual>' for i in range(20)
    )
    folder = tmp_path / "/".join("b" * 20)
    folder.mkdir(parents=True)
    (folder / "r.urdf").write_text(ARM.format(visuals))
    start = time.process_time()
    model = load(folder / "r.urdf")
    assert time.process_time() - start < 1
    assert model.geometry[0][0].path is None


YAML = {
    "nested": ("[" * 900, "nested deeper than"),
    "blocks": ("\n".join(" " * i + "a:" for i in range(900)), "nested deeper than"),
    "large": ("a: " + "b" * 5 * 2**20, "up to 4 MiB"),
    "surrogate": ('a: "\\ud800"', "halves of characters"),
    "tag": ("a: !!timestamp x", "not well-formed"),
    "number": ("a: !!int ''", "not well-formed"),
    "key": ("? [a]\n: b", "not well-formed"),
    "loop of lists": ("closed_loop: [[[a], [b]]]", "not a pair of frames"),
    "type of a list": ("closed_loop: []\njoint_name: [j]\njoint_type: [[a]]", "no joint_type"),
    "body of a list": (
        "submechanisms: [{loop_constraints: [{cut_joint: j, predecessor_body: [a]}]}]",
        "no link named",
    ),
    "axis of booleans": (
        "submechanisms: [{loop_constraints: [{cut_joint: j, predecessor_body: a, "
        "successor_body: b, constraint_axes: [{axis: [0, 0, 0, true, 0, 0]}]}]}]",
        "six finite numbers",
    ),
}


@pytest.mark.parametrize("case", YAML)
def test_yaml_is_bounded(case, tmp_path):
    pytest.importorskip("yaml")
    text, message = YAML[case]
    (tmp_path / "robot.urdf").write_text(ARM.format(""))
    (tmp_path / "robot.yaml").write_text(text)
    assert message in within(2, lambda: load(tmp_path / "robot.yaml"))


XACRO = '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">{}</robot>'


def test_expressions_of_xacro_end(tmp_path, monkeypatch):
    pytest.importorskip("xacro")
    monkeypatch.setattr("grubler.formats._xacro.SECONDS", 2)
    file = tmp_path / "r.xacro"
    file.write_text(XACRO.format('<link name="${9**9**9}"/>'))
    assert "grows without bound" in within(2, lambda: load(file))
    with pytest.raises(InputError, match="cannot be bounded by root="):
        load(file, root=tmp_path)
    file.write_text(XACRO.format('<link name="${unknown}"/>'))
    with pytest.raises(ModelError, match=r"xacro refuses it: .*unknown"):
        load(file)


def test_a_xacro_of_macros_alone_is_told_so(tmp_path):
    pytest.importorskip("xacro")
    file = tmp_path / "arm.xacro"
    file.write_text(
        XACRO.format('<xacro:macro name="arm" params="x"><link name="l"/></xacro:macro>')
    )
    with pytest.raises(ModelError, match="only defines macros"):
        load(file)


# root=


@pytest.fixture
def tree(tmp_path):
    """A folder to read below, and files around it that must not be opened."""
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part.xml").write_text(mjcf())
    (tmp_path / "out" / "mesh.stl").write_text("")
    (tmp_path / "in" / "link.stl").symlink_to(tmp_path / "out" / "mesh.stl")
    (tmp_path / "out" / "part.sdf").write_text(
        '<sdf version="1.9"><model name="m"><link name="l"/></model></sdf>'
    )
    (tmp_path / "out" / "r.urdf").write_text(ARM.format(""))
    return tmp_path


@pytest.mark.parametrize("name", ["{}/out/r.urdf", "file://{}/out/r.urdf", "{}/in/../out/r.urdf"])
def test_root_bounds_the_description(tree, name):
    name = name.format(tree)
    assert load(name).nv == 1
    with pytest.raises(ModelError, match="is not below root="):
        load(name, root=tree / "in")
    assert load(name, root=tree).nv == 1


def test_root_bounds_packages(tree, monkeypatch):
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tree))
    assert load("package://out/r.urdf").nv == 1
    with pytest.raises(ModelError, match=r"package folders .below root="):
        load("package://out/r.urdf", root=tree / "in")


@pytest.mark.parametrize("name", ["{}/out/part.xml", "../out/part.xml"])
@pytest.mark.parametrize("tag", ["include", "model"])
def test_root_bounds_what_an_mjcf_includes(tree, name, tag):
    pytest.importorskip("mujoco")
    file = tree / "in" / "r.xml"
    name = name.format(tree)
    if tag == "include":
        file.write_text(f'<mujoco><include file="{name}"/></mujoco>')
    else:
        file.write_text(f'<mujoco><asset><model name="m" file="{name}"/></asset>{mjcf()[8:]}')
    assert load(file).nv == 1
    with pytest.raises(ModelError, match=f"line 1, <{tag}>: .*is not below root="):
        load(file, root=tree / "in")


@pytest.mark.parametrize("name", ["{}/out/mesh.stl", "../out/mesh.stl", "link.stl"])
def test_root_bounds_meshes(tree, name):
    files = Files(tree / "in", root=tree / "in")
    assert Files(tree / "in").mesh(name.format(tree)) is not None
    assert files.mesh(name.format(tree)) is None
    assert files.mesh("package://out/mesh.stl") is None
    assert Files(tree / "in").mesh("package://out/mesh.stl") is not None


def test_root_bounds_meshes_of_mjcf(tree):
    pytest.importorskip("mujoco")
    asset = f'<asset><mesh name="m" file="{tree}/out/mesh.stl"/></asset>'
    body = '<body name="b"><joint/><geom size="0.1"/><geom type="mesh" mesh="m"/></body>'
    file = tree / "in" / "r.xml"
    file.write_text(mjcf(body, asset))
    with pytest.raises(ModelError, match="MuJoCo refuses it"):
        load(file)  # it is opened, and is no mesh
    with pytest.warns(FormatWarning, match="its mesh is missing"):
        assert load(file, root=tree / "in").nv == 1


def test_root_bounds_what_an_sdf_includes(tree):
    text = '<sdf version="1.9"><model name="m"><link name="l"/><include><uri>{}</uri></include>'
    for name in ("../out/part.sdf", f"file://{tree}/out/part.sdf", "model://part.sdf"):
        file = tree / "in" / "r.sdf"
        file.write_text(text.format(name) + "</model></sdf>")
        assert "is not there" in said(file, root=tree / "in", package_dirs=[tree / "out"])
        assert "is not there" not in said(file, package_dirs=[tree / "out"])


def test_root_is_a_folder(tree):
    with pytest.raises(InputError, match="is not a folder"):
        load(ARM.format(""), root=tree / "out" / "r.urdf")


def test_nested_includes_are_found_as_mujoco_finds_them(tmp_path):
    """Beside the main file, else beside the file that names it: MuJoCo reads the same bodies."""
    mujoco = pytest.importorskip("mujoco")
    places = [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    places[-1].mkdir(parents=True)
    (tmp_path / "main.xml").write_text('<mujoco><include file="a/1.xml"/></mujoco>')
    (tmp_path / "a" / "1.xml").write_text('<mujoco><include file="b/2.xml"/></mujoco>')
    (tmp_path / "a" / "b" / "2.xml").write_text('<mujoco><include file="3.xml"/></mujoco>')
    for k, place in enumerate(places):
        (place / "3.xml").write_text(mjcf(BODY.replace('"b"', f'"b{k}"')))
    for expected in ("b0", "b2"):
        known = mujoco.MjModel.from_xml_path(str(tmp_path / "main.xml"))
        model = load(tmp_path / "main.xml", strict=True)
        assert known.body(1).name == model.bodies[0].name == expected
        (places[int(expected[1])] / "3.xml").unlink()
    with pytest.raises(ModelError, match=r"2.xml, line 1, <include>: cannot read .*3.xml"):
        load(tmp_path / "main.xml")


def test_the_command_line_bounds_files_too(tree, capsys):
    from grubler.cli import main

    name = str(tree / "out" / "r.urdf")
    assert main(["check", name, "--root", str(tree / "in")]) == 1
    assert "is not below root=" in capsys.readouterr().out
    assert main(["check", name, "--root", str(tree)]) == 0


@pytest.mark.parametrize("kind", ["urdf", "sdf"])
def test_a_chain_of_thousands_of_links_is_read_in_linear_time(kind):
    parts = {
        "urdf": (
            f'<link name="l{{0}}">{INERTIAL}</link>',
            '<joint name="j{0}" type="revolute"><parent link="l{1}"/><child link="l{0}"/></joint>',
            '<robot name="r">{}</robot>',
        ),
        "sdf": (
            '<link name="l{0}"><inertial><mass>1</mass></inertial></link>',
            '<joint name="j{0}" type="revolute"><parent>l{1}</parent><child>l{0}</child></joint>',
            '<sdf version="1.9"><model name="m">{}</model></sdf>',
        ),
    }
    link, joint, frame = parts[kind]
    seconds = []
    for n in (1000, 8000):
        links = [link.format(i) for i in range(n)]
        text = frame.format("".join(links + [joint.format(i, i - 1) for i in range(1, n)]))
        start = time.process_time()
        assert describe(text).builder.size == n
        seconds.append(time.process_time() - start)
    assert seconds[1] < 24 * seconds[0]  # 8 is linear, 64 is quadratic
