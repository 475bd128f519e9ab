"""Grid and random search of settings by their error on validation bags."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import (
    ParameterGrid,
    ParameterSampler,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from headcount._core import validation as check
from headcount._core.frame import Frame
from headcount._core.progress import track
from headcount._core.types import Floats
from headcount.bags import Bags
from headcount.evaluation import aligned_truth
from headcount.exceptions import HeadcountWarning, InputError
from headcount.kernels.random import as_seed
from headcount.measures import Measure, measure
from headcount.methods.base import Quantifier, without_calibration
from headcount.methods.meta import DelegatingQuantifier
from headcount.methods.sharing import SharedPasses, pass_groups
from headcount.protocols import UniformPrevalence
from headcount.selection.candidates import Trial, try_candidate

Grid = Mapping[str, Sequence[Any]]
Fold = tuple[Any, NDArray[Any], Any, Bags]  # training items and labels, pool, bags


@dataclass(eq=False, repr=False)
class SearchQuantifier(DelegatingQuantifier):
    """Base of the searches, which try settings on bags and refit the best on all items."""

    quantifier: Any = None
    _: KW_ONLY
    measure: str | Measure = "ae"
    protocol: Any = None
    validation: int | float = 0.4
    refit: bool = True
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: bool = False

    @abstractmethod
    def _candidates(self) -> list[dict[str, Any]]:
        """List the settings to try."""

    def parts(self) -> list[Quantifier]:
        """The quantifier whose settings are searched."""
        if self.quantifier is None:
            raise InputError("quantifier is missing: give the one whose settings to search.")
        return [self.quantifier]

    def fit(self, X: Any, y: Any, *, pool: Any = None, bags: Bags | None = None) -> Self:
        """Select the setting with the least error on bags, and fit it to all of (X, y).

        Parameters
        ----------
        X, y : labelled items
        pool, bags : optional
            Bags with known prevalence to select on, and the items they refer to, such as LeQua's
            development samples. By default bags are drawn by the protocol from held-out items.
        """
        if (pool is None) != (bags is None):
            raise InputError("give both pool and bags, or neither.")
        if bags is not None and bags.prevalence is None:
            raise InputError("the bags to select on have no true prevalences.")
        self.measure_ = measure(self.measure)
        if self.measure_.name == "q":
            raise InputError("q needs recall and cannot be selected on; choose another measure.")
        array = check.labels(y)
        check.same_length(_num_samples(X), array)
        X = X.tocsr() if sparse.issparse(X) else X  # some sparse forms cannot be split into rows
        (base,) = self.parts()
        settings = self._candidates()
        candidates = [without_calibration(configured(base, setting)) for setting in settings]
        folds = self._held_out(X, array) if bags is None else [(X, array, pool, bags)]
        self._keep(settings, *self._try_all(candidates, folds))
        if self.refit:
            self.members_ = [configured(base, self.best_params_).fit(X, array)]
            self.classes_ = self.members_[0].classes_
        return self

    def _try_all(self, candidates: list[Quantifier], folds: list[Fold]) -> tuple[Floats, list[str]]:
        """Mean error over the folds and first failure of each candidate."""
        jobs = [(fold, group) for fold in folds for group in pass_groups(candidates)]
        running = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(_try_group)([candidates[i] for i in group], fold, self.measure_)
            for fold, group in jobs
        )
        errors = np.zeros(len(candidates))
        failures = [""] * len(candidates)
        tracked = track(running, "settings", len(jobs), self.verbose)
        for (_, group), trials in zip(jobs, tracked, strict=True):
            for i, trial in zip(group, trials, strict=True):
                errors[i] += np.nan if trial.failure else trial.error / len(folds)
                failures[i] = failures[i] or trial.failure
        return errors, failures

    def _held_out(self, X: Any, y: NDArray[Any]) -> list[Fold]:
        """Training items, and bags of the items held out, of each round of validation."""
        protocol = self.protocol
        if protocol is None:
            protocol = UniformPrevalence(n_bags=250, size=100, random_state=0)
        seed = as_seed(self.random_state) % 2**32
        share = self.validation
        if isinstance(share, (float, np.floating)) and 0 < share < 1:
            splitter: Any = StratifiedShuffleSplit(1, test_size=float(share), random_state=seed)
        elif isinstance(share, (int, np.integer)) and share >= 2:
            splitter = StratifiedKFold(int(share), shuffle=True, random_state=seed)
        else:
            raise InputError(
                f"validation must be a share to hold out or a number of folds, got {share!r}."
            )
        classes, codes = check.encode(y)
        check.two_or_more(classes)
        if np.bincount(codes).min() < 2:
            raise InputError("a class has a single labelled item: there is nothing to validate on.")
        folds = []
        for train, test in splitter.split(np.zeros(len(y)), codes):
            drawn = protocol.draw(y[test], classes=classes)
            folds.append((_safe_indexing(X, train), y[train], _safe_indexing(X, test), drawn))
        return folds

    def _keep(self, settings: list[dict[str, Any]], errors: Floats, failures: list[str]) -> None:
        """Keep the table of results and the best setting; a failed one is never the best."""
        order = self.measure_.badness(errors)
        names = dict.fromkeys(name for setting in settings for name in setting)
        columns: dict[str, Any] = {name: [_text(s.get(name)) for s in settings] for name in names}
        columns[str(self.measure_)] = errors
        columns["rank"] = np.argsort(np.argsort(order, kind="stable"), kind="stable") + 1
        columns["failure"] = failures
        self.results_ = Frame(columns)
        n_failed = int((~np.isfinite(order)).sum())
        if n_failed == len(settings):
            first = next(filter(None, failures), "?")
            raise InputError(f"every setting failed; the first: {first}")
        if n_failed:
            message = f"{n_failed} of {len(settings)} settings failed and were left out"
            warnings.warn(f"{message}: see results_.", HeadcountWarning, stacklevel=3)
        best = int(np.argmin(order))
        self.best_params_ = settings[best]
        self.best_score_ = float(errors[best])


@dataclass(eq=False, repr=False)
class GridSearch(SearchQuantifier):
    """Grid search: the combination of settings with the least error on bags.

    Each distinct classifier setting is fitted once, and its scores are shared by every setting of
    the method on top. The calibration of interval width is left out of the search.

    Parameters
    ----------
    quantifier : quantifier
    grid : mapping of parameter to values, or a list of such mappings
        Names as in `set_params`: ``classifier__C`` reaches the classifier.
    measure : str or Measure, default 'ae'
    protocol : protocol, optional
        How bags are drawn; by default 250 of 100 items, uniformly from the simplex.
    validation : float or int, default 0.4
        Share of items to hold out and to draw bags from, or a number of folds.
    refit : bool, default True
        Whether to fit the best setting to all labelled items.
    n_jobs : int, optional
        Number of parallel jobs, one per classifier setting; the result is the same.
    random_state : int, generator or None, default 0
        Seed of the split.
    verbose : bool, default False
        Whether to show a progress bar.

    Attributes
    ----------
    results_ : Frame
        One row per setting: its parameters, error, rank, and the reason if it failed.
    best_params_, best_score_, best_quantifier_

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from headcount import SLD
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> sld = SLD(LogisticRegression(), calibrator="bcts")
    >>> search = GridSearch(sld, {"classifier__C": [1e-6, 0.1]}).fit(X, y)
    >>> search.best_params_
    {'classifier__C': 0.1}
    >>> search.predict(X).round(1)
    array([0.4, 0.6])
    """

    grid: Grid | Sequence[Grid] | None = None

    def _candidates(self) -> list[dict[str, Any]]:
        try:
            return list(ParameterGrid(self.grid or {}))
        except (TypeError, ValueError) as error:
            raise InputError(f"grid cannot be read: {error}") from None


@dataclass(eq=False, repr=False)
class RandomSearch(SearchQuantifier):
    """Random search: of randomly drawn settings, the one with the least error on bags.

    Parameters
    ----------
    quantifier : quantifier
    distributions : mapping of parameter to values or scipy distribution
    n_iter : int, default 20
        Number of settings to try.
    measure, protocol, validation, refit, n_jobs, random_state, verbose
        As in `GridSearch`.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.linear_model import LogisticRegression
    >>> from headcount import PACC
    >>> search = RandomSearch(PACC(LogisticRegression()), {"classifier__C": loguniform(1e-3, 1e3)})
    >>> search.n_iter
    20
    """

    distributions: Mapping[str, Any] | None = None
    _: KW_ONLY
    n_iter: int = 20

    def _candidates(self) -> list[dict[str, Any]]:
        check.whole("n_iter", self.n_iter)
        seed = as_seed(self.random_state) % 2**32
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a grid smaller than n_iter is fine
            sampler = ParameterSampler(self.distributions or {}, self.n_iter, random_state=seed)
            return list(sampler)


def configured(base: Quantifier, setting: dict[str, Any]) -> Quantifier:
    """Clone of a quantifier with other parameters; unknown names are rejected."""
    own = {name: clone(value, safe=False) for name, value in setting.items()}
    try:
        made: Quantifier = clone(base).set_params(**own)
    except ValueError as error:
        raise InputError(str(error)) from None
    return made


def setting_text(setting: Mapping[str, Any]) -> str:
    """Text of a setting, such as C=1.0."""
    return ", ".join(f"{k.removeprefix('classifier__')}={v}" for k, v in setting.items())


def _try_group(candidates: list[Quantifier], fold: Fold, which: Measure) -> list[Trial]:
    """Try the candidates that share a classifier pass."""
    X, y, pool, bags = fold
    shared = SharedPasses(candidates, X, y)

    def estimate(candidate: Quantifier) -> tuple[Floats, Floats]:
        fitted = shared.fit(candidate)
        truth, _ = aligned_truth(bags, fitted.classes_)
        return truth, shared.predict_bags(fitted, pool, bags)

    return [try_candidate(partial(estimate, c), bags.sizes, which) for c in candidates]


def _text(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, np.number)) else repr(value)
