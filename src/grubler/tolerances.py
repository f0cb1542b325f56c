"""Every tolerance of the library: what it bounds, in which unit, and where the number comes from.

Names say what is judged. Shares are of the largest number of their kind.
"""

from __future__ import annotations

# Rows of constraints (constrained/)

ROW_RANK = 1e-9  # share of singular values: rows on one body are constant, only rounding is below
KKT_RANK = 1e-5  # share of singular values of M^(-1/2) J'; those of J M⁻¹ J' are their squares
FRAME_RANK = 1e-6  # share of a Jacobian's size, at a random posture: some posture is regular
GROUP_RANK = 1e-9  # share of rows and of Lie brackets below which free motions form a group
MOVED_ROW = 1e-6  # velocity of a row per √(energy) below which joints together do not move it
ON_AXIS = 1e-14  # m: a point nearer to a hinge's axis is on it
RESOLVED = 1e-6  # residual per acceleration at which rows count as satisfied
PIVOT = 1e-10  # share of its diagonal entry at which a pivot of redundant rows counts as zero
PIVOT_NOISE = 100.0  # times the precision: a pivot below this share is rounding error in any case
ROTATION = 1e-6  # entries of R R' - 1 of a rotation that a user gives
TURNING = 1e-12  # entries: rows known as numbers turn with a hinge, up to rounding

# PV-early (constrained/plan.py, guard.py)

NO_LEVER = 1e-12  # |K S|² of a joint that does not move a row
SHORT_LEVER = 2e-6  # |K S|² by the longest: below at every posture, the joint never takes a row
# Mass × acceleration / force above which a solution is refined: with the acceleration of a free
# base, and with those of links on a fixed base. Errors beyond 1e-12 in double precision were seen
# from 1.7e3 and from 9e2 on (a dozen robots, 1e5 states each, nearly singular ones among them).
TRUSTED, TRUSTED_FIXED = 1e3, 3e2
# Squares of the relative change in refinement, in terms of the precision. What is left after a
# change of 1e-7 in double precision is below 1e-12, and in most cases its square.
REFINED = 45.0
ACCURATE = 4.5e-11  # a change of 1e-13: a solution as accurate as that need not be refined
