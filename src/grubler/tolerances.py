"""The tolerances of the library: what each bounds, its unit, and where the number comes from.

Names say what is judged. Shares are relative to the largest number of their kind. Numbers without
another source are choices: well above rounding errors, well below what matters to a mechanism.
"""

from __future__ import annotations

# Numbers of a description

ROUNDING = 1e-14  # m, and of 1 in rotations: less is the rounding of an exact zero
ROTATION = 1e-6  # entries of R R' - 1 of a rotation that a user gives
UNIT = 1e-6  # length of a user's quaternion from 1
LIMIT_SLACK = 1e-9  # rad or m: rounding of a joint that stands at its limit
AXES_MEET = 1e-7  # m: axes that pass closer than this meet; round-off of CAD files stays below

# Loops (coordinates/, mechanism/loops/)

ASSEMBLED = 1e-12  # rad or m: the gap that assembly aims at
SAMPLED = 1e-14  # rad or m: the gap that Newton steps of samples aim at; OPEN_LOOP is good enough
OPEN_LOOP = 1e-7  # rad or m: an open loop beyond this is an error; round-off of CAD files is below
GIVEN_POSITION = 1e-7  # rad or m: a dependent position that a user gives, from where its loop is
GIVEN_VELOCITY = 1e-6  # share: a dependent velocity that a user gives, from that of its loop
WRONG_LOOP = 1e-5  # rad or m: loops that assembly leaves open by more are wrong, not rounded
ROUNDED_LOOP = 1e-4  # rad or m: loops that stay open by less while they move were rounded
SAME_POSE = 1e-6  # m, or entries of rotations: round-off of closed loops near a dead point
CLOSED_FORM = 1e-7  # rad or m: the gap that a closed form may leave, round-off of CAD files
DEAD_POINT = 1e-6  # sine: bars of a closed form that meet at a smaller angle are stretched
CANDIDATE_DEAD_POINT = 1e-3  # sine: the same, where another closed form may be chosen

# Ranks and conditions of loops

RANK_CERTAIN = 1e-3  # a scaled singular value of K above this is a constraint
RANK_NOISE = 1e-9  # one below this is round-off of double precision
RANK_ALIKE = 1e-7  # the gap that assembly leaves: singular values below it are all alike
PARTITION_RANK = 1e-6  # share of singular values below which they are round-off
PARTITION_CONDITION = 1e7  # of K_d: a chosen partition worse than this is refused
SAMPLED_CONDITION = 1e4  # of K_d: beyond this a sample is too near to the partition's singularity
POOR_CONDITION = 1e3  # of K_d: beyond this a check warns
LOST_PIVOT = 1e-9  # share of a pivot of K_d below which the partition is lost
RIGID = 1e-8  # share of velocities, or rad and m: joints that move less never move

# Inertia

NO_INERTIA = 1e-12  # share of the largest, and after scaling of 1, below which H has no inertia
SINGULAR_MASS = 1e12  # a mass matrix with a larger condition is as good as singular
ENERGY_NOISE = 1e-7  # share of the total energy: rounding of its potential part

# Rows of constraints (constrained/)

ROW_RANK = 1e-9  # share of singular values: rows on one body are constant, only rounding is below
KKT_RANK = 1e-5  # share of singular values of M^(-1/2) J'; those of J M⁻¹ J' are their squares
CLOSURE_RANK = 1e-12  # share of singular values of the inertia seen at closures of robots
FRAME_RANK = 1e-6  # share of a Jacobian's size, at random postures, of which some are regular
GROUP_RANK = 1e-9  # share of rows and of Lie brackets below which free motions form a group
MOVED_ROW = 1e-6  # |K S| over all joints, in 1 or m: below, no joint moves the row
ON_AXIS = 1e-14  # m: a point nearer to a hinge's axis is on it
RESOLVED = 1e-6  # residual per acceleration at which rows count as satisfied
PIVOT = 1e-10  # share of its diagonal entry at which a pivot of redundant rows counts as zero
PIVOT_NOISE = 100.0  # times the precision: a pivot below this share is rounding error in any case
TURNING = 1e-12  # entries: rows known as numbers turn with a hinge, up to rounding
TILT = 1e-9  # m/s²: a robot placed in a common world keeps its gravity

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
