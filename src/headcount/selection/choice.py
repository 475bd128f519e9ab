"""The record of an automatic selection, and its summary in words."""

from __future__ import annotations

from dataclasses import dataclass

from headcount._core.texttable import text_table

Errors = tuple[tuple[str, float], ...]  # names and mean errors


@dataclass(frozen=True)
class Choice:
    """What was selected, and how it compares.

    Attributes
    ----------
    measure, expect : as in `AutoQuantifier`
    method : name of the selected candidate
    error : its mean error on the validation bags; NaN without comparison
    n_bags, size : number of these bags, and their median size
    others : the next best methods with their errors
    classifiers : those that gave scores, the selected one first, with the log loss of each on
        held-out items
    left_out : classifiers that were not tried or failed, with the reason
    bags : what the bags were: 'drawn', 'groups', 'periods', 'given', or 'too few groups'; 'none'
        if a class has too few labelled items to compare methods on
    work : units of work for classifiers, and for methods
    items : labelled items that were learned from, and all of them
    """

    measure: str
    expect: str
    method: str = ""
    error: float = float("nan")
    n_bags: int = 0
    size: int = 0
    others: Errors = ()
    classifiers: Errors = ()
    left_out: tuple[tuple[str, str], ...] = ()
    bags: str = "none"
    work: tuple[float, float] = (0.0, 0.0)
    items: tuple[int, int] = (0, 0)

    @property
    def is_fallback(self) -> bool:
        """Whether the method was taken without comparison, for lack of labelled items."""
        return self.bags == "none"

    def __str__(self) -> str:
        if self.is_fallback:
            reason = "a class has too few labelled items to compare methods on."
            return f"{self.method} was taken without comparison: {reason}"
        drawn = f"bags of {self.size} held-out items ({self.expect})"
        bags = {
            "drawn": drawn,
            "too few groups": f"{drawn}, because no group can be left out",
            "groups": f"groups of about {self.size} labelled items that were left out",
            "periods": f"periods of about {self.size} labelled items that came later",
            "given": f"given bags of about {self.size} items",
        }[self.bags]
        error = f"mean {self.measure} {self.error:.4g}"
        text = f"{self.method} was chosen: {error} on {self.n_bags} {bags}."
        if self.others:
            text += " Next: " + ", ".join(f"{name} {e:.4g}" for name, e in self.others) + "."
        if self.classifiers:
            text += f" Scores by {self.classifiers[0][0]}."
        text += f" Work: {self.work[0]:.1f} units for scores, {self.work[1]:.1f} for methods."
        if self.items[0] < self.items[1]:
            text += f" Learned from {self.items[0]:,} of {self.items[1]:,} items to fit the budget."
        rows = [[name, f"{loss:.4g}", ""] for name, loss in self.classifiers]
        rows += [[name, "", reason] for name, reason in self.left_out]
        table = text_table(["scores", "log loss", "not tried"], rows, left=(0, 2))
        return f"{text}\n{table}" if len(rows) > 1 else text
