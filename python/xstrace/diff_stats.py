"""Statistics of two samples: is it a difference, and how large is it? Nothing is assumed about how times are distributed."""

from __future__ import annotations

import itertools
import math
import random

PERMUTATIONS = 9_999
EXACT = 12_870  # permutations, those of 8 and 8: so many are all tried
ROUGH = 999  # permutations of a first look, which is enough where p is large
DRAWS = 1_999  # of the bootstrap
CONFIDENCE = 0.95


def permutation_p(a, b, seed=0):
    """The two-sided p of "both come from one distribution", by the difference of means; None: there are too few values.

    a, b: lists of float. Equal calls give equal results.
    """
    n, m = len(a), len(b)
    if n < 2 or m < 2:
        return None
    values = [*a, *b]
    total = math.fsum(values)
    if max(values) == min(values):
        return 1.0
    few = min(n, m)
    wanted = few * total / (n + m)  # what `few` values add up to, where there is no difference
    apart = abs(math.fsum(a if n <= m else b) - wanted) * (1 - 1e-12)
    if math.comb(n + m, n) <= EXACT:
        sums = map(sum, itertools.combinations(values, few))
        beyond = [abs(one - wanted) >= apart for one in sums]
        return sum(beyond) / len(beyond)
    chance = random.Random(seed)
    beyond = done = 0
    for limit in (ROUGH, PERMUTATIONS):
        while done < limit:
            beyond += abs(sum(chance.sample(values, few)) - wanted) >= apart
            done += 1
        if beyond > 0.2 * done:
            break
    return (1 + beyond) / (1 + done)


def least_p(n, m):
    """The smallest p that n and m values can have."""
    ways = math.comb(n + m, n)
    if min(n, m) < 2:
        return 1.0
    return (2 if n == m else 1) / ways if ways <= EXACT else 1 / (1 + PERMUTATIONS)


def ratio_interval(a, b, seed=0):
    """(low, high): between them is mean(b) / mean(a) with a confidence of 95 %, by the bootstrap; None: there are too few values.

    The percentiles are widened for few values, as Student's t is wider than the normal distribution.
    """
    if len(a) < 2 or len(b) < 2 or min(sum(a), sum(b)) <= 0:
        return None
    chance = random.Random(seed)
    ratios = sorted(_draw(chance, b) / (_draw(chance, a) or math.inf) for _ in range(DRAWS))
    tail = (1 - CONFIDENCE) / 2
    low, high = ratios[int(tail * DRAWS)], ratios[min(int((1 - tail) * DRAWS), DRAWS - 1)]
    ratio = (math.fsum(b) / len(b)) / (math.fsum(a) / len(a))
    wider = math.sqrt(min(len(a), len(b)) / (min(len(a), len(b)) - 1))
    return max(ratio - (ratio - low) * wider, 0.0), ratio + (high - ratio) * wider


def _draw(chance, values):
    return sum(chance.choices(values, k=len(values))) / len(values)


def holm(ps):
    """The p of each of several tests, so that all false alarms together are as rare as one should be. None stays None."""
    order = sorted((p, at) for at, p in enumerate(ps) if p is not None)
    adjusted, largest = list(ps), 0.0
    for rank, (p, at) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - rank)))
        adjusted[at] = largest
    return adjusted
