"""A robot in the browser: bodies, joints, clusters and loops, sliders, trajectories.

viewer = view(model)                 # sliders of the independent joints, the others follow
viewer = view(trajectory)            # played

`scene` and `outline` say what to draw, `posture` what a slider does, `playback` what a clock does;
none of them knows the browser. `drawing` and `viewer` hand it all to viser, `launch` starts it.
"""

from .launch import view
from .viewer import Viewer

__all__ = ["Viewer", "view"]
