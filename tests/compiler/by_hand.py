"""Small mechanisms written out by hand: what the compiler is tried on."""

import numpy as np

import grubler.compiler as gc
from grubler.algebra.linalg import LDL
from grubler.algebra.spatial import Transform, cross_force, cross_motion, spatial_inertia
from grubler.mechanism.joints import Free, Revolute


def quadruped(legs=4, links=3):
    """Forward dynamics f(q, v, tau) of a floating base with legs of revolute joints, and nq, nv."""
    rng = np.random.default_rng(0)
    axes = [np.array([1.0, 0, 0]), np.array([0, 1.0, 0]), np.array([0, 1.0, 0])]
    joints, parents, places = [Free()], [-1], [Transform.identity()]
    for _ in range(legs):
        for link in range(links):
            joints.append(Revolute(axes[link % 3]))
            parents.append(0 if link == 0 else len(joints) - 2)
            offset = rng.uniform(-0.2, 0.2, 3) if link == 0 else np.array([0, 0, -0.2])
            places.append(Transform(np.eye(3), offset))
    inertias = [
        spatial_inertia(rng.uniform(0.5, 2), rng.uniform(-0.1, 0.1, 3), np.diag([0.02, 0.03, 0.04]))
        for _ in joints
    ]
    nq, nv = sum(j.nq for j in joints), sum(j.nv for j in joints)

    def forward_dynamics(q, v, tau):
        X, S, vel, c, IA, pA, qi, vi = [], [], [], [], list(inertias), [], 0, 0
        slices = []
        for i, joint in enumerate(joints):
            s = slice(vi, vi + joint.nv)
            slices.append(s)
            qj, vj = q[qi : qi + joint.nq], v[s]
            qi, vi = qi + joint.nq, vi + joint.nv
            X.append(joint.transform(qj) @ places[i])
            S.append(joint.subspace(qj))
            vJ = S[i] @ vj
            if parents[i] < 0:
                vel.append(vJ)
                c.append(np.zeros(6))
            else:
                vel.append(X[i].motion(vel[parents[i]]) + vJ)
                c.append(cross_motion(vel[i], vJ))
            pA.append(cross_force(vel[i], inertias[i] @ vel[i]))
        U, D, u = {}, {}, {}
        for i in reversed(range(len(joints))):
            U[i] = IA[i] @ S[i]
            D[i] = LDL(S[i].T @ U[i])
            u[i] = tau[slices[i]] - S[i].T @ pA[i]
            p = parents[i]
            if p >= 0:
                Ia = IA[i] - U[i] @ D[i].solve(U[i].T)
                pa = pA[i] + Ia @ c[i] + U[i] @ D[i].solve(u[i])
                IA[p] = IA[p] + X[i].congruence(Ia)
                pA[p] = pA[p] + X[i].force_back(pa)
        gravity = np.array([0, 0, 0, 0, 0, 9.81])
        a, qdd = [], []
        for i in range(len(joints)):
            up = gravity if parents[i] < 0 else a[parents[i]]
            ap = X[i].motion(up) + c[i]
            qdd.append(D[i].solve(u[i] - U[i].T @ ap))
            a.append(ap + S[i] @ qdd[i])
        return np.concatenate(qdd)

    return forward_dynamics, nq, nv


def star(limbs, mirrored=True, order=None):
    """A trunk that `limbs` limbs of two joints hang on: upwards, at the trunk, and down again."""
    order = range(limbs) if order is None else order

    def fn(q, v, base):
        signs = [(-1.0) ** i if mirrored else 1.0 + 0.1 * i for i in range(limbs)]
        total, up = base[0] * base[1], []
        for i in order:
            a, b = q[2 * i], q[2 * i + 1]
            s, c = np.sin(a), np.cos(a)
            reach = base[2] + signs[i] * 0.3 * base[3]
            inner = 1.5 + c * (b * b + 0.25) + v[2 * i] * reach
            drive = s * v[2 * i + 1] - signs[i] * 0.7 * inner
            outer = np.sqrt(inner * inner + 2.0) / (3.0 + drive * drive)
            total = total + outer * (0.5 + c)
            up.append((i, inner, drive, outer, s, c))
        trunk = base[3] / (4.0 + total * total)
        down = {}
        for i, inner, drive, outer, s, c in up:
            first = trunk * inner - drive * (s + outer)
            second = first * c - outer * (trunk + drive) + signs[i] * 0.11 * inner
            down[i] = [first, second * first - s * drive]
        return np.stack([x for i in range(limbs) for x in down[i]] + [trunk])

    return fn


def in_two_legs(q, v):
    """Two legs with a rare case that is computed otherwise, by values of the line around."""
    knee = [
        np.cos(q[i]) * v[i] + 0.3 * v[i] * v[i] - np.sin(q[i]) / (2.0 + v[i] * v[i]) for i in (0, 1)
    ]
    hip = [
        knee[i] * knee[i] + q[2 + i] * (knee[i] - 0.5) / (3.0 + q[2 + i] * q[2 + i]) for i in (0, 1)
    ]
    usual = np.stack([knee[0] * hip[0], knee[1] * hip[1], hip[0], hip[1]])

    def rarely():
        bent = [np.sin(knee[i]) * hip[i] + v[i] * np.sqrt(1.0 + hip[i] * hip[i]) for i in (0, 1)]
        turned = np.stack([bent[0] * knee[0], bent[1] * knee[1], bent[0], bent[1]])

        def hardly_ever():
            return np.stack([x * (knee[i % 2] - bent[i % 2] / 3.0) for i, x in enumerate(turned)])

        return gc.otherwise(bent[0] * bent[1] > 0.0, turned, hardly_ever)

    return gc.otherwise(hip[0] + hip[1] > 0.0, usual, rarely)
