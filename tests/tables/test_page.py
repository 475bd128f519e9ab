"""The practitioner's page: what it says first, its charts, and that it stays small."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from headcount import tables
from headcount.exceptions import InputError
from headcount.inference.draws import Draws
from headcount.tables.charts import Series, percent, scale_top, time_chart
from headcount.tables.report_data import change_sentence, gather_report
from headcount.tables.result import Estimates, GroupRows
from headcount.tables.training import QualityReport
from headcount.tables.trust import judge_trust, list_warnings


def scores_of(y, k, rng):
    """Scores of a classifier that is right most of the time."""
    z = 2.5 * np.eye(k)[y] + rng.normal(size=(len(y), k))
    s = np.exp(z)
    return s / s.sum(axis=1, keepdims=True)


def table_of(shares, per, rng, dates):
    """Rows of periods or shops with these shares of classes."""
    k = shares.shape[1]
    parts = []
    for share, date in zip(shares, dates, strict=True):
        y = rng.choice(k, per, p=share)
        part = pd.DataFrame(scores_of(y, k, rng), columns=[f"p_c{c}" for c in range(k)])
        parts.append(part.assign(y=[f"c{c}" for c in y], date=str(date), shop=f"shop {date}"))
    return pd.concat(parts)


def counted(k, n_groups, per=200, by="month:date", gap=()):
    """A count of months of which the last third has more of the last class."""
    rng = np.random.default_rng(k)
    early, late = np.full(k, 1.0), np.full(k, 1.0)
    late[-1] = 3 * k
    months = np.datetime64("2020-01") + np.arange(n_groups)
    which = np.arange(n_groups) >= n_groups * 2 // 3
    shares = np.where(which[:, None], late / late.sum(), early / early.sum())
    keep = [i for i in range(n_groups) if i not in gap]
    heap = table_of(shares[keep], per, rng, months[keep])
    labelled = table_of(np.full((1, k), 1 / k), 120 * k, rng, ["2019-01"])
    columns = [f"p_c{c}" for c in range(k)]
    model = tables.fit(labelled, scores=columns, label="y", method="PACC")
    return model.estimate(heap, by=by)


@pytest.fixture(scope="module")
def two():
    return counted(2, 12, gap=(4, 5))


@pytest.fixture(scope="module")
def many():
    return counted(15, 6, per=300)


class Text(HTMLParser):
    """What a reader sees before folding anything out."""

    def __init__(self):
        super().__init__()
        self.seen, self.hidden = [], 0

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in ("style", "script", "title", "details")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("style", "script", "title", "details")

    def handle_data(self, data):
        self.seen += [] if self.hidden else [data]


def visible(page):
    reader = Text()
    reader.feed(page.html)
    return " ".join(" ".join(reader.seen).split()).replace(" :", ":")


def test_the_first_screen_is_for_a_manager(two):
    text = visible(two.report("Complaints"))
    share, low, high = (
        v[-1, 0] for v in (two.interval.prevalence, two.interval.low, two.interval.high)
    )
    assert percent(share) in text and f"between {percent(low)[:-2]} and {percent(high)}" in text
    assert re.search(r"than in 2020-01 \(\d+ %\) since 2020-09", text)
    assert "Can it be trusted? Yes" in text and "of 100 intervals held" in text
    for word in ("PACC", "Quantifier", "mean ae", "calibrat", "bags"):
        assert word not in text
    assert "PACC" in two.report("x").html or "Learnt from" in two.report("x").html


def test_one_class_of_two_is_shown_and_only_chooses(two):
    page = two.report("x").html
    assert page.count("<div class=card>") == 1 and page.count("<svg") == 1
    other = [n for n in ("c0", "c1") if f"<h2>y: {n}</h2>" not in page]
    assert f"<h2>y: {other[0]}</h2>" in two.report("x", only=other[0]).html
    with pytest.raises(InputError, match="Did you mean 'c1'"):
        two.report("x", only="c11")


def test_missing_months_are_a_gap_and_the_scale_begins_at_zero(two):
    page = two.report("x").html
    assert page.count("<path class=band") == 2 and page.count("<path class=est") == 2
    assert "<span style='bottom:0%'>0</span>" in page
    facts = gather_report(two)
    steps = np.diff(facts.at)
    assert steps.tolist() == [1, 1, 1, 3, 1, 1, 1, 1, 1]


def test_changes_that_monitor_finds_are_marked(two):
    frame = two.monitor()
    found = {g for g, c in zip(frame["group"], frame["changed"], strict=True) if c}
    assert found == {"2020-09", "2020-10", "2020-11", "2020-12"}
    page = two.report("x").html
    assert page.count('class="dot changed"') == len(found)
    assert page.count("<line class=since") == 1


def test_numbers_are_under_the_pointer_without_a_script(two):
    page = two.report("x").html
    tips = re.findall(r"<title>(.*?)</title></rect>", page)
    assert len(tips) == 10 and tips[-1].startswith("2020-12: ")
    assert "counting would say" in tips[0] and "200 rows" in tips[0]
    assert page.count("<script>") == 1 and "http" not in page


def test_many_classes_are_small_charts_of_one_scale_and_others(many):
    page = many.report("x").html
    assert page.count("<svg") == 12  # eleven classes, and the others together
    assert "all others (4)" in page and "all others (11)" in page
    facts = gather_report(many)
    rest = facts.series(facts.others(facts.shown[:4]))
    named = sum(facts.series(c).share for c in facts.shown[:4])
    np.testing.assert_allclose(rest.share + named, 1, atol=1e-9)
    assert (rest.low <= rest.share).all() and (rest.high >= rest.share).all()
    assert facts.names[facts.shown[0]] == "c14"  # the most frequent now, not over all time


def big(two, n):
    """The same count with many more groups."""
    pick = np.arange(n) % len(two.groups)
    by = two.by.parse("hour:date")
    stamps = (np.datetime64("2020-01-01T00", "s") + np.arange(n) * 3600).astype(str).tolist()
    import pyarrow as pa

    by.numbers(pa.array(stamps), n)
    slow = np.arange(n)[:, None] / n * np.array([[0.4, -0.4]])
    interval = replace(
        two.interval,
        prevalence=np.clip(0.3 - slow, 0, 1),
        low=np.clip(0.25 - slow, 0, 1),
        high=np.clip(0.35 - slow, 0, 1),
        variance=np.full((n, 2), 1e-3),
    )
    d = two.diagnosis
    quiet = replace(d, ids=np.arange(n), n=d.n[pick], fit=np.ones(n), strange=np.zeros(n),
                    drift=np.full(n, np.nan), off=np.zeros((n, 2)))  # fmt: skip
    sizes = two.sizes[pick]
    rows = GroupRows(by.names(), by, sizes, sizes.astype(float))
    moments = interval.prevalence, interval.prevalence, interval.variance
    known, keys = np.ones(n, dtype=bool), np.arange(n, dtype=np.uint64)
    draws = Draws(interval.classes, *moments, sizes.astype(float), np.zeros((n, 2)), keys, known)
    estimates = Estimates(interval, interval.prevalence, quiet, draws)
    return replace(two, rows=rows, estimates=estimates)


def flagged(shares, diagnosis):
    """The same shares with other flags."""
    return replace(shares, estimates=replace(shares.estimates, diagnosis=diagnosis))


def by_shop(shares, **changed):
    """The same groups, which are no periods."""
    return replace(shares, rows=replace(shares.rows, by=shares.by.parse("shop"), **changed))


def test_ten_thousand_groups_are_averaged_and_small(two):
    found = big(two, 10_000)
    page = found.report("x", only="c1")
    assert len(page.html) < 150_000
    text = visible(page)
    assert "Each point is the average of 84 hours" in text and "in the last 84 hours" in text
    before = r"the 84 hours from 2020-01-01 00:00 \(30 %\)"
    assert re.search(rf"Higher than in {before} since 2020-", text)
    assert "The hours that differ most, and the last" in page.html
    shops = by_shop(found)
    page = shops.report("x", only="c1")
    assert len(page.html) < 60_000 and "How many groups have which share" in page.html


def test_warnings_are_one_list_the_worst_first_with_counts(two):
    n = len(two.groups)
    fit = np.ones(n)
    fit[:3] = 0.001
    sizes = two.diagnosis.n.copy()
    sizes[1] = 7
    found = flagged(two, replace(two.diagnosis, fit=fit, n=sizes))
    facts = gather_report(found)
    listed = list_warnings(facts)
    assert listed[0][0] == "misfit" and listed[-1][0] == "few"
    assert len(listed[0][2]) == 3
    assert judge_trust(facts, None)[0] == "care"
    text = visible(found.report("x"))
    assert text.index("3 of 10 months: more than") < text.index(
        "1 of 10 months: fewer than 30 rows"
    )
    fit[:] = 1
    fit[-1] = 0.001
    last = gather_report(flagged(two, replace(two.diagnosis, fit=fit)))
    level, said = judge_trust(last, None)
    assert level == "care" and said.startswith("With care for 2020-12: what is seen moves")
    for size, expected in ((0.04, "With care for 2020-12"), (0.3, "Not for 2020-12")):
        off = np.where(np.arange(n)[:, None] == n - 1, size, 0.0) * np.ones(2)
        sized = flagged(two, replace(two.diagnosis, fit=fit, off=off))
        level, said = judge_trust(gather_report(sized), None)
        assert said.startswith(f"{expected}: the share may be off by about {100 * size:.0f} points")
        assert f"off by about {100 * size:.0f} points" in visible(sized.report("x"))
    bad = QualityReport(error=0.3, counting=0.1, coverage=0.9)
    assert judge_trust(gather_report(two), bad)[0] == "bad"


def test_sentences_about_changes():
    def series(shares, changed):
        n = len(shares)
        share = np.array(shares)
        names = [f"m{i}" for i in range(n)]
        none, marks = np.zeros(n, dtype=bool), np.array(changed, dtype=bool)
        sizes = np.full(n, 100)
        return Series(names, np.arange(n), sizes, share, share, share, share, none, marks)

    class Here:
        over_time, reference, noun = True, "m0", "month"

    said = change_sentence(Here, series([0.1, 0.1, 0.4, 0.5], [0, 0, 1, 1]))
    assert said == "Higher than in m0 (10 %) since m2; highest in m3 at 50 %."
    said = change_sentence(Here, series([0.5, 0.1, 0.4, 0.5], [0, 1, 0, 0]))
    assert said == "Not clearly different from m0 (50 %) now; it was lower in m1 at 10 %."
    said = change_sentence(Here, series([0.2, 0.5, 0.6, 0.2, 0.2, 0.3, 0.2], [0, 1, 1, 0, 0, 1, 0]))
    assert said == (
        "Not clearly different from m0 (20 %) now; it was higher from m1 to m2, highest in m2 at "
        "60 %."
    )
    assert (
        change_sentence(Here, series([0.1, 0.1], [0, 0]))
        == "No month differs from m0 (10 %) beyond chance."
    )


def test_scales_are_round():
    assert [scale_top(v) for v in (0.004, 0.05, 0.21, 0.61, 1.0)] == [0.01, 0.05, 0.3, 0.8, 1.0]
    assert [percent(v) for v in (0, 0.004, 0.0994, 0.0996, 0.5)] == [
        "0 %",
        "0.4 %",
        "9.9 %",
        "10 %",
        "50 %",
    ]


def test_groups_without_time_are_bars(two):
    rng = np.random.default_rng(0)
    shares = np.array([[0.2, 0.8], [0.7, 0.3], [0.5, 0.5]])
    found = two.model.estimate(table_of(shares, 150, rng, ["a", "b", "c"]), by="shop")
    page = found.report("x").html
    assert page.count('class="rail hit') == 3 and "<svg" not in page
    assert "Highest: shop" in page and "Lowest: shop" in page
    alone = two.model.estimate(table_of(shares[:1], 150, rng, ["a"]))
    assert "<svg" not in alone.report("x").html and "between" in visible(alone.report("x"))


def test_a_flag_of_chance_alone_does_not_condemn_the_last_period():
    found = counted(2, 36, per=60)
    fit = np.ones(36)
    fit[-1] = 0.001
    level, said = judge_trust(gather_report(flagged(found, replace(
        found.diagnosis, fit=fit, strange=np.zeros(36)))), None)  # fmt: skip
    assert level == "care"
    assert said.startswith("Yes: 1 of 36 months, 2022-12 among them, carries a warning")


def test_weak_classes_are_named(many):
    weak = replace(many.diagnosis, condition=1e9, alike=("c3", "c7"), fit=np.ones(6))
    found = flagged(many, weak)
    assert "c3 and c7 can hardly be told apart" in judge_trust(gather_report(found), None)[1]
    assert "c3 and c7 can hardly be told apart; label more" in visible(found.report("x"))


def test_rows_without_a_date_are_no_month(two):
    rng = np.random.default_rng(1)
    heap = table_of(np.full((3, 2), 0.5), 100, rng, ["2026-01", "2026-02", "soon"])
    text = visible(two.model.estimate(heap, by="month:date").report("x"))
    assert "200 rows in 2 months, 2026-01 to 2026-02; 100 rows more have no date." in text
    assert "of 3 months" not in text


def test_names_of_periods_have_room():
    days = [*range(30), 2000, 2001]  # a month, and two days years later
    n = len(days)
    half, none = np.full(n, 0.5), np.zeros(n, dtype=bool)
    names = [f"day {d}" for d in days]
    sizes = np.full(n, 100)
    chart = time_chart(Series(names, np.array(days), sizes, *[half] * 4, none, none), 1.0)
    below = chart.split("class=xs>")[1]
    assert re.findall(r">(day \d+)<", below) == ["day 0", "day 2001"]


def test_averages_of_many_small_periods_carry_no_warning_of_few_rows(two):
    found = big(two, 10_000)
    small = flagged(found, replace(found.diagnosis, n=np.full(10_000, 8)))
    assert not gather_report(small).series(1).flagged.any()
    level, said = judge_trust(gather_report(small), None)
    assert level == "good" and said.startswith("Yes for the averages shown; 10,000 of 10,000 hours")
    assert gather_report(small).whole_series(1).flagged.all()


def test_without_a_clear_difference_the_largest_groups_are_listed(two):
    found = big(two, 5_000)
    shops = by_shop(found, sizes=np.full(5_000, 8))
    assert "The largest groups" in shops.report("x").html


def test_weeks_and_numbered_groups_are_said_so(two):
    rng = np.random.default_rng(2)
    shares = np.array([[0.2, 0.8], [0.7, 0.3]])
    heap = table_of(shares, 150, rng, ["2026-01-05", "2026-01-13"])
    page = visible(two.model.estimate(heap, by="week:date").report("x"))
    assert "in the week of 2026-01-12" in page
    heap["shop"] = heap["date"].str[-2:].astype(int)
    assert "Highest: shop 5 at" in visible(two.model.estimate(heap, by="shop").report("x", "c1"))
    truth = two.model.estimate(heap, by="shop", truth="y").report("x").html
    assert truth.count("<s style") == 2 and "true share" in truth
