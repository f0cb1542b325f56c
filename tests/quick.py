"""The quick tier: `make quick`, under a minute on two cores, one robot a feature, mostly floats.

It is for the minute between two edits; `make test` is everything. A file is listed with the tests
that are left out of it, the slow ones; of tests that take robots of the zoo only those on ROBOTS
count.
"""

from __future__ import annotations

ROBOTS = ("arm7", "mini_cheetah", "four_bar", "joint_sampler")  # tree, gears, closed loop, joints
FILES: dict[str, tuple[str, ...]] = {
    "test_actuation": (),
    "test_architecture": (),
    "test_bad_input": (),
    "test_broken_files": (),
    "test_closed_chain": (),
    "test_cost": (),
    "test_dialect": (),
    "test_docs": (
        "test_the_build_has_no_warnings", "test_start_runs", "test_loops_run",
        "test_constraints_run", "test_extensions_work", "test_simulate_runs",
    ),
    "test_export": (),
    "test_external_forces": (),
    "test_identities": (
        "test_energy_rate_equals_power", "test_tello_implicit_and_closed_form_agree",
    ),
    "test_joints": (),
    "test_mjcf": (),
    "test_model": (),
    "test_ops": (),
    "test_order": (),
    "test_osim_methods": (),
    "test_pv_reference": (),
    "test_recognise": (),
    "test_reference": ("test_random_mechanisms",),
    "test_rows": (),
    "test_sdf": (),
    "test_shapes": (),
    "test_signs": (),
    "test_small_parts": (),
    "test_sums": (),
    "test_tape": ("test_passes_keep_the_value_of_random_programs",),
    "test_urdf": (),
    "test_wrong_calls": ("test_drawn_calls",),
    "test_zoo": (),
}  # fmt: skip


def is_quick(item, robots: list[str]) -> bool:
    """True if a collected test belongs to the quick tier; `robots` are the names of the zoo."""
    name = getattr(item, "originalname", item.name)
    if name in FILES.get(item.path.stem, (name,)):
        return False
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    first = {value.split()[0] for value in values if isinstance(value, str) and value.split()}
    return first.isdisjoint(set(robots) - set(ROBOTS))
