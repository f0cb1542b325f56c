"""Simulation: steps on the manifold with loops that never drift, and trajectories.

sim = Simulator(model, dt=1e-3, integrator="rk4")
trajectory = sim.run(q, v, controller, steps=1000)
"""

from .passive import Passive
from .simulator import SimulationError, Simulator
from .trajectory import Trajectory, load

__all__ = ["Passive", "SimulationError", "Simulator", "Trajectory", "load"]
