"""scikit-learn's estimator checks, for quantifiers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from unittest import SkipTest

from sklearn.utils import estimator_checks, get_tags

from headcount.methods.base import Quantifier

ONE_VECTOR_PER_SET = "predict gives one vector for the whole set, not a value for each item"
IGNORES_ITEMS = "only labels count, so that nothing in the items can be wrong"
# Checks of scikit-learn that do not apply to any quantifier, and why.
NOT_APPLICABLE = dict.fromkeys(
    [
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
    ],
    ONE_VECTOR_PER_SET,
)
# Those that do not apply to a quantifier that ignores the items, such as MLPE.
_OF_ITEMS = dict.fromkeys(
    [
        "check_dtype_object",
        "check_estimators_empty_data_messages",
        "check_estimators_nan_inf",
        "check_fit1d",
        "check_fit2d_predict1d",
    ],
    IGNORES_ITEMS,
)
# Checks that need no items. scikit-learn runs none for estimators that do not take its arrays.
_WITHOUT_ITEMS = [
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_mixin_order",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimators_unfitted",
]


def scikit_learn_checks(quantifier: Quantifier) -> Iterator[tuple[str, Callable[[], None], str]]:
    """List scikit-learn's estimator checks for a quantifier.

    Yields
    ------
    tuple
        The name of a check, a function that runs it, and the reason why it does not apply (empty
        if it does). The function raises `unittest.SkipTest` where scikit-learn skips the check.

    Examples
    --------
    >>> from headcount import PCC
    >>> checks = {name: run for name, run, reason in scikit_learn_checks(PCC()) if not reason}
    >>> checks["check_estimator_cloneable"]()
    """
    exempt = NOT_APPLICABLE | (_OF_ITEMS if quantifier.method_tags().ignores_items else {})
    if get_tags(quantifier).input_tags.two_d_array:
        for estimator, check in estimator_checks.estimator_checks_generator(quantifier):
            name = check.func.__name__
            yield name, partial(check, estimator), exempt.get(name, "")
        return
    for name in _WITHOUT_ITEMS:
        check = getattr(estimator_checks, name)
        yield name, partial(check, type(quantifier).__name__, quantifier), ""


def check_scikit_learn(quantifier: Quantifier) -> None:
    """Run all of scikit-learn's estimator checks that apply; the first failure is raised."""
    for _, run, reason in scikit_learn_checks(quantifier):
        if reason:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                run()
            except SkipTest:
                continue
