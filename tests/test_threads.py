"""Several threads at once on one model: the same numbers as one after the other."""

import threading

import numpy as np
import pytest

import grubler as gb

THREADS = 4
ROBOTS = ("mini_cheetah", "six_bar")


def everything(model: gb.Model, number: int) -> list[np.ndarray]:
    """Results of what keeps something with the model, or in a cache; each thread in its order."""
    q, v = model.random_state(number % 2)
    tau = np.linspace(-1, 1, model.nv)
    frame = model.bodies[-1].name
    constraints = [(frame, (3,)), (model.bodies[len(model.bodies) // 2].name, (4,))]
    tasks = [
        lambda: gb.forward_dynamics(model, q, v, tau),
        lambda: gb.forward_dynamics(model, q, v, tau, method="lagrange"),
        lambda: gb.inverse_osim(model, q, [frame]),
        lambda: gb.constrained_forward_dynamics(model, q, v, tau, constraints).a,
        lambda: gb.spanning_state(model, q, v, tau).accelerations,
        lambda: gb.compile(gb.mass_matrix, model)(q),
        lambda: gb.compile(gb.energy, model)(np.stack([q] * 9), np.stack([v] * 9))[0],
        lambda: np.concatenate([x.ravel() for x in model.random_states(5, 3)]),
    ]
    turn = number % len(tasks)
    found = {i: np.asarray(tasks[i]()) for i in [*range(turn, len(tasks)), *range(turn)]}
    return [found[i] for i in range(len(tasks))]


@pytest.mark.parametrize("robot", ROBOTS)
def test_results_do_not_depend_on_other_threads(robot, tmp_path, monkeypatch):
    monkeypatch.setenv("GRUBLER_CACHE_DIR", str(tmp_path / "cache"))
    model = gb.robots.load(robot)  # its own: nothing about it is known yet
    start, found, failures = threading.Barrier(THREADS), {}, []

    def work(number):
        try:
            start.wait()
            found[number] = everything(model, number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    alone = gb.robots.load(robot)
    for number in range(THREADS):
        for got, expected in zip(found[number], everything(alone, number), strict=True):
            np.testing.assert_array_equal(got, expected)
