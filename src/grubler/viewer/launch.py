"""Starting a viewer: arguments, the optional dependency, the port."""

from __future__ import annotations

import contextlib
import socket
import webbrowser

import numpy as np

from ..errors import InputError
from ..model import Model
from ..sim import Trajectory
from .viewer import Viewer, hushed

HOST = "127.0.0.1"
LAST_PORT = 65535


def view(
    what: Model | Trajectory, *, port: int = 8080, open_browser: bool = False, block: bool = True,
    host: str = HOST,
) -> Viewer:  # fmt: skip
    """Show a model or a trajectory in the browser.

    A model gets sliders for its independent joints, and the dependent ones follow by closure; a
    trajectory is played. With `block`, returns when interrupted (Ctrl-C); without, at once, and
    the viewer lives until `close()` or the end of the program. `port=0` takes any free port.
    `host="0.0.0.0"` lets other machines of the network in. Needs the extra `grubler[view]`.
    """
    model, trajectory = _subject(what)
    _check_port(port)
    viser = _viser()
    port = _free_port(host, port)
    with hushed():
        server = viser.ViserServer(host=host, port=port, label="grubler", verbose=False)
    if server.get_port() != port:  # taken in between: viser moves on without a word
        with hushed():
            server.stop()
        raise InputError(_in_use(host, port))
    try:
        viewer = Viewer(server, model, trajectory)
    except BaseException:
        with hushed():
            server.stop()
        raise
    if open_browser:
        webbrowser.open(viewer.url)
    if block:
        print(f"{model.name}: {viewer.url} (Ctrl-C ends)", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            viewer.wait()
    return viewer


def _subject(what) -> tuple[Model, Trajectory | None]:
    if isinstance(what, Trajectory):
        model, trajectory = what.model, what
        if not len(trajectory):
            raise InputError("the trajectory holds no state: there is nothing to play")
    elif isinstance(what, Model):
        model, trajectory = what, None
    else:
        fix = "a Model or a Trajectory"
        if isinstance(what, str):
            fix += f": load it with gb.load({what!r}) or gb.robots.load({what!r})"
        raise InputError(f"cannot view a {type(what).__name__}: give {fix}")
    if not model.bodies:
        raise InputError(f"model '{model.name}' has no bodies: there is nothing to view")
    return model, trajectory


def _viser():
    try:
        import viser
    except ImportError as error:
        raise ImportError("the viewer needs viser: pip install grubler[view]") from error
    return viser


def _check_port(port) -> None:
    whole = isinstance(port, (int, np.integer)) and not isinstance(port, bool)
    if not whole or not 0 <= port <= LAST_PORT:
        raise InputError(
            f"port is {port!r}: give a whole number from 0 (any free one) to {LAST_PORT}"
        )


def _free_port(host: str, port: int) -> int:
    """The port itself if it is free, any free one for 0, an error that names a free one else."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except PermissionError:
            raise InputError(f"port {port} needs privileges: take one above 1023") from None
        except socket.gaierror:
            raise InputError(f"host {host!r} is unknown: give an address of this machine") from None
        except OSError as error:
            if not _taken(host, port):
                raise InputError(f"cannot listen on {host}:{port}: {error.strerror}") from None
            raise InputError(_in_use(host, port)) from None
        return probe.getsockname()[1]


def _taken(host: str, port: int) -> bool:
    """Whether only this port is the trouble, not the host."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True


def _in_use(host: str, port: int) -> str:
    message = f"port {port} is in use"
    for other in range(port + 1, min(port + 100, LAST_PORT + 1)):
        with (
            socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe,
            contextlib.suppress(OSError),
        ):
            probe.bind((host, other))
            return f"{message}: port {other} is free, or take any with port=0"
    return f"{message}: take any free one with port=0"
