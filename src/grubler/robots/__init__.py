"""The zoo: robots with and without loops, written from published facts.

model = grubler.robots.load("mini_cheetah")
chain = grubler.robots.load("gt_chain", n=20)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..arguments import public
from ..errors import InputError, ModelError, unknown
from ..model import Model
from .arm7 import arm7
from .chains import gt_chain, pbt_chain, robot_a, robot_b
from .jvrc1 import jvrc1
from .linkages import four_bar, parallel_four_bar, planar_leg_linkage, six_bar
from .mini_cheetah import mini_cheetah, quadruped
from .mit_humanoid import humanoid, mit_humanoid, mit_humanoid_leg
from .samplers import joint_sampler, loop_sampler
from .tello import tello, tello_explicit

_ROBOTS: dict[str, Callable[..., Model]] = {
    robot.__name__: robot
    for robot in (
        mini_cheetah, mit_humanoid, mit_humanoid_leg, tello, tello_explicit, jvrc1,
        gt_chain, pbt_chain, robot_a, robot_b,
        four_bar, parallel_four_bar, six_bar, planar_leg_linkage,
        arm7, quadruped, humanoid,
        joint_sampler, loop_sampler,
    )
}  # fmt: skip


def names() -> list[str]:
    """The names of the robots that `load` knows."""
    return list(_ROBOTS)


@public
def load(name: str, **options: Any) -> Model:
    """Build a robot of the zoo; its options are the arguments of the function of that name."""
    if name not in _ROBOTS:
        raise ModelError(unknown("robot", name, _ROBOTS))
    robot = _ROBOTS[name]
    known = inspect.signature(robot).parameters
    for option in options:
        if option not in known:
            raise InputError(f"robot '{name}': {unknown('option', option, known)}")
    return robot(**options)
