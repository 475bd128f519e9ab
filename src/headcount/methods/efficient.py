"""ELSA: label shift weights from semiparametrically efficient moments."""

from __future__ import annotations

import numpy as np

from headcount._core.types import Floats
from headcount.bags import Bags
from headcount.kernels.simplex import clip_and_normalise, pulled_least_squares
from headcount.kernels.threads import over_ranges
from headcount.methods.base import warn_unconverged
from headcount.methods.representations import Posteriors
from headcount.methods.scored import ScoreQuantifier
from headcount.scores.scorer import Held


class ELSA(ScoreQuantifier):
    """Efficient label shift adaptation: PACC whose items weigh by what they tell.

    Starting from PACC, posteriors are weighted by 1 / (E[w^2|x] / pi + E[w|x] / (1 - pi)), with w
    the class weights p / p_train and pi the share of labelled items, and the linear system is
    solved again, until w settles; where it does not, PACC answers and a warning says so. Needs no
    calibration. Tian, Zhang and Zhao (2023).

    With posteriors that are right, the weighted moments are f_k / sum_j s_j f_j with s = p / m +
    p^2 / n, which attain the semiparametric bound of `limits`: no method that learns the
    classes' densities from the labelled items alone does better, however many unlabelled there are.

    Parameters
    ----------
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(2, 1000, p=[0.8, 0.2])
    >>> x = rng.normal(size=1000) + 2 * y
    >>> posterior = 1 / (1 + 4 * np.exp(2 - 2 * x))
    >>> elsa = ELSA().fit_scores(posterior, y)
    >>> elsa.predict_scores(posterior[500:]).round(1)
    array([0.8, 0.2])
    """

    def learn(self, held: Held) -> None:
        """Keep the held-out scores, and PACC's matrix to start from."""
        self.frequency_ = held.frequency
        self.means_ = Posteriors().of_classes(held.scores, held.codes)
        self.scores_, self.codes_ = np.ascontiguousarray(held.scores), held.codes
        self.share_ = np.bincount(held.codes, minlength=held.n_classes) / len(held.codes)

    def aggregate(self, scores: Floats, bags: Bags) -> Floats:
        """Shares by the fixed point of the weights."""
        from headcount.kernels.compiled.efficient import efficient_weights

        means = Posteriors().of_bags(scores, bags, self.n_jobs)
        first = pulled_least_squares(self.means_.T, means, self.frequency_)
        weights = first / self.share_
        converged = np.zeros(len(bags), dtype=bool)
        over_ranges(
            lambda a, b: efficient_weights(
                self.scores_,
                self.codes_,
                self.share_,
                scores,
                bags.indptr,
                bags.indices,
                weights,
                converged,
                a,
                b,
            ),
            len(bags),
            self.n_jobs,
        )
        warn_unconverged(converged, "the fixed point", "PACC's answer stands in for it.")
        return clip_and_normalise(weights * self.share_)
