"""What methods are compared by: instructions, what waits, limbs side by side, the cache."""

import numpy as np

import grubler.compiler as gc
from grubler.compiler.passes import cost
from grubler.compiler.passes.simplify import shortened


def in_a_row(n):
    def fn(x):
        y = x[0]
        for i in range(1, n):
            y = y * x[i]
        return np.stack([y])

    return gc.estimate_cycles(fn, [n])


def in_pairs(n):
    def fn(x):
        terms = [x[i] for i in range(n)]
        while len(terms) > 1:
            terms = [a * b for a, b in zip(terms[::2], terms[1::2])]
        return np.stack(terms)

    return gc.estimate_cycles(fn, [n])


def test_instructions_that_wait_for_each_other_take_longer():
    """64 factors: 63 products in a row, or six rounds of products side by side."""
    assert np.isclose(in_a_row(64) - in_pairs(64), cost.WAITED * (63 - 6) * 4)
    assert in_a_row(65) > in_a_row(64)


def test_equal_limbs_cost_less_than_others():
    """The same instructions, of which those of equal limbs are one."""

    def limb(x, operation):
        for i in range(30):
            x = np.stack([operation(x[0] * x[1], 0.1 * i), x[0] * x[0] - x[1]])
        return x

    def limbs(*operations):
        def fn(x):
            moved = [limb(x[2 * i : 2 * i + 2], op) for i, op in enumerate(operations)]
            return np.concatenate(moved)

        return gc.estimate_cycles(fn, [2 * len(operations)])

    equal = limbs(*[np.fmin] * 4)
    assert equal < 0.5 * limbs(np.fmin, np.fmax, np.copysign, np.arctan2)


def test_code_beyond_the_cache_takes_longer():
    def products(n):
        def fn(x):
            pairs = [(i, j) for i in range(80) for j in range(i)][:n]
            return np.stack([np.sin(x[i]) * x[j] for i, j in pairs])

        return shortened(gc.trace(fn, [80]))

    small, large = products(800), products(2000)
    assert cost.fits(small) and not cost.fits(large)
    assert cost.cycles(large) > 2000 / 800 * 1.5 * cost.cycles(small)
