"""Classifiers that are worth trying on items of a kind, simplest first."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import ComplementNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from headcount.exceptions import InputError
from headcount.scores.columns import column_encoder, is_numeric
from headcount.text.names import make_vectorizer
from headcount.text.tfidf import TfIdf
from headcount.text.words import MeanVectors

STRENGTHS = (1.0, 0.1, 0.01, 10.0)  # of a logistic regression on features
TEXT_STRENGTHS = (1.0, 10.0)
LANDMARKS = 500  # of the kernel approximation
WIDTHS = (1.0, 3.0, 0.3)  # of its kernel: what the reciprocal number of features is multiplied by
TREES = 200
LEAVES = (2, 1, 5)  # least items in a leaf of a tree
BOOSTING = {15: 150, 31: 200, 7: 100}  # rounds by the number of leaves
WIDEST = 2000  # features up to which covariances are estimated
COEFFICIENTS = 1 << 20  # of a model on hashed characters, for all classes
MANY_CLASSES = 60  # beyond which a tree for every class and round takes too long

Family = Mapping[str, Any]  # classifiers that differ in a setting, by name


@dataclass(frozen=True)
class Source:
    """Classifiers that look at the items in the same way.

    Attributes
    ----------
    name : str
    families : mapping of name to classifiers that differ in a setting; the best of them is kept
    front : transformer that is fitted with them, in each fold, or None
    once : transformer that learns nothing, so that all items can be transformed at once, or None
    is_given : whether it is a classifier of the user's, of which nothing is known
    """

    name: str
    families: Mapping[str, Family]
    front: Any = None
    once: Any = None
    is_given: bool = False

    def joined(self, fitted_front: Any, fitted: Any) -> Any:
        """One classifier from items to scores, of fitted parts."""
        steps = [step for step in (self.once, fitted_front, fitted) if step is not None]
        flat = [s for step in steps for s in _steps(step)]
        return flat[0] if len(flat) == 1 else Pipeline([(str(i), s) for i, s in enumerate(flat)])


def given_source(classifier: Any, name: str = "the classifier as given") -> Source:
    """A classifier of the user's, and nothing else."""
    return Source(name, _alone(name, classifier), is_given=True)


def sources_for(X: Any, n_classes: int, *, vectorizer: Any = "tfidf") -> list[Source]:
    """Classifiers that suit the items, simplest first.

    Parameters
    ----------
    X : items
        Texts, a table of numbers and categories, a dense or a sparse matrix.
    n_classes : int
    vectorizer : name or transformer
        How texts become vectors, if not by their words and characters.

    Examples
    --------
    >>> [source.name for source in sources_for(np.zeros((10, 3)), 2)]
    ['linear', 'kernel', 'trees', 'boosting']
    >>> [source.name for source in sources_for(["a text", "another"], 2)][:2]
    ['words', 'characters']
    """
    if is_text(X):
        if not isinstance(vectorizer, str) or vectorizer != "tfidf":
            return [Source("vectors", _linear_families(WIDEST), make_vectorizer(vectorizer))]
        return _text_sources(n_classes)
    if sparse.issparse(X):
        return [_sparse_source(X)]
    return _dense_sources(X, n_classes)


def is_text(X: Any) -> bool:
    """Whether the items are documents: one column of strings."""
    if sparse.issparse(X) or getattr(X, "ndim", 1) != 1 or isinstance(X, str) or not len(X):
        return False
    first = X.iloc[0] if hasattr(X, "iloc") else X[0]
    return isinstance(first, str)


def _steps(model: Any) -> list[Any]:
    return [step for _, step in model.steps] if type(model) is Pipeline else [model]


def _logistic(name: str, strengths: tuple[float, ...]) -> Family:
    return {f"{name}, C = {c:g}": LogisticRegression(C=c, max_iter=1000) for c in strengths}


def _alone(name: str, classifier: Any) -> dict[str, Family]:
    return {name: {name: classifier}}


def _linear_families(n_features: int) -> dict[str, Family]:
    found: dict[str, Family] = {"logistic regression": _logistic("logistic regression", STRENGTHS)}
    if n_features <= WIDEST:
        shrunk = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        found |= _alone("discriminant analysis", shrunk)
    return found


def _dense_sources(X: Any, n_classes: int) -> list[Source]:
    front, n_features = _table_front(X)
    found = [
        Source("linear", _linear_families(n_features), front),
        Source("kernel", {"kernel": _kernel(n_features)}, clone(front)),
        Source("trees", {"extra trees": _trees()}, clone(front)),
    ]
    if n_classes <= MANY_CLASSES:
        found.append(Source("boosting", {"gradient boosting": _boosting()}, clone(front)))
    return found


class Landmarks(Nystroem):
    """The kernel approximation; where there are fewer items than landmarks, each of them is one."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the landmarks, without a word about it (workers would say it to the user)."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="n_components > n_samples")
            super().fit(X, y)
        return self


def _kernel(n_features: int) -> Family:
    """Logistic regression on a Gaussian kernel of several widths."""

    def model(width: float) -> Pipeline:
        near = Landmarks(n_components=LANDMARKS, gamma=width / n_features, random_state=0)
        return make_pipeline(near, LogisticRegression(C=10.0, max_iter=1000))

    return {f"kernel approximation, gamma x {w:g}": model(w) for w in WIDTHS}


def _trees() -> Family:
    return {
        f"extra trees, leaves of {n}": ExtraTreesClassifier(
            TREES, min_samples_leaf=n, random_state=0
        )
        for n in LEAVES
    }


def _boosting() -> Family:
    """A split looks at a third of the features, so that rounds differ more."""
    return {
        f"gradient boosting, {leaves} leaves": HistGradientBoostingClassifier(
            learning_rate=0.05,
            max_iter=rounds,
            max_leaf_nodes=leaves,
            l2_regularization=1.0,
            max_features=0.3,
            early_stopping=False,
            random_state=0,
        )
        for leaves, rounds in BOOSTING.items()
    }


def _table_front(X: Any) -> tuple[Any, int]:
    """What makes standardised numbers of a table, and how many columns it has."""
    cells = np.asarray(X)
    if cells.ndim != 2:
        raise InputError(f"items must be rows of a table, or texts, got shape {cells.shape}.")
    if not cells.shape[1]:
        raise InputError(f"0 feature(s) (shape={cells.shape}) while a minimum of 1 is required.")
    if cells.dtype.kind in "fiub" and np.isfinite(cells).all():
        return StandardScaler(), cells.shape[1]
    flags = [is_numeric(column) for column in cells.astype(object).T]
    return column_encoder(flags), cells.shape[1]


def _sparse_source(X: Any) -> Source:
    families: dict[str, Family] = {
        "logistic regression": _logistic("logistic regression", STRENGTHS)
    }
    if not X.nnz or X.min() >= 0:
        families |= _alone("naive Bayes", ComplementNB())
    return Source("linear", families)


def _text_sources(n_classes: int) -> list[Source]:
    def heads(looks_at: str, linear: Family) -> dict[str, Family]:
        named = {f"{looks_at}, {name}": classifier for name, classifier in linear.items()}
        bayes = f"{looks_at}, naive Bayes"
        return {f"{looks_at}, linear": named, **_alone(bayes, ComplementNB())}

    logistic = _logistic("logistic regression", TEXT_STRENGTHS)
    # Characters give so many features that many classes take minutes by Newton's ways.
    stepwise = SGDClassifier(loss="log_loss", alpha=1e-5, average=True, random_state=0)
    many = {"stochastic gradient": stepwise}
    cells = 1 << min(16, int(np.log2(COEFFICIENTS / n_classes)))
    characters = HashingVectorizer(
        analyzer="char_wb",
        ngram_range=(2, 4),
        n_features=cells,
        alternate_sign=False,
        norm=None,
    )
    weigh, two = TfidfTransformer(sublinear_tf=True), n_classes == 2
    found = [
        Source("words", heads("words", logistic), TfIdf()),
        Source("characters", heads("characters", logistic if two else many), weigh, characters),
    ]
    if find_spec("wordllama") is not None:
        families = _linear_families(1)
        named = {f"word vectors, {name}": family for name, family in families.items()}
        found.append(Source("word vectors", named, MeanVectors()))
    return found
