"""The papers' algorithms as they are printed: dense matrices, NumPy, no saving of operations.

They are for reading beside the papers, and the tests compare the fast algorithms with them. They
share with those only the model: its bodies, joints, clusters, and each cluster's G and g.

| module    | function                     | paper                                             |
|-----------|------------------------------|---------------------------------------------------|
| `joints`  | `cluster_joints`             | [C] Algorithm 1, lines 2 to 19                    |
| `c_rnea`  | `inverse_dynamics`           | [C] Sec. VI                                       |
| `c_aba`   | `forward_dynamics`           | [C] Sec. VII, Algorithm 1                         |
| `c_efpa`  | `inverse_osim`               | [C] Sec. VIII                                     |
| `pv`      | `constrained_forward_dynamics` | [P] Sec. V, Algorithm 1                         |
| `pv_osim` | `inverse_osim`               | [P] Sec. VII, Algorithm 2                         |

[C] Chignoli, Adrian, Kim, Wensing: Recursive Rigid-Body Dynamics Algorithms for Systems with
Kinematic Loops. [P] Sathya, Bruyninckx, Decré, Pipeleers: Efficient Constrained Dynamics Algorithms
based on an Equivalent LQR Formulation using Gauss' Principle of Least Constraint.

Arguments are floats, one state a call. Import the modules:

    from grubler.algorithms.reference import c_aba
    a = c_aba.forward_dynamics(model, q, v, tau)
"""
