"""Loops: what closes a tree of bodies into a mechanism. One kind, one file.

Every kind gives its rows of the implicit form φ(q) = 0, K qd = 0, K qdd = k (2) over the tree
joints that it involves, as blocks by body; kinds that know it also give the explicit form (3).
"""

from .base import Loop
from .coupling import LinearCoupling, PolynomialCoupling
from .custom import ExplicitConstraint, ImplicitConstraint
from .joint import LOOP_KINDS, LoopJoint

__all__ = [
    "LOOP_KINDS",
    "ExplicitConstraint",
    "ImplicitConstraint",
    "LinearCoupling",
    "Loop",
    "LoopJoint",
    "PolynomialCoupling",
]
