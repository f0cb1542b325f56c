"""The descriptions that are mutated: small ones of every format, and those of ../shared/models."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "models"
LARGEST = 60_000  # characters
READ = {  # tags whose elements are read, with all their attributes
    "robot": {"link", "inertial", "mass", "inertia", "origin", "joint", "parent", "child", "axis",
              "limit", "mimic", "dynamics", "loop", "coupling", "predecessor", "successor", "ratio",
              "loop_joint", "link1", "link2"},
    "sdf": {"world", "model", "link", "inertial", "pose", "mass", "inertia", "ixx", "iyy", "izz",
            "ixy", "ixz", "iyz", "joint", "parent", "child", "axis", "axis2", "xyz", "limit",
            "dynamics", "frame"},
}  # fmt: skip


@dataclass
class Source:
    """A description: its file's name, its text, and the files that belong to it."""

    name: str
    text: str
    beside: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The tag of the root element, or "yaml"."""
        found = re.search(r"<(robot|sdf|mujoco)\b", self.text)
        return found[1] if found and self.name.endswith((".urdf", ".sdf", ".xml")) else "yaml"


BODY = """<link name="{0}"><inertial><origin xyz="0 0 0.1" rpy="0 0.1 0"/><mass value="1"/>
<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/></inertial></link>"""
HINGE = """<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/>
<origin xyz="{4}" rpy="0 0 0"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" effort="10" velocity="5"/><dynamics damping="0.1" friction="0.2"/>{5}
</joint>"""
FOUR_BAR = "\n".join([
    '<robot name="four_bar">', BODY.format("base"), *(BODY.format(x) for x in "abcd"),
    HINGE.format("j1", "revolute", "base", "a", "0 0 0", ""),
    HINGE.format("j2", "continuous", "a", "b", "0 0 0.2", ""),
    HINGE.format("j3", "revolute", "base", "c", "0.5 0 0", ""),
    HINGE.format("j4", "prismatic", "c", "d", "0 0 0.1", '<mimic joint="j1" multiplier="2"/>'),
    '<loop name="pin" type="revolute"><predecessor link="b"><origin xyz="0.5 0 0"/></predecessor>',
    '<successor link="c"><origin xyz="0 0 0.2"/></successor><axis xyz="0 1 0"/></loop>',
    '<transmission name="t"><type>transmission_interface/SimpleTransmission</type>',
    '<joint name="j1"/><actuator name="m"><mechanicalReduction>50</mechanicalReduction></actuator>',
    "</transmission>", "</robot>",
])  # fmt: skip
TREE = FOUR_BAR[: FOUR_BAR.index("<loop ")] + "</robot>"
TREE = TREE.replace("</robot>", BODY.format("tip") + "\n" + HINGE.format(
    "cut", "fixed", "b", "tip", "0.5 0 0", "") + "</robot>")  # fmt: skip
GEPETTO = """closed_loop: [[tip, d]]
type: ['3d']
name_mot: [j1]
joint_name: [j2]
joint_type: [SPHERICAL]
"""
HYRODYN = """submechanisms:
  - contextual_name: bar
    type: NUMERICAL
    jointnames_spanningtree: [j1, j2, j3]
    jointnames_independent: [j1]
    jointnames_active: [j1]
    loop_constraints:
      - cut_joint: cut
        predecessor_body: b
        successor_body: c
        constraint_axes:
          - {axis: [0, 0, 0, 1, 0, 0]}
          - {axis: [0, 0, 0, 0, 0, 1]}
"""


def _documented() -> list[Source]:
    """The descriptions in the documents, which use most elements of each format."""
    text = (ROOT / "docs" / "formats.md").read_text()
    found = []
    for block in re.findall(r"```xml\n(.*?)```", text, re.DOTALL):
        for tag, ending in (("robot", "urdf"), ("sdf", "sdf"), ("mujoco", "xml")):
            if block.startswith(f"<{tag}"):
                found.append(Source(f"documented.{ending}", block))
    return found


SDF = """<sdf version="1.9"><world name="w"><gravity>0 0 -9.8</gravity><model name="m">
<frame name="f" attached_to="a"><pose>0.1 0 0 0 0 0</pose></frame>
{0}<joint name="j1" type="revolute"><parent>world</parent><child>a</child><axis><xyz>0 1 0</xyz>
<limit><lower>-1</lower><upper>1</upper></limit><dynamics><damping>0.1</damping></dynamics></axis>
</joint><joint name="j2" type="universal"><pose relative_to="f"/><parent>a</parent><child>b</child>
<axis><xyz expressed_in="__model__">1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint>
<joint name="j3" type="screw"><parent>b</parent><child>c</child><axis><xyz>0 0 1</xyz></axis>
<screw_thread_pitch>0.1</screw_thread_pitch></joint>
<joint name="j4" type="revolute"><parent>world</parent><child>d</child><axis><xyz>0 1 0</xyz></axis>
</joint><joint name="g" type="gearbox"><parent>a</parent><child>d</child><axis><xyz>0 1 0</xyz>
</axis><axis2><xyz>0 1 0</xyz></axis2><gearbox_ratio>2</gearbox_ratio>
<gearbox_reference_body>world</gearbox_reference_body></joint></model></world></sdf>"""
SDF_LINK = """<link name="{0}"><pose>0 0 {1} 0 0 0.1</pose><inertial><pose>0 0 0.1 0 0 0</pose>
<mass>1</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial></link>
"""
MJCF = """<mujoco model="m"><compiler angle="radian"/><option gravity="0 0 -9.81"/>
<default><joint damping="0.1" armature="0.01"/><default class="c"><geom size="0.1"/></default>
</default>
<asset><mesh name="lost" file="lost.stl"/></asset>
<worldbody><body name="a" pos="0 0 1"><freejoint name="f"/><geom class="c" mass="1"/>
<body name="b" pos="0.2 0 0"><joint name="j1" axis="0 1 0" ref="0.1" range="-1 1" stiffness="2"/>
<joint name="j2" type="slide" axis="1 0 0"/><inertial pos="0.1 0 0" mass="1" diaginertia="1 1 1"/>
<geom name="g" type="mesh" mesh="lost" mass="0"/><site name="s" pos="0.1 0 0"/></body>
<body name="c" pos="-1 0 0"><joint name="j3" axis="0 1 0"/><geom type="box" size="0.1 0.1 0.2"/>
<body name="d" pos="0.1 0 0"><joint name="j4" type="ball"/><geom class="c"/></body></body>
<replicate count="2" offset="0 1 0"><body><joint axis="0 1 0"/><geom class="c"/></body>
</replicate></body></worldbody>
<tendon><fixed name="t"><joint joint="j1" coef="1"/><joint joint="j3" coef="2"/></fixed></tendon>
<equality><connect body1="b" body2="d" anchor="0.1 0 0"/>
<joint joint1="j2" joint2="j1" polycoef="0 1 0 0 0"/><tendon tendon1="t" active="false"/></equality>
<actuator><motor name="m" joint="j1" gear="5"/><position joint="j2" kp="3"/></actuator>
<contact><pair geom1="g" geom2="g2"/></contact>
<keyframe><key name="home" qpos="0 0 1 1 0 0 0 0 0 0 1 0 0 0 0 0"/></keyframe></mujoco>"""
MJCF = MJCF.replace('type="box"', 'name="g2" type="box"')


def sources() -> list[Source]:
    """All sources, the small ones of our own three times, since they are quick."""
    beside = {"robot.urdf": TREE}
    own = [
        Source("four_bar.urdf", FOUR_BAR), Source("tree.urdf", TREE),
        Source("robot.yaml", GEPETTO, beside), Source("robot.yml", HYRODYN, beside),
        Source("m.sdf", SDF.format("".join(SDF_LINK.format(x, 0.1) for x in "abcd"))),
        Source("m.xml", MJCF), *_documented(),
    ]  # fmt: skip
    found = 3 * own
    for path in sorted(SHARED.rglob("*")) if SHARED.is_dir() else ():
        if path.suffix not in (".urdf", ".sdf", ".xml", ".yaml", ".yml") or not path.is_file():
            continue
        text = path.read_text(errors="replace")
        if len(text) > LARGEST:
            continue
        near = {}
        if path.suffix in (".yaml", ".yml"):
            near = {p.name: p.read_text() for p in path.parent.glob("*.urdf")}
        found.append(Source(path.name, text, near))
    return found
