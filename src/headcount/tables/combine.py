"""Groups taken together, and groups compared: which errors add up, and which cancel."""

from __future__ import annotations

import warnings

import numpy as np

from headcount._core.types import Floats, Ints
from headcount.inference.bounds import bounds
from headcount.inference.intervals import Interval
from headcount.inference.shared import SharedError, learn_shared, luck_of
from headcount.inference.simulation import make_simulator
from headcount.tables.model import Model
from headcount.tables.result import Count

LEAST = 0.2  # of the variance of true labels: estimates that hardly move are not believed more


def join(found: Count, owner: Ints) -> Interval:
    """Shares with bounds of groups that are joined into larger ones.

    The rows are estimated anew, as if they had always been one group: an average of answers for
    small groups, which lean on what is usual, would lean as far.

    Parameters
    ----------
    owner : for each group, the number of the one that it goes to
    """
    part = parts_of(found, owner)
    if found.together is None:
        return average(found, part, owner)
    return found.together(owner).loosened(add_up(part[:, None] * found.diagnosis.off, owner))


def parts_of(found: Count, owner: Ints) -> Floats:
    """What part of the rows each group has in the one that it goes to."""
    return np.asarray(found.sizes / np.bincount(owner, found.sizes)[owner])


def add_up(values: Floats, owner: Ints) -> Floats:
    """Sums of rows of values, for each group that they go to."""
    columns = [np.bincount(owner, column) for column in values.T]
    return np.column_stack(columns)


def average(found: Count, part: Floats, owner: Ints) -> Interval:
    """Averages of the shares of groups, with bounds; `part` is the weight of each in its average.

    The luck of each group's rows averages out; what the labelled rows leave open does not, and is
    that of one group with the average shares. Neither does a misfit, which groups may share.
    """
    interval, model, weight = found.interval, found.model, part[:, None]
    shares = add_up(weight * interval.prevalence, owner)
    if model is None or model.quantifier.flat_ is not None:  # all of it may be shared
        variance = add_up(weight * np.sqrt(interval.variance), owner) ** 2
    else:
        wider = model.widening(found.worth)[:, None] ** 2
        shared, own = _shared_error(model), interval.variance
        if model.groups(found.by) is None:
            own = np.maximum(own - shared.variance(interval.prevalence) * wider, 0.0)
        variance = add_up(weight**2 * own, owner)
        variance += shared.variance(shares) * add_up(weight * wider, owner)
    variance = variance + add_up(weight * found.diagnosis.off, owner) ** 2
    low, high = bounds(shares, variance, interval.level)
    low, high = np.minimum(low, shares), np.maximum(high, shares)
    return Interval(interval.classes, shares, low, high, variance, interval.level)


def variance_of_change(
    model: Model, found: Interval, worth: Floats, base: Interval, base_worth: float, off: Floats
) -> Floats:
    """Variance of the difference of groups from a base, by chance alone.

    Parameters
    ----------
    found, worth : shares of the groups, and the rows that they are worth
    base, base_worth : the same of what they are compared with
    off : how far shares may be off because of a misfit

    Notes
    -----
    The luck of the rows counts as it would be if group and base had the same shares. What the
    labelled rows leave open cancels then; it counts as far as the shares differ. Shares are taken
    from the middle of the intervals, since an estimate of 0 would seem to have no luck at all.
    """
    n, wider = worth[:, None], model.widening(worth)[:, None] ** 2
    base_wider = model.widening(np.array([base_worth])) ** 2
    total = n + base_worth
    both = (n * found.middle + base_worth * base.middle) / total
    smooth = (total * both + 0.5) / (total + 1)
    drawn = smooth * (1 - smooth)  # of true labels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # simulated bags have nothing to tell the user
        luck = luck_of(make_simulator(model.quantifier), both, int(np.median(worth)))
    luck = np.maximum(luck, LEAST * drawn)
    # What the check at fitting asked for concerns the estimates, not the drawing of rows.
    more = np.maximum(luck - drawn, 0.0) * ((wider - 1) / n + (base_wider - 1) / base_worth)
    shared = _shared_error(model).variance(found.prevalence - base.prevalence) * wider
    return np.asarray(luck * (1 / n + 1 / base_worth) + more + shared + off**2)


def _shared_error(model: Model) -> SharedError:
    """Made once for a model."""
    found: SharedError | None = model.cache.get("shared")
    if found is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = model.cache["shared"] = learn_shared(make_simulator(model.quantifier))
    return found
