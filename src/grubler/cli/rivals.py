"""The same robot in Pinocchio and MuJoCo, at the same state, ready to be timed."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import grubler as gb

from ..errors import GrublerError
from ..model import Model


def calls(function: str, model: Model, state: Any) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """({label: (call, result in our layout)}, {library: why it is left out})."""
    found, missing = {}, {}
    for library, make in (("Pinocchio", _pinocchio), ("MuJoCo", _mujoco)):
        try:
            found |= make(function, model, *state)
        except ImportError:
            missing[library] = "not installed (pip install grubler[bench])"
        except (GrublerError, ValueError, RuntimeError) as error:
            missing[library] = str(error).splitlines()[0]
    return found, missing


def _saved(model: Model, suffix: str) -> str:
    """The text of a model's file; what the format loses besides the dynamics is of no interest."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / f"robot{suffix}"
        gb.save(model, path)
        return path.read_text()


def _pinocchio(function: str, model: Model, q, v, x) -> dict[Any, Any]:
    import pinocchio as pin

    other = pin.buildModelFromXML(_saved(model, ".urdf"))
    data = other.createData()
    if function == "inverse_dynamics":
        theirs = gb.convert.to_pinocchio(model, other, q, v, a=x)
        last = theirs.a
    else:
        theirs = gb.convert.to_pinocchio(model, other, q, v, tau=x)
        last = theirs.tau
    names = {"forward_dynamics": "aba", "inverse_dynamics": "rnea", "mass_matrix": "crba"}
    name = names[function]
    arguments = (theirs.q,) if name == "crba" else (theirs.q, theirs.v, last)
    call = getattr(pin, name)

    def run():
        return call(other, data, *arguments)

    def result():
        out = np.array(run())
        if name == "crba":
            return _mass_matrix(out, model, other, q)
        return _back(model, other, q, v, out, name)

    label = f"Pinocchio {name}"
    if model.loops:  # it has the spanning tree; what its forces do in our coordinates is projected
        label += ", loops left out" if name == "aba" else ", spanning tree (projection untimed)"
    return {label: (run, result)}


def _back(model: Model, other, q, v, out, name: str):
    """Their accelerations or forces in our coordinates."""
    theirs = gb.convert.to_pinocchio(model, other, q, v)
    key = {"aba": "a", "rnea": "tau"}[name]
    return getattr(gb.convert.from_pinocchio(model, other, theirs.q, theirs.v, **{key: out}), key)


def _mass_matrix(out, model: Model, other, q):
    """M by columns: the momentum of each unit velocity of ours."""
    upper = np.triu(out)
    full = upper + np.triu(upper, 1).T
    unit = np.eye(model.nv)
    spread = np.array([gb.convert.to_pinocchio(model, other, q, e).v for e in unit])
    return spread @ full @ spread.T


def _mujoco(function: str, model: Model, q, v, x) -> dict[Any, Any]:
    import mujoco

    if function != "forward_dynamics":
        return {}
    m = mujoco.MjModel.from_xml_string(_saved(model, ".xml"))
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    d = mujoco.MjData(m)
    theirs = gb.convert.to_mujoco(model, m, q, v, tau=x)
    d.qpos[:], d.qvel[:], d.qfrc_applied[:] = theirs.q, theirs.v, theirs.tau

    def run():
        mujoco.mj_forward(m, d)

    def result():
        run()
        return gb.convert.from_mujoco(model, m, d.qpos, d.qvel, a=d.qacc).a

    label = "MuJoCo mj_forward" + (", loops as equalities" if model.loops else "")
    return {label: (run, result)}
