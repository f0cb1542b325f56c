"""Jacobians of constraint rows, for the methods that work in joint space."""

from __future__ import annotations

import numpy as np

from ..algorithms.first_pass import base_acceleration
from ..algorithms.kinematics import accelerations


def jacobian_and_drift(model, states, rows):
    """J (m, nv) and l with J a + l + R λ = 0 over all blocks; l is None without velocities."""
    moving = bool(states) and states[0].v is not None
    bias = accelerations(states, None, base_acceleration(model)) if moving else None
    J, l = [], []
    for block in rows:
        columns: dict = {}
        drift = block.l
        for k, F in block.ends.items():
            drift = drift + F.T @ bias[k] if moving else None
            for j, part in path_jacobian(model, states, k, F).items():
                columns[j] = columns[j] + part if j in columns else part
        parts = [columns.get(c.index, np.zeros((block.m, c.nv))) for c in model.clusters]
        J.append(np.concatenate(parts, axis=1))
        l.append(drift)
    return np.concatenate(J), np.concatenate(l) if moving else None


def path_jacobian(model, states, k: int, F) -> dict:
    """By cluster: the rows F' on cluster k as functions of the joints on its path to the base."""
    columns = {}
    while True:
        columns[k] = F.T @ states[k].S
        parent = model.clusters[k].parent
        if parent is None:
            return columns
        F, k = states[k].X.forces_back(F), parent


def softness(rows):
    """The diagonal R over all blocks, zero where hard."""
    return np.concatenate([np.zeros(b.m) if b.R is None else b.R for b in rows])


def split(rows, x) -> list:
    """A stacked vector by block."""
    out, start = [], 0
    for block in rows:
        out.append(x[start : start + block.m])
        start += block.m
    return out
