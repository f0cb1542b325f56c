"""The viewer: a scene with its controls, on a server of its own."""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ..coordinates.limits import excess
from ..errors import InputError
from ..model import Model, as_vector
from ..sim import Trajectory
from . import panel
from .drawing import Drawing
from .playback import Playback
from .posture import Posture, Reach
from .scene import LAYERS, Scene, Snapshot

if TYPE_CHECKING:
    from ..typing import ArrayLike

FRAME = 1 / 30  # s between pictures while a trajectory plays
MANY = 40  # rows of a joint table that fit without being folded


@contextlib.contextmanager
def hushed() -> Any:
    """viser prints through rich when it starts and stops: not in between a program's own lines."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


class Viewer:
    """A robot in the browser, at `url`.

    Of a model, `set` moves an independent joint as its slider does and `show` takes a whole
    configuration; of a trajectory, `play`, `pause` and `seek`. `q` is what is shown, `message` why
    the last slider stopped short. Use it as a context manager, or `close` it.
    """

    server: Any
    model: Model
    trajectory: Trajectory | None

    def __init__(self, server: Any, model: Model, trajectory: Trajectory | None = None):
        self.server, self.model, self.trajectory = server, model, trajectory
        self.scene: Scene = Scene.of(model)
        self.posture: Posture = Posture(model, length=0.5 * self.scene.outline.size)
        self.playback: Playback | None = None if trajectory is None else Playback(trajectory.time)
        self.robot = 0
        self.message = ""
        self._lock = threading.RLock()
        self._pending: dict[str, float] = {}
        self._quiet = False
        self._closed = threading.Event()
        self._q = self.posture.q if trajectory is None else self._state()
        self._home = self._base(self.scene.snapshot(self._q))
        self._drawing = Drawing(server, self.scene, self.scene.room(self._q))
        self._build()
        self._draw()
        atexit.register(self.close)
        if self.playback is not None:
            threading.Thread(target=self._run, name="grubler-playback", daemon=True).start()

    # what a program may do

    @property
    def port(self) -> int:
        return self.server.get_port()

    @property
    def url(self) -> str:
        host = self.server.get_host()
        return f"http://{'localhost' if host in ('0.0.0.0', '127.0.0.1') else host}:{self.port}"

    @property
    def q(self) -> np.ndarray:
        """The configuration shown."""
        return self._q.copy()

    @property
    def gap(self) -> float:
        """The largest residual of any loop as shown, in m or rad."""
        return self.model.loop_gap(self._q)

    def set(self, name: str, value: float) -> Reach:
        """Move an independent joint, by its name in `model.v_names`; the dependent ones follow."""
        self._only("set", trajectory=False)
        with self._lock:
            reach = self.posture.move(name, value)
            self.message = reach.message
            self._take_posture()
            return reach

    def show(self, q: ArrayLike) -> None:
        """Show a configuration; of a model with sliders, it must be closed."""
        with self._lock:
            if self.trajectory is None:
                self.posture.reset(q)
                self.message = ""
                self._take_posture()
            else:
                self._q = as_vector("q", q, self.model.nq, self.model.q_names)
                self._draw()

    def reset(self) -> None:
        """Back to the neutral configuration, or to the start of the trajectory."""
        if self.trajectory is None:
            self.show(self.model.neutral())
        else:
            self.seek(self.playback.start)

    def play(self) -> None:
        self._only("play", trajectory=True)
        self.playback.play()
        self._show_playing()

    def pause(self) -> None:
        self._only("pause", trajectory=True)
        self.playback.pause()
        self._show_playing()

    def seek(self, t: float) -> None:
        """Show the trajectory at a time, in s."""
        self._only("seek", trajectory=True)
        with self._lock:
            self.playback.seek(t)
            self._take_state()

    def wait(self) -> None:
        """Until `close`, or Ctrl-C."""
        try:
            while not self._closed.wait(0.5):
                pass
        finally:
            self.close()

    def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            atexit.unregister(self.close)
            with hushed():
                self.server.stop()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_error: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed.is_set() else f"at {self.url}"
        return f"<Viewer of '{self.model.name}' {state}>"

    # what is shown

    def _only(self, what: str, trajectory: bool) -> None:
        if trajectory != (self.trajectory is not None):
            shown = "a model" if trajectory else "a trajectory"
            raise InputError(f"this viewer shows {shown}: it has no {what}()")

    def _state(self) -> np.ndarray:
        q = self.trajectory.q[self.playback.index]
        return q[self.robot] if self.trajectory.batched else q

    def _base(self, snapshot: Snapshot) -> np.ndarray:
        return snapshot.position[0]

    def _take_posture(self) -> None:
        self._q = self.posture.q
        self._quietly(self._sync_sliders)
        self._draw()

    def _take_state(self) -> None:
        self._q = self._state()
        self._quietly(self._sync_time)
        self._draw()

    def _draw(self) -> None:
        snapshot = self.scene.snapshot(self._q)
        held = self._hold is not None and self._hold.value
        self._drawing.show(snapshot, self._base(snapshot) - self._home if held else None)
        self._status.content = panel.status(snapshot, self.message)
        positions = self.model.unpack(self._q)
        beyond = {self.model.bodies[i].joint.name for i in excess(self.model.bodies, positions)}
        self._table.content = panel.joint_table(self._table_values(), beyond)

    def _table_values(self) -> dict[Any, Any]:
        if self.trajectory is None:
            return self.posture.dependent()
        positions = self.model.unpack(self._q)
        return {body.joint.name: positions[body.index] for body in self.model.bodies}

    def _quietly(self, change) -> None:
        """Change controls without being told of it."""
        self._quiet, before = True, self._quiet
        try:
            change()
        finally:
            self._quiet = before

    # controls

    def _build(self) -> None:
        gui = self.server.gui
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(44, 102, 178))
        gui.add_html(panel.heading(self.model, self.scene.missing))
        self._status = gui.add_html("")
        self._sliders: dict[str, object] = {}
        self._hold = None
        if self.trajectory is None:
            self._build_sliders(gui)
        else:
            self._build_playback(gui)
        values = self._table_values()
        title = "Dependent joints" if self.trajectory is None else "Joints"
        with gui.add_folder(title, expand_by_default=len(values) <= MANY):
            self._table = gui.add_html("")
        self._build_layers(gui)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(350)
        graph = gui.add_panel()
        with graph.add_tab("Clusters"):
            gui.add_html(panel.cluster_tree(self.model, self.scene.colours))
        graph.dock_left()
        graph.set_width(270)

    def _build_sliders(self, gui) -> None:
        postures = self.posture.sliders.values()
        folders = (
            ("Independent joints", [s for s in postures if not s.free], True),
            ("Floating base", [s for s in postures if s.free], False),
        )
        for title, sliders, expanded in folders:
            if not sliders:
                continue
            with gui.add_folder(title, expand_by_default=expanded):
                for slider in sliders:
                    low, high = round(slider.lower - 5e-4, 3), round(slider.upper + 5e-4, 3)
                    handle = gui.add_slider(
                        slider.name, low, high, 1e-3, round(self.posture.value(slider.name), 3),
                        hint=f"{slider.name}, in {slider.unit}",
                    )  # fmt: skip
                    handle.on_update(lambda _event, n=slider.name, h=handle: self._slid(n, h.value))
                    self._sliders[slider.name] = handle
        if self._sliders:
            gui.add_button("Reset").on_click(lambda _event: self.reset())

    def _slid(self, name: str, value: float) -> None:
        """A slider was dragged. While one move is computed, only the newest of the next waits."""
        if self._quiet:
            return
        self._pending[name] = value
        with self._lock:
            while self._pending:
                name, value = self._pending.popitem()
                self.message: str = self.posture.move(name, value).message
                self._q = self.posture.q
                self._draw()

    def _sync_sliders(self) -> None:
        for name, handle in self._sliders.items():
            value = round(self.posture.value(name), 3)  # more digits than a slider has room for
            handle.value = min(max(value, handle.min), handle.max)

    def _build_playback(self, gui) -> None:
        clock = self.playback
        with gui.add_folder("Playback"):
            self._button = gui.add_button("Play")
            self._button.on_click(lambda _event: self.pause() if clock.playing else self.play())
            span = max(clock.end - clock.start, 1e-3)
            self._time = gui.add_slider(
                "time [s]", clock.start, clock.start + span, span / 1000, clock.start
            )
            self._time.on_update(lambda _event: self._quiet or self.seek(self._time.value))
            speed = gui.add_slider("speed", 0.05, 2.0, 0.05, 1.0)
            speed.on_update(lambda _event: setattr(clock, "speed", speed.value))
            if self.trajectory.batched:
                robot = gui.add_slider("robot", 0, self.trajectory.q.shape[1] - 1, 1, 0)
                robot.on_update(lambda _event: self._choose(robot.value))
            if self.model.bodies[0].joint.kind == "free":
                self._hold = gui.add_checkbox("hold the base in view", False)
                self._hold.on_update(lambda _event: self._locked(self._draw))

    def _locked(self, action) -> None:
        with self._lock:
            action()

    def _choose(self, robot: int) -> None:
        with self._lock:
            self.robot: int = int(robot)
            self._take_state()

    def _show_playing(self) -> None:
        self._button.label = "Pause" if self.playback.playing else "Play"

    def _sync_time(self) -> None:
        self._time.value = float(np.clip(self.playback.now, self._time.min, self._time.max))

    def _run(self) -> None:
        before = time.monotonic()
        while not self._closed.wait(FRAME):
            now = time.monotonic()
            with self._lock:
                if self.playback.tick(now - before):
                    self._take_state()
            before = now

    def _build_layers(self, gui) -> None:
        with gui.add_folder("Show", expand_by_default=False):
            for layer in LAYERS:
                box = gui.add_checkbox(layer, True)
                box.on_update(
                    lambda _event, layer=layer, box=box: self._drawing.show_layer(layer, box.value)
                )
