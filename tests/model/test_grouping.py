"""Which bodies form a cluster: the cheapest tree of clusters, or the clusters asked for."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

import grubler as gb
from grubler.model.grouping import cost, group_bodies


def graph(parents, loops, freedoms=()):
    bodies = [
        SimpleNamespace(index=i, parent=p, name=f"b{i}", joint=SimpleNamespace(nv=nv))
        for i, (p, nv) in enumerate(zip(parents, freedoms or [1] * len(parents), strict=True))
    ]
    return bodies, [SimpleNamespace(bodies=loop, name="loop") for loop in loops]


def partitions(n, start=()):
    """Every way to label n things by groups."""
    if len(start) == n:
        yield start
        return
    for label in range(max(start, default=-1) + 2):
        yield from partitions(n, (*start, label))


def is_tree(parents, group) -> bool:
    """Every group hangs from one other, or from the world."""
    ups = {}
    for i, p in enumerate(parents):
        up = -1 if p < 0 else group[p]
        if up != group[i] and ups.setdefault(group[i], up) != up:
            return False
    return True


def cheapest(parents, loops, freedoms, closed=()) -> float | None:
    """The least cost over all partitions that are trees and keep loops and `closed` together."""
    costs = [
        cost(np.bincount(group, weights=freedoms))
        for group in ALL[len(parents)]
        if all(len({group[i] for i in loop}) == 1 for loop in loops)
        and all({i for i in range(len(group)) if group[i] == group[c[0]]} == set(c) for c in closed)
        and is_tree(parents, group)
    ]
    return min(costs, default=None)


ALL = {n: list(partitions(n)) for n in range(2, 9)}


def random_graph(rng, n):
    world = 0.3 if rng.random() < 0.3 else 0.0
    parents = [-1]
    parents += [-1 if rng.random() < world else int(rng.integers(i)) for i in range(1, n)]
    loops = [
        rng.choice(n, size=min(n, int(rng.integers(2, 4))), replace=False).tolist()
        for _ in range(rng.integers(1, 4))
    ]
    return parents, loops


def test_random_graphs_get_the_cheapest_clusters():
    """A thousand random coupling graphs of up to eight bodies, against all partitions."""
    rng = np.random.default_rng(0)
    for k in range(1000):
        n = int(rng.integers(2, 9 if k % 10 == 0 else 8))  # 4,140 partitions of eight bodies
        parents, loops = random_graph(rng, n)
        freedoms = rng.choice([1, 1, 2, 3, 6], size=n).tolist() if k % 2 else [1] * n
        found = group_bodies(*graph(parents, loops, freedoms))
        group = {i: g for g, members in enumerate(found.groups) for i in members}
        assert sorted(group) == list(range(n)) and is_tree(parents, group)
        assert found.cheapest
        sizes = [sum(freedoms[i] for i in members) for members in found.groups]
        assert cost(sizes) == cheapest(parents, loops, freedoms), (parents, loops, freedoms)


def test_clusters_asked_for_are_honoured_or_refused():
    """With one cluster asked for, too, the rest is as cheap as it can be; what is refused is
    impossible."""
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(200):
        n = int(rng.integers(3, 7))
        parents, loops = random_graph(rng, n)
        closed = rng.choice(n, size=int(rng.integers(1, n)), replace=False).tolist()
        least = cheapest(parents, loops, [1] * n, [closed])
        if least is None:
            refused += 1
            with pytest.raises(gb.ModelError, match="clusters="):
                group_bodies(*graph(parents, loops), [closed])
            continue
        found = group_bodies(*graph(parents, loops), [closed])
        assert sorted(closed) in found.groups
        assert cost(map(len, found.groups)) == least
    assert 20 < refused < 180


def test_parents_come_first():
    rng = np.random.default_rng(2)
    for _ in range(50):
        parents, loops = random_graph(rng, 12)
        seen = {-1}
        for members in group_bodies(*graph(parents, loops)).groups:
            assert all(parents[i] in seen or parents[i] in members for i in members)
            seen |= set(members)


def test_large_graphs_are_fast_and_say_what_is_not_proven():
    rng = np.random.default_rng(5)
    parents = [-1] + [int(rng.integers(max(0, i - 30), i)) for i in range(1, 500)]
    loops = [rng.choice(500, size=2, replace=False).tolist() for _ in range(40)]
    start = time.process_time()
    found = group_bodies(*graph(parents, loops))
    assert time.process_time() - start < 30  # seconds; about two on one core
    assert not found.cheapest
    group = {i: g for g, members in enumerate(found.groups) for i in members}
    assert is_tree(parents, group)
    assert all(len({group[i] for i in loop}) == 1 for loop in loops)


def hand(fingers: int, **options) -> gb.Model:
    """Motors in the forearm drive fingers on the other side of a wrist of two joints."""
    b, rng = gb.ModelBuilder("hand"), np.random.default_rng(0)

    def link(name, parent, axis):
        moments = np.diag(rng.uniform(1.0, 1.5, 3) * 1e-3)
        b.add_body(name, 0.2, rng.uniform(-0.05, 0.05, 3), moments)
        b.add_joint(f"j {name}", "revolute", parent, name, xyz=rng.uniform(-0.1, 0.1, 3), axis=axis)

    link("forearm", "world", (0, 0, 1))
    link("wrist", "forearm", (1, 0, 0))
    link("palm", "wrist", (0, 1, 0))
    for i in range(fingers):
        link(f"motor {i}", "forearm", rng.standard_normal(3))
        link(f"finger {i}", "palm", rng.standard_normal(3))
        b.add_coupling(f"tendon {i}", f"j finger {i}", ratios={f"j motor {i}": 0.3})
    return b.build(**options)


def old_way(fingers: int) -> list[list[str]]:
    names = [f"{kind} {i}" for i in range(fingers) for kind in ("motor", "finger")]
    return [["wrist", "palm", *names]]


def test_a_hand_merges_its_wrist_and_not_its_motors():
    model = hand(6)
    assert [len(c.bodies) for c in model.clusters] == [3, *[2] * 6] and not model.notes
    other = hand(6, clusters=old_way(6))
    assert [len(c.bodies) for c in other.clusters] == [1, 14]
    (q, v), rng = model.random_state(0), np.random.default_rng(3)
    tau = rng.standard_normal(model.nv)
    order = [other.v_names.index(name) for name in model.v_names]
    place = np.argsort(order)
    a = gb.forward_dynamics(model, q, v, tau)
    b = gb.forward_dynamics(other, q[place], v[place], tau[place])
    np.testing.assert_allclose(b[order], a, rtol=1e-11, atol=1e-11)


def test_a_floating_base_is_merged_last():
    """Motors on the base drive knees two joints further down: the legs take them, not the base."""
    for freedoms, sizes in ((6, [1, 4, 4]), (1, [3, 3, 3])):
        parents = [-1, 0, 1, 2, 0, 0, 5, 6, 0]
        bodies, loops = graph(parents, [(4, 3), (8, 7)], [freedoms] + [1] * 8)
        assert sorted(map(len, group_bodies(bodies, loops).groups)) == sizes


def test_many_fingers_need_fewer_operations_so():
    old = hand(20, clusters=old_way(20))
    fewer, more = (gb.count_operations(gb.forward_dynamics, m).total for m in (hand(20), old))
    assert fewer < 0.8 * more


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        ([["motor 0", "forearm"]], "loop 'tendon 0' joins 'forearm' to 'finger 0'"),
        ([["wrist"]], "hangs from that of"),
        ([["palm", "wrist"], ["palm", "forearm"]], r"'palm' is in clusters\[0\], too"),
        ([["plam"]], "did you mean 'palm'"),
        ([["world", "palm"]], "only bodies that move"),
        ([[]], "give a list of names"),
        (["palm"], "give a list of names"),
        (0.5, r"clusters is 0\.5: give"),
        ([0.0], r"clusters\[0\] is 0\.0: give a list of names"),
    ],
)
def test_impossible_clusters_are_refused_with_the_reason(clusters, message):
    with pytest.raises(gb.GrublerError, match=message):
        hand(2, clusters=clusters)


def test_a_reader_takes_clusters_too():
    urdf = """<robot name="r"><link name="base"/>
      <link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="ja" type="revolute"><parent link="base"/><child link="a"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
      <joint name="jb" type="revolute"><parent link="a"/><child link="b"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
    </robot>"""  # noqa: E501
    assert len(gb.load(urdf).clusters) == 2
    assert len(gb.load(urdf, clusters=[["a", "b"]]).clusters) == 1
