"""The contact problem solved by Pinocchio's solvers, on the same G, g and friction."""

import numpy as np


def solved(pin, kind: str, G, g, friction):
    """Impulses (3 c,) by "admm" or "pgs"."""
    robot = pin.buildSampleModelManipulator()
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for mu in friction:
        point = pin.PointContactConstraintModel(robot, 1, pin.SE3.Identity())
        point.setFriction(mu)
        models.append(point)
        datas.append(point.createData())
    solvers = {
        "admm": (pin.ADMMConstraintSolver, pin.ADMMSolverSettings, pin.ADMMSolverResult),
        "pgs": (pin.PGSConstraintSolver, pin.PGSSolverSettings, pin.PGSSolverResult),
    }
    solver, settings, result = (kind() for kind in solvers[kind])
    settings.max_iterations = 10_000
    settings.solve_ncp = True
    for name in ("absolute", "relative"):
        setattr(settings, f"{name}_complementarity_tol", 1e-12)
        setattr(settings, f"{name}_feasibility_tol", 1e-12)
    delassus = pin.DelassusOperatorDense(np.asarray(G))
    solver.solve(delassus, np.asarray(g), models, datas, settings, result)
    return np.asarray(result.retrieveConstraintImpulses())
