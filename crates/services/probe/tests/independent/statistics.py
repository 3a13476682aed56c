"""Sequences of losses from simulations of NumPy's, and what SciPy says of them, as one JSON list.

Needs numpy and scipy.
"""

import json
import math

import numpy
from scipy import stats


def uniform(index):
    """SplitMix64 (Steele et al. 2014): spreads an interval over its last datagram."""
    mask = (1 << 64) - 1
    state = ((index + 1) * 0x9E3779B97F4A7C15) & mask
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & mask
    return ((state ^ (state >> 31)) >> 11) / (1 << 53)


def spread(intervals):
    """Geometric intervals made exponential, if they are geometric."""
    rate = -math.log1p(-1 / numpy.mean(intervals))
    within = [-math.log1p(uniform(n) * math.expm1(-rate)) / rate for n in range(len(intervals))]
    return numpy.array(intervals) - 1 + numpy.clip(within, 0, 1)


def elliott(random, count, to_bad, to_good, loss_good, loss_bad):
    """A channel of two states."""
    lost, bad = [], False
    for _ in range(count):
        bad = random.random() >= to_good if bad else random.random() < to_bad
        lost.append(random.random() < (loss_bad if bad else loss_good))
    return lost


def said(lost, random):
    """What SciPy and NumPy say of a sequence."""
    intervals = numpy.diff(numpy.flatnonzero(lost))
    values = spread(intervals)
    _, mean = stats.expon.fit(values, floc=0)
    asked = {"known_params": {"loc": 0}, "statistic": "ks", "n_mc_samples": 2000}
    try:
        tested = stats.goodness_of_fit(stats.expon, values, rng=random, **asked)
    except TypeError:
        # Its name before SciPy 1.15.
        tested = stats.goodness_of_fit(stats.expon, values, random_state=random, **asked)
    ci = stats.binomtest(int(sum(lost)), len(lost)).proportion_ci(0.95, "wilson")
    centred = numpy.array(lost, float) - numpy.mean(lost)
    correlation = [float(numpy.sum(centred[lag:] * centred[:-lag]) / numpy.sum(centred**2)) for lag in (1, 2, 5)]
    return {
        "lost": "".join("1" if one else "0" for one in lost),
        "mean": float(numpy.mean(intervals)),
        "distance": float(stats.kstest(values, "expon", args=(0, mean)).statistic),
        "probability": float(tested.pvalue),
        "wilson": [ci.low, ci.high],
        "autocorrelation": correlation,
    }


def main():
    random = numpy.random.default_rng(20261122)
    found = []
    for loss in (0.005, 0.02, 0.1, 0.3):
        for _ in range(3):
            found.append(said(list(random.random(12_000) < loss), random) | {"model": None})
    for model in ((0.002, 0.2, 0.0, 1.0), (0.01, 0.1, 0.001, 0.7), (0.005, 0.05, 0.01, 0.5)):
        found.append(said(elliott(random, 60_000, *model), random) | {"model": model})
    print(json.dumps(found))


main()
