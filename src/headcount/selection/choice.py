"""What was chosen automatically, why, and how the time was spent, in words."""

from __future__ import annotations

from dataclasses import dataclass

from headcount._core.texttable import text_table

Tried = tuple[tuple[str, float], ...]  # what was tried, and its error


@dataclass(frozen=True)
class Choice:
    """What was chosen, and how it compares.

    Attributes
    ----------
    method : name of the chosen candidate
    error : its mean error, by `measure`, on bags with known shares
    measure, n_bags, size, expect : of these bags; `size` is their median
    others : the next best methods with their errors
    classifiers : what gave scores, the one that was taken first, each with the error of the quick
        method that it was judged by
    left_out : classifiers that were not tried or failed, with the reason
    bags : what the bags were: 'drawn', 'groups', 'periods', 'given', or 'too few groups'
    seconds : for classifiers, and for methods
    items : labelled items that were learnt from, and those that there are
    """

    method: str
    error: float
    measure: str
    n_bags: int
    size: int
    expect: str
    others: Tried = ()
    classifiers: Tried = ()
    left_out: tuple[tuple[str, str], ...] = ()
    bags: str = "drawn"
    seconds: tuple[float, float] = (0.0, 0.0)
    items: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        text = (
            f"{self.method} was chosen: mean {self.measure} {self.error:.4g} on {self.n_bags} "
            f"{self._bags_in_words()}."
        )
        if self.others:
            text += " Next: " + ", ".join(f"{name} {e:.4g}" for name, e in self.others) + "."
        if self.classifiers:
            text += f" Scores by {self.classifiers[0][0]}."
        text += f" Time: {self.seconds[0]:.0f} s for scores, {self.seconds[1]:.0f} s for methods."
        if self.items[0] < self.items[1]:
            text += f" Learnt from {self.items[0]:,} of {self.items[1]:,} items: time was short."
        rows = [[name, f"{error:.4g}", ""] for name, error in self.classifiers]
        rows += [[name, "", reason] for name, reason in self.left_out]
        if len(rows) < 2:
            return text
        return f"{text}\n" + text_table(["scores", self.measure, "not tried"], rows, left=(0, 2))

    def _bags_in_words(self) -> str:
        drawn = f"bags of {self.size} held-out items ({self.expect})"
        return {
            "drawn": drawn,
            "too few groups": f"{drawn}, because no group can be left out",
            "groups": f"groups of about {self.size} labelled items that were left out",
            "periods": f"periods of about {self.size} labelled items, known only what came before",
            "given": f"given bags of about {self.size} items",
        }[self.bags]
