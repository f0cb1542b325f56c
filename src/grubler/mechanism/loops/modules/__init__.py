"""Analytic modules: loops closed in closed form (Kumar et al., Sec. III).

| module                  | solves                                    | file                |
|-------------------------|-------------------------------------------|---------------------|
| `FourBar`               | two revolute joints of a planar loop      | `four_bar.py`       |
| `SliderCrank`           | a prismatic joint of one (RRPR, lambda)   | `slider_crank.py`   |
| `Recut`                 | either, closed by a weld or a slider      | `recut.py`          |
| `UpsLeg`, `RusLeg`      | a leg of a parallel platform: 2SPU+1U, 6-UPS | `legs.py`        |
| `SpuLeg`                | the same leg on a ball joint, cut at its universal one | `ball_leg.py` |
| `Differential`          | the motors of Tello's two differentials   | `differentials.py`  |
| `ParallelBelts`         | motors on belts along a chain of links    | `belts.py`          |

`recognise` finds all but the last two in a cluster by its structure; those are named.
"""

from typing import Any

from .ball_leg import SpuLeg
from .base import ClosedForm
from .belts import ParallelBelts, parallel_belts
from .differentials import Differential, tello_hip, tello_knee
from .four_bar import FourBar
from .legs import RusLeg, UpsLeg
from .planar import plane_normal
from .recognise import candidates, choose_branches, module_name, recognise
from .recut import Recut
from .slider_crank import SliderCrank

# Modules that a description names, by kind: fn(name, links, motors, **options).
NAMED: dict[Any, Any] = {
    "parallel_belts": parallel_belts,
    "tello_hip": tello_hip,
    "tello_knee": tello_knee,
}

__all__ = [
    "NAMED", "ClosedForm", "Differential", "FourBar", "ParallelBelts", "Recut", "RusLeg",
    "SliderCrank", "SpuLeg", "UpsLeg", "candidates", "choose_branches", "module_name",
    "parallel_belts", "plane_normal", "recognise", "tello_hip", "tello_knee",
]  # fmt: skip
