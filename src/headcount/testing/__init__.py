"""Conformance suite: what every quantifier, protocol and measure must do.

Use it on your own classes as our tests use it on ours::

    from headcount.testing import check_quantifier, check_scikit_learn

    check_quantifier(MyQuantifier())
    check_scikit_learn(MyQuantifier())
"""

from headcount.testing.estimators import check_scikit_learn, scikit_learn_checks
from headcount.testing.measures import check_measure
from headcount.testing.protocols import check_protocol
from headcount.testing.quantifiers import QUANTIFIER_CHECKS, check_quantifier

__all__ = [
    "QUANTIFIER_CHECKS",
    "check_measure",
    "check_protocol",
    "check_quantifier",
    "check_scikit_learn",
    "scikit_learn_checks",
]
