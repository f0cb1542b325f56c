"""Which bodies form a cluster, so that the clusters are a tree (Sec. IV).

Bodies whose joints meet in one loop must move together: they are merged. Further merges make the
clusters a tree, in which every cluster hangs from one parent cluster. Among all ways to merge, the
search takes the cheapest.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import Any

from ..errors import ModelError
from ..mechanism.loops import Loop
from ..mechanism.parts import WORLD, Body

WORK = 300_000  # bodies of all groupings rated before the search gives up: about a second
CONFLICT = 30  # a conflict takes as long to rate as this many bodies (measured)
DIVES = 8  # trees are then made without a search from so many groupings, of big robots from fewer


@dataclass(frozen=True)
class Grouping:
    """Body indices by cluster, in regular order (parents first). `cheapest` is False where the
    search ended before it could prove that no grouping costs less."""

    groups: list[list[int]]
    cheapest: bool = True


def cost(sizes: Iterable[int]) -> int:
    """Sum of l³ over clusters whose tree joints have l degrees of freedom in all.

    Counting bodies instead would join the six freedoms of a floating base with a leg's first joint
    as readily as two hinges, which takes 5 to 25 % more operations (measured on quadrupeds).
    """
    return sum(size**3 for size in sizes)


def group_bodies(
    bodies: Sequence[Body], loops: Sequence[Loop], wanted: Sequence[Sequence[int]] = ()
) -> Grouping:
    """The cheapest clusters that form a tree.

    `wanted` are clusters asked for, as body indices: no other body joins them.

    Clusters form a tree if every one hangs from a single cluster (or from the world). A cluster
    with two parents is mended in one of three ways: the parents merge, or one of the two joins the
    cluster. Merging never makes a grouping cheaper, so the first tree that a best-first search
    meets is the cheapest.
    """
    group = _joined(len(bodies), [*wanted, *(loop.bodies for loop in loops)])
    _check_wanted(bodies, loops, wanted, group)
    closed = {group[members[0]] for members in wanted}
    found, cheapest = _search(bodies, tuple(group), closed)
    if found is None:
        raise ModelError(_no_tree(bodies, group, closed))
    return Grouping(_ordered(bodies, found), cheapest)


def _joined(n: int, sets: Iterable[Iterable[int]]) -> list[int]:
    """The label of each of n bodies, where all bodies of a set share one: the first of them."""
    label = list(range(n))

    def first(i: int) -> int:
        while label[i] != i:
            label[i] = i = label[label[i]]
        return i

    for members in sets:
        firsts = {first(i) for i in members}
        for i in firsts:
            label[i] = min(firsts)
    return [first(i) for i in range(n)]


def _search(
    bodies: Sequence[Body], start: tuple[Any, ...], closed: set[Any]
) -> tuple[tuple[Any, ...] | None, bool]:
    """The cheapest tree that merging can reach, or None; and whether that is proven."""
    first = _rated(bodies, start, 0)
    open_, seen, work = [first], {start}, 0
    while open_ and work < WORK:
        _, conflicts, _, group, conflict = heapq.heappop(open_)
        if conflict is None:
            return group, True
        work += len(bodies) + CONFLICT * conflicts
        for merged in _mended(group, conflict, closed):
            if merged not in seen:
                seen.add(merged)
                heapq.heappush(open_, _rated(bodies, merged, len(seen)))
    if not open_:
        return None, True
    starts = [first, *heapq.nsmallest(DIVES // (1 + len(bodies) // 100), open_)]
    dives = [_dive(bodies, group, closed) for *_, group, _ in starts]
    trees = [(_price(bodies, group), group) for group in dives if group]
    return min(trees, default=(0, None))[1], False


def _dive(
    bodies: Sequence[Body], group: tuple[Any, ...], closed: set[Any]
) -> tuple[Any, ...] | None:
    """A tree by one merge after the other without a search, or None.

    Of two parents on different branches the two merge, level by level; otherwise the lower one
    joins the cluster.
    """
    while True:
        parents = _parents(bodies, group)
        conflict = next(((x, *up[:2]) for x, up in parents.items() if len(up) > 1), None)
        if conflict is None:
            return group
        label, a, b = conflict
        path_a, path_b = _upward(parents, label, a), _upward(parents, label, b)
        cyclic = [x for x, path in ((a, path_a), (b, path_b)) if label in parents.get(path[-1], ())]
        best = {
            (a, b): a not in path_b and b not in path_a and not cyclic,
            (label, a): b in path_a or a in cyclic,
            (label, b): a in path_b or b in cyclic,
        }
        options = [pair for pair in best if WORLD not in pair and closed.isdisjoint(pair)]
        if not options:
            return None
        group = _merged(group, max(options, key=best.get))


def _mended(
    group: tuple[Any, ...], conflict: tuple[Any, ...], closed: set[Any]
) -> Iterator[tuple[Any, ...]]:
    """The groupings in which a cluster no longer hangs from both of two others."""
    for pair in combinations(conflict, 2):
        if WORLD not in pair and closed.isdisjoint(pair):
            yield _merged(group, pair)


def _merged(group: Sequence[int], members: Iterable[int]) -> tuple[Any, ...]:
    """The grouping with the clusters of some bodies made one, labelled by its first body."""
    labels = {group[m] for m in members}
    return tuple(min(labels) if label in labels else label for label in group)


def _sizes(bodies: Sequence[Body], group: Sequence[int]) -> Counter[Any]:
    """Degrees of freedom of each cluster's tree joints."""
    size: Counter[Any] = Counter()
    for body in bodies:
        size[group[body.index]] += body.joint.nv
    return size


def _price(bodies: Sequence[Body], group: Sequence[int]) -> int:
    return cost(_sizes(bodies, group).values())


def _rated(bodies: Sequence[Body], group: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    """(bound, conflicts left, number, group, a conflict to be mended or None), in order of promise.

    No tree made from this grouping costs less than the bound. The increases of several conflicts
    add up as long as each has at most one cluster in common with those before it, because l³ is
    convex.
    """
    size, parents = _sizes(bodies, group), _parents(bodies, group)
    found = []
    for label, up in parents.items():
        for other in up[1:]:
            increase, involved = _increase(size, parents, label, up[0], other)
            found.append((-increase, (label, up[0], other), involved))
    bound, used = cost(size.values()), set()
    for increase, _, involved in sorted(found):
        if len(used & involved) <= 1:
            used |= involved
            bound -= increase
    return bound, len(found), number, group, min(found)[1] if found else None


def _parents(bodies: Sequence[Body], group: Sequence[int]) -> dict[int, list[int]]:
    """The clusters (or WORLD) from which each cluster hangs."""
    parents: dict[int, list[int]] = {}
    for body in bodies:
        label = group[body.index]
        up = WORLD if body.parent == WORLD else group[body.parent]
        known = parents.setdefault(label, [])
        if up != label and up not in known:
            known.append(up)
    return parents


def _increase(
    size: Mapping[Any, Any], parents: Mapping[Any, Any], label: int, a: int, b: int
) -> tuple[int, set[Any]]:
    """By how much a conflict raises the cost at least, and the clusters that this figure is about.

    The paths to `label` from the nearest common ancestor of a and b must become one path.
    """
    path_a, path_b = (_upward(parents, label, x) for x in (a, b))
    top = next((x for x in path_a if x in path_b), None)
    if top is None:  # clusters form a cycle: counted when they are one
        involved = {label, a, b} - {WORLD}
        pairs = [(x, y) for x, y in combinations((label, a, b), 2) if WORLD not in (x, y)]
        return min(3 * size[x] * size[y] * (size[x] + size[y]) for x, y in pairs), involved
    sides = [path[: path.index(top)] for path in (path_a, path_b)]
    weights = sorted(tuple(size[x] for x in side) for side in sides)
    involved = {label, top, *sides[0], *sides[1]} - {WORLD}
    folded = _folded(size[label], *weights, 0 if top == WORLD else size[top])
    return folded - cost(size[x] for x in involved), involved


def _upward(parents: Mapping[Any, Any], label: int, here: int) -> list[int]:
    """The path from a cluster to the world, or to where it meets `label` or itself."""
    path = [here]
    while here != WORLD:
        here = parents[here][0]
        if here == label or here in path:
            break
        path.append(here)
    return path


@lru_cache(maxsize=4096)
def _folded(low: int, a: tuple[Any, ...], b: tuple[Any, ...], top: int) -> int:
    """The least cost of two paths of clusters with common ends, made one path: from a cluster of
    size `low` up to one of size `top` (0: the world, which nothing joins), a and b in between.

    A cluster of the one path takes one cluster of one side and any number of the other's in a row.
    """
    best = {(i, 0): (low + sum(a[:i])) ** 3 for i in range(len(a) + 1)}
    best |= {(0, j): (low + sum(b[:j])) ** 3 for j in range(len(b) + 1)}
    for i, j in product(range(1, len(a) + 1), range(1, len(b) + 1)):
        ways = [(i - 1, k) for k in range(j)] + [(k, j - 1) for k in range(i)]
        steps = [(best[x, y] + (sum(a[x:i]) + sum(b[y:j])) ** 3) for x, y in ways]
        best[i, j] = min(steps)
    rest = [(sum(a[i:]) + sum(b[j:]), price) for (i, j), price in best.items()]
    return min(price + (top + more) ** 3 for more, price in rest if top or not more)


def _check_wanted(bodies, loops, wanted, group) -> None:
    """Refuse clusters asked for that share a body, or a loop with other bodies."""
    for members in wanted:
        names = [bodies[i].name for i in members]
        outside = {i for i in range(len(bodies)) if group[i] == group[members[0]]} - set(members)
        if not outside:
            continue
        for loop in loops:
            if outside & set(loop.bodies) and set(members) & set(loop.bodies):
                more = [bodies[i].name for i in sorted(set(loop.bodies) - set(members))]
                raise ModelError(
                    f"clusters=: loop '{loop.name}' joins '{names[0]}' to {_named(more)}, which "
                    f"the cluster asked for, {_named(names)}, leaves out: name them there, too"
                )
        shared = next(i for other in wanted for i in other if i in outside)
        raise ModelError(
            f"clusters=: '{bodies[shared].name}' and '{names[0]}' are in different clusters, which "
            "a loop or a common body joins: make them one"
        )


def _no_tree(bodies, group, closed: set[Any]) -> str:
    child, a, b = _rated(bodies, group, 0)[-1]
    up = ["the world" if i == WORLD else f"'{bodies[i].name}'" for i in (a, b)]
    members = [bodies[i].name for i in range(len(bodies)) if group[i] == group[child]]
    return (
        f"clusters=: no tree of clusters has these: the cluster of {_named(members)} hangs from "
        f"that of {up[0]} and from that of {up[1]}; ask for one that holds two of the three"
    )


def _named(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _ordered(bodies: Sequence[Body], group: Sequence[int]) -> list[list[int]]:
    """Clusters by their first body, but never before their parent."""
    members: dict[int, list[int]] = {}
    for body in bodies:
        members.setdefault(group[body.index], []).append(body.index)
    placed: list[list[int]] = []
    done = {WORLD}
    waiting = list(members.values())
    while waiting:
        ready = next(
            m for m in waiting if all(bodies[i].parent in done or bodies[i].parent in m for i in m)
        )
        waiting.remove(ready)
        placed.append(ready)
        done.update(ready)
    return placed
