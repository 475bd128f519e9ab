"""Quantifiers that are made of others, and those that leave the answer to one of them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from sklearn.pipeline import _name_estimators
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from headcount._core.types import Floats
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.inference.diagnosis import Diagnosis
from headcount.inference.draws import Draws
from headcount.inference.sampling import DrawSettings
from headcount.methods.base import Quantifier
from headcount.methods.scored import ScoreQuantifier


class MetaQuantifier(Quantifier):
    """Base of the quantifiers that are made of others, which `fit` keeps in ``members_``."""

    members_: list[Any]

    @abstractmethod
    def parts(self) -> list[Quantifier]:
        """Unfitted quantifiers that this one is made of."""

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by the first member."""
        if "members_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute 'n_features_in_'")
        return int(self.members_[0].n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = all(get_tags(q).input_tags.sparse for q in self.parts())
        return tags


class ListsQuantifiers:
    """Mixin of those with a list of quantifiers, whose settings are reached by their names.

    Names are those of the classes in small letters, numbered where one occurs twice.
    """

    quantifiers: list[Any] | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings; with `deep`, those of the listed quantifiers too, such as ``pacc__cv``."""
        params: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        listed = self.quantifiers if deep and isinstance(self.quantifiers, list) else []
        for name, q in _name_estimators(listed):
            params[name] = q
            if hasattr(q, "get_params"):
                params |= {f"{name}__{key}": value for key, value in q.get_params().items()}
        return params


class DelegatingQuantifier(MetaQuantifier):
    """Base of the quantifiers that leave estimates, intervals and diagnosis to one member."""

    @property
    def best_quantifier_(self) -> Any:
        """The fitted quantifier that answers."""
        check_is_fitted(self, "members_")
        return self.members_[0]

    def prepare(self, X: Any) -> Any:
        """Items as the quantifier that answers takes them."""
        return X

    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`: one row per bag."""
        best: Quantifier = self.best_quantifier_
        return best.predict_bags(self.prepare(X), bags)

    def predict_scores(self, scores: Any, bags: Bags | None = None) -> Floats:
        """Estimate from scores: one set as a vector, or many bags with a row each."""
        best = self.best_quantifier_
        if not isinstance(best, (ScoreQuantifier, DelegatingQuantifier)):
            raise InputError(f"{type(best).__name__} does not work on scores: use predict_bags.")
        return best.predict_scores(scores, bags)

    def draws_of(self, X: Any, bags: Bags, settings: DrawSettings) -> Draws:
        """Joint draws by the quantifier that answers."""
        best: Quantifier = self.best_quantifier_
        return best.draws_of(self.prepare(X), bags, settings)

    def diagnosis_of(self, X: Any, bags: Bags) -> Diagnosis:
        """Diagnosis by the quantifier that answers."""
        best: Quantifier = self.best_quantifier_
        return best.diagnosis_of(self.prepare(X), bags)
