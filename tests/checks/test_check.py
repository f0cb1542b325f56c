"""Reports on mechanisms: of the zoo, of parallel ones, and of broken ones."""

import json

import numpy as np
import pytest

import grubler as gb
from conftest import load
from formats.shared_models import shared
from grubler.checks import check
from grubler.model.exchange import analytic
from linkages import ankle, link, stewart


def test_every_robot_is_usable(model):
    report = check(model, samples=2)
    assert report.ok and not report.errors, report.errors
    text = report.table()
    assert model.name in text and f"mobility {model.nv}" in text and text == str(report)
    data = json.loads(report.to_json())
    assert data["ok"] and data["bodies"] == len(model.bodies)
    assert data["mobility"]["rank"] == model.nv
    assert data["mobility"]["spatial"] <= model.nv
    assert sum(data["joints"].values()) == len(model.joints)
    assert data["closure"]["assembled"] < 1e-10
    added = sum(loop["added"] for loop in data["loops"])
    assert model.nv_span - added == model.nv  # rank and mobility agree


class TestMobility:
    def test_planar_four_bar(self):
        m = check(load("four_bar"), samples=3).mobility
        assert (m.spatial, m.planar, m.rank) == (-2, 1, 1)
        assert m.reasons == ["loop 'pin': it moves in a plane, so 3 of its 5 rows always hold"]

    def test_spatial_platform(self):
        m = check(stewart(), samples=1).mobility
        assert (m.tree_freedoms, m.rows, m.spatial, m.planar, m.rank) == (24, 18, 6, None, 6)
        assert m.reasons == []

    def test_special_geometry_and_repeated_loops(self):
        """Welds and sliders in the plane; a second ball beside the first adds nothing."""
        m = check(load("loop_sampler"), samples=1)
        rows = {loop.name: loop for loop in m.loops}
        assert rows["slider_crank"].planar and rows["slider_crank"].redundant == 3
        assert rows["welded"].planar and m.mobility.planar == m.mobility.rank
        b = gb.ModelBuilder("twice")
        link(b, "crank", "crank", "revolute", "world", axis=(0, 1, 0))
        link(b, "coupler", "coupler", "revolute", "crank", xyz=(0.2, 0, 0), axis=(0, 1, 0))
        link(b, "rocker", "rocker", "revolute", "world", xyz=(0.5, 0, 0), axis=(0, 1, 0))
        for name, y in (("front", 0.0), ("back", 0.1)):
            b.add_loop(name, "ball", "coupler", "rocker", predecessor_xyz=(0.45, y, 0),
                       successor_xyz=(0.4, y, 0))  # fmt: skip
        report = check(b, samples=2, given={"crank": 1.0, "coupler": -0.5, "rocker": 1.6})
        assert report.ok and report.mobility.rank == 1
        assert "2 repeat what the loops before it impose" in report.mobility.reasons[1]
        assert [loop.added for loop in report.loops] == [2, 0]


class TestIdle:
    def rod(self, bodies=1):
        b = gb.ModelBuilder("rod")
        link(b, "arm", "arm", "revolute", "world", axis=(0, 1, 0))
        link(b, "rocker", "rocker", "revolute", "world", xyz=(0.5, 0.1, 0), axis=(0, 1, 0.3))
        link(b, "rod", "ball", "spherical", "arm", xyz=(0.2, 0, 0))
        last = "rod"
        if bodies == 2:
            link(b, "piston", "slide", "prismatic", "rod", axis=(1, 0, 0))
            last = "piston"
        b.add_loop("tip", "ball", last, "rocker", predecessor_xyz=(0.4, 0, 0),
                   successor_xyz=(0.0, 0.0, 0.3))  # fmt: skip
        return b

    @pytest.mark.parametrize(("bodies", "names"), [(1, ("rod",)), (2, ("rod", "piston"))])
    def test_rods_that_spin(self, bodies, names):
        report = check(self.rod(bodies), samples=3, given={"arm": 0.2})
        assert [idle.bodies for idle in report.idle] == [names]
        assert report.idle[0].motion == "spins" and report.idle[0].loop == "tip"
        assert any("spin" in text for text in report.warnings)

    def test_a_rod_that_carries_something_is_not_idle(self):
        b = self.rod()
        link(b, "flag", "flag", "revolute", "rod")
        assert check(b, samples=2, given={"arm": 0.2}).idle == ()

    def test_none_elsewhere(self):
        assert not check(load("six_bar"), samples=1).idle
        assert not check(ankle(), samples=1).idle


class TestConditioning:
    def test_near_a_singularity(self):
        report = check(load("parallel_four_bar"), samples=30)
        (p,) = report.partitions
        assert p.rows == 5 and p.rank == 2 and p.closing == "numeric"
        assert p.condition <= p.worst and 0 < p.distance < 1

    def test_closed_forms_are_named(self):
        report = check(analytic(ankle()), samples=2)
        assert [p.closing for p in report.partitions] == ["2SPU+1U"]
        assert report.partitions[0].independent == ("pitch", "roll")
        assert "2SPU+1U" in report.table()

    def test_same_figures_in_closed_form(self):
        one = check(load("four_bar"), samples=0).partitions[0]
        two = check(analytic(load("four_bar")), samples=0).partitions[0]
        assert np.isclose(one.condition, two.condition) and np.isclose(one.distance, two.distance)


class TestDrives:
    def test_statuses(self):
        def drive(motors, floating=False):
            b = gb.ModelBuilder("d")
            link(b, "a", "a", "free" if floating else "revolute", "world")
            link(b, "b", "b", "revolute", "a", xyz=(0.3, 0, 0))
            for i, joint in enumerate(motors):
                b.add_actuator(f"m{i}", joint)
            return check(b, samples=1).drives

        assert drive(["a", "b"]).status == "fully"
        assert drive(["b"]).status == "under" and drive(["b"]).unactuated == ("a",)
        assert drive(["a", "b", "b"]).status == "over"
        assert drive(["b", "b"]).status == "both"
        assert drive([]).status == "none"
        assert drive(["b"], floating=True).unactuated[0] == "a:wx"

    def driven_rod(self, motors=("arm",)) -> gb.ModelBuilder:
        """A flying base with a rod that spins between an arm and a rocker, and two more hinges."""
        b = gb.ModelBuilder("driven rod")
        link(b, "base", "base", "free", "world")
        link(b, "arm", "arm", "revolute", "base", axis=(0, 1, 0))
        link(b, "rocker", "rocker", "revolute", "base", xyz=(0.5, 0.1, 0), axis=(0, 1, 0.3))
        link(b, "rod", "ball", "spherical", "arm", xyz=(0.2, 0, 0))
        b.add_loop("tip", "ball", "rod", "rocker", predecessor_xyz=(0.4, 0, 0),
                   successor_xyz=(0.0, 0.0, 0.3))  # fmt: skip
        for name in ("head", "tail"):
            link(b, name, name, "revolute", "base", xyz=(-0.2, 0, 0.1))
        for joint in motors:
            b.add_actuator(f"{joint} motor", joint)
        return b

    def test_what_no_actuator_moves(self):
        """The base's six and the rod's spin need no motor; the others are counted and named."""
        report = check(self.driven_rod(), samples=3, given={"arm": 0.2})
        drives = report.drives
        assert len(report.idle) == 1 and len(drives.unactuated) == 9
        assert drives.missing == ("head", "tail")
        assert "no actuator moves 2 of the coordinates: head, tail" in report.warnings
        lines = report.table().splitlines()
        assert "  moved by none: head, tail" in lines
        others = next(line for line in lines if "free bodies and idle links" in line)
        assert "base:wx" in others and "head" not in others
        assert check(self.driven_rod(("rocker", "head")), samples=1).drives.missing == ("tail",)
        full = check(self.driven_rod(("arm", "head", "tail")), samples=1)
        assert full.drives.missing == () and not any("no actuator" in w for w in full.warnings)

    def test_long_lists_say_how_many_more(self):
        b = gb.ModelBuilder("chain")
        for i in range(9):
            link(b, f"b{i}", f"j{i}", "revolute", f"b{i - 1}" if i else "world", xyz=(0.1, 0, 0))
        b.add_actuator("motor", "j0")
        (text,) = [w for w in check(b, samples=1).warnings if "no actuator" in w]
        assert text == "no actuator moves 8 of the coordinates: j1, j2, j3, j4, j5 and 3 more"

    @pytest.mark.parametrize("name", [
        "cassie_mjcf/cassie.xml", "cassie_dairlib_urdf/cassie_full_model.urdf",
    ])  # fmt: skip
    def test_count_of_missing_ones(self, name):
        """Freedoms less the rank of the actuators' map, idle freedoms and the base's six."""
        model = shared(name)
        report = check(model, samples=2)
        J = gb.actuator_map(model, model.random_state(0)[0])
        free = sum(6 for body in model.bodies if body.joint.kind == "free")
        count = model.nv - np.linalg.matrix_rank(J) - free - len(report.idle)
        assert len(report.drives.missing) == count
        assert set(report.drives.missing) <= set(report.drives.unactuated)

    def test_reflected_inertia(self):
        """A rotor behind a gear on a link that turns about its axis: exact equals armature."""
        b = gb.ModelBuilder("gear")
        b.add_body("link", 2.0, (0, 0, 0.1), (0.01, 0, 0, 0.01, 0, 0.02))
        b.add_body("rotor", 0.1, inertia=(1e-5, 0, 0, 1e-5, 0, 2e-5))
        for name in ("link", "rotor"):
            b.add_joint(name, "revolute", "world", name)
        b.add_coupling("gear", "rotor", {"link": 10.0})
        b.add_actuator("motor", "rotor")
        (drive,) = check(b, samples=3).drives.actuators
        assert drive.dependent and drive.joint == "rotor"
        assert np.isclose(drive.exact, 2e-5 + 0.02 / 100)
        assert np.isclose(drive.armature, drive.exact) and drive.armature_error < 1e-12
        assert np.isclose(drive.variation, 1.0)

    def test_variation_over_the_workspace(self):
        drives = check(ankle(), samples=10).drives
        assert all(d.least < d.exact <= d.most for d in drives.actuators)
        assert max(d.armature_error for d in drives.actuators) > 0.05  # rods are not rotors


class TestLimits:
    def test_within(self):
        assert check(load("arm7"), samples=1).beyond_limits == ()

    def test_a_loop_that_cannot_keep_them(self):
        """The rocker is asked for angles that its rod does not reach."""
        b = gb.ModelBuilder("asked too much")
        for name, x, high in (("crank", 0.0, None), ("rocker", 0.5, 3.1)):
            link(b, name, name, "revolute", "world", xyz=(x, 0, 0), axis=(0, 1, 0),
                 lower=None if high is None else 3.0, upper=high)  # fmt: skip
        link(b, "rod", "rod", "revolute", "crank", xyz=(0.1, 0, 0), axis=(0, 1, 0))
        b.add_loop("pin", "revolute", "rod", "rocker", predecessor_xyz=(0.5, 0, 0),
                   successor_xyz=(0.3, 0, 0), axis=(0, 1, 0))  # fmt: skip
        model = b.build()
        report = check(model, samples=2)
        (found,) = report.beyond_limits
        assert (found.joint, found.lower, found.upper) == ("rocker", 3.0, 3.1)
        assert not found.lower <= found.position <= found.upper
        assert any("has joint 'rocker' at" in text for text in report.warnings)
        assert json.loads(report.to_json())["beyond_limits"][0]["joint"] == "rocker"

    def test_a_reference_beyond(self):
        b = gb.ModelBuilder("wish")
        link(b, "arm", "arm", "revolute", "world", lower=-1.0, upper=1.0)
        assert [x.joint for x in check(b, samples=1, given={"arm": 1.5}).beyond_limits] == ["arm"]
        assert check(b, samples=1).beyond_limits == ()


class TestBroken:
    def test_builder_that_cannot_be_built(self):
        b = gb.ModelBuilder("floating")
        b.add_body("a", 1.0, inertia=(1, 0, 0, 1, 0, 1))
        report = check(b)
        assert not report.ok and "'a' is not connected" in report.errors[0]
        assert "CANNOT BE USED" in report.table() and not json.loads(report.to_json())["ok"]

    def test_reader_that_raises(self):
        def read():
            raise FileNotFoundError("no file 'x.urdf'")

        report = check(read)
        assert not report.ok and report.name == "read" and "x.urdf" in report.errors[0]

    def test_loops_that_cannot_close(self):
        b = gb.ModelBuilder("short")
        for name, x in (("left", 0.0), ("right", 2.0)):
            link(b, name, name, "revolute", "world", xyz=(x, 0, 0), axis=(0, 1, 0))
        b.add_loop("rope", "distance", "left", "right", predecessor_xyz=(0.5, 0, 0),
                   successor_xyz=(0.5, 0, 0), distance=0.1)  # fmt: skip
        report = check(b)
        assert not report.ok and "'rope' cannot be closed" in report.errors[0]

    def test_massless_bodies(self):
        b = gb.ModelBuilder("light")
        link(b, "arm", "arm", "revolute", "world")
        b.add_body("ghost")
        b.add_joint("ghost", "revolute", "arm", "ghost", xyz=(0.1, 0, 0))
        report = check(b, samples=1)
        assert not report.ok and "coordinate 'ghost' moves no inertia" in report.errors[0]
        assert report.drives is None and report.mobility.rank == 2
        assert "null" in report.to_json() or report.to_json()

    def test_wrong_argument(self):
        with pytest.raises(gb.InputError, match="check needs a Model"):
            check(3)
        with pytest.raises(gb.InputError, match="this one returned NoneType"):
            check(lambda: None)

    def test_errors_of_programs_are_not_hidden(self):
        def read():
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            check(read)


def test_open_as_given():
    report = check(load("four_bar"), samples=1, given={"crank": 0.3})
    assert report.closure.given > 0.01 and report.closure.worst_loop == "pin"
    assert any("is open by" in text for text in report.warnings)
    assert check(load("arm7"), samples=1).closure.given is None
