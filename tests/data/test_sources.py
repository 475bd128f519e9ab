"""Readers of the temporal benchmark's sources, on files in their published form, ugly rows too."""

import csv
import gzip
import json

import numpy as np
import pytest

from headcount import InputError
from headcount.data import amazon
from headcount.data.complaints import product_map
from headcount.data.published import PUBLISHED_SETS, read_published
from headcount.data.tables import read_table


def names(items):
    return np.array(items.classes)[items.labels].tolist()


def dates(items):
    return items.days.astype("datetime64[D]").astype(str).tolist()


def texts(items):
    return items.texts(np.arange(len(items))).tolist()


def read(name, path, keep, **options):
    return read_published(PUBLISHED_SETS[name], path, keep, **options)


def review(**fields):
    whole = {
        "overall": 5.0,
        "vote": "1,203",
        "verified": True,
        "reviewTime": "12 17, 2008",
        "reviewerID": "A1",
        "asin": "B1",
        "style": {"Color:": " Red"},
        "reviewerName": "x",
        "reviewText": "good pen",
        "summary": "ok",
        "unixReviewTime": 1229472000,
    }
    return {k: v for k, v in {**whole, **fields}.items() if v is not None}


def lines(rows):
    return "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows)


REVIEWS = [
    review(),
    review(overall=1.0, reviewText="<div id='v'>bad</div> &#34;pen&#34; &amp; <br />so on 1 < 2"),
    review(reviewText=None),
    review(reviewText="  "),
    review(style={"Size:": " Large", "Format:": " Paper"}, image=["http://x"], overall=2.0),
    review(),  # the same again
    review(unixReviewTime=None, reviewText="by the written date", reviewTime="1 2, 2016"),
    review(unixReviewTime=253402300800, reviewText="from the far future"),
    review(overall=0.0),
    review(overall=4.0, reviewText="ünï\u2028code\nwith a line break", vote=7),
]
STRANGE = ['{"overall": 5.0, "reviewText": "cut', "[1, 2]", "", review(overall="3.0", asin=17)]


@pytest.mark.parametrize("block", [1 << 24, 300])
def test_reviews(tmp_path, monkeypatch, block):
    monkeypatch.setattr(amazon, "BLOCK", block)
    file = PUBLISHED_SETS["office5"].file
    (tmp_path / file).write_bytes(gzip.compress(lines(REVIEWS).encode()))
    five = read("office5", tmp_path / file, tmp_path / "kept")
    assert names(five) == ["5", "1", "2", "5", "5", "4"]
    assert texts(five)[1] == 'bad  "pen" &  so on 1 < 2'
    assert texts(five)[5] == "ünï\u2028code\nwith a line break"
    assert dates(five)[0] == "2008-12-17"
    assert dates(five)[4] == "2016-01-02"
    assert five.counts == {
        "rows read": 10,
        "without stars from 1 to 5": 1,
        "with a date out of range": 1,
        "without a text": 2,
        "equal to an earlier row": 1,
    }
    once = read("office5", tmp_path, tmp_path / "kept", duplicates="drop")
    assert names(once) == ["5", "1", "2", "5", "4"]
    assert once.texts(np.array([1, 4])).tolist() == [texts(five)[1], texts(five)[5]]
    two = read("office2", tmp_path, tmp_path / "kept")
    assert names(two) == ["not negative", "negative", "negative", *["not negative"] * 3]


def test_lines_that_are_broken_are_counted_and_the_rest_is_read(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(lines([*REVIEWS[:2], *STRANGE])[:-1])
    found = read("office5", path, tmp_path / "kept")
    assert names(found) == ["5", "1", "3"]
    assert found.counts == {"rows read": 5, "that are no JSON": 2}


def test_what_is_kept_is_read_the_next_time_and_made_anew_for_another_file(tmp_path, monkeypatch):
    path = tmp_path / "r.json"
    path.write_text(lines(REVIEWS))
    first = read("office5", path, tmp_path / "kept")
    monkeypatch.setattr(amazon, "_read", lambda *_: 1 / 0)
    again = read("office5", path, tmp_path / "kept")
    assert (names(again), dates(again), texts(again)) == (names(first), dates(first), texts(first))
    assert again.counts == first.counts
    path.write_text(lines(REVIEWS[:3]))
    with pytest.raises(ZeroDivisionError):
        read("office5", path, tmp_path / "kept")
    assert not list((tmp_path / "kept").glob(".part-*"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("office5", "It should be a 5-core file of the Amazon review data of 2018.*nijianmo"),
        ("ccd9", "CSV file of the Consumer Complaint Database.*see https://www.consumerfinance"),
        ("toxicity2", "lacks toxicity_annotated_comments.tsv and toxicity_annotations.tsv"),
    ],
)
def test_what_is_missing_is_named_with_where_it_is_published(tmp_path, name, words):
    with pytest.raises(InputError, match=words):
        read(name, tmp_path, None)


def test_another_file_is_told_from_the_one_that_is_wanted(complaints):
    for name, path, words in (
        ("office5", "complaints.csv", "no row can be used: .*'that are no JSON'.* see .*nijianmo"),
        ("ccd9", "r.json", "unknown column .*It should be the CSV file of the Consumer Complaint"),
    ):
        (complaints / "r.json").write_text(lines(REVIEWS))
        with pytest.raises(InputError, match=words):
            read(name, complaints / path, complaints / "kept")
    assert not list((complaints / "kept").iterdir())  # nothing is kept of what could not be read


def test_a_file_that_is_cut_short_is_refused_and_nothing_is_kept(tmp_path):
    rng = np.random.default_rng(0)
    long = [review(reviewText=" ".join(map(str, rng.integers(0, 10**6, 50)))) for _ in range(50)]
    path = tmp_path / "r.json.gz"
    path.write_bytes(gzip.compress(lines(long).encode())[:-2000])
    with pytest.raises(InputError, match=r"r.json.gz cannot be read to its end"):
        read("office5", path, tmp_path / "kept")
    assert not list((tmp_path / "kept").iterdir())


HEADER = [
    *("Date received", "Product", "Sub-product", "Issue", "Sub-issue"),
    *("Consumer complaint narrative", "Company public response", "Company", "State", "ZIP code"),
    *("Tags", "Consumer consent provided?", "Submitted via", "Date sent to company"),
    *("Company response to consumer", "Timely response?", "Consumer disputed?", "Complaint ID"),
]
LOAN = "Payday loan, title loan, or personal loan"
MONEY = "Money transfer, virtual currency, or money service"
COMPLAINTS = [
    ("2015-04-02", "Credit reporting", "", 'They "lost"\nmy XXXX file,\n\ntwice', "1"),
    ("2019-08-01", "Debt collection", "Medical debt", "", "2"),  # no consent, no text
    ("08/24/2017", "Consumer Loan", "Vehicle lease", "The car", "3"),
    ("2016-01-01", "Consumer Loan", "Installment loan", "A loan", "4"),
    ("2016-01-01", "Payday loan", "", "Another", "5"),
    ("2020-02-30", "Mortgage", "", "No such day", "6"),
    ("2021-07-01", MONEY, "Virtual currency", "Coins are gone", "7"),
    ("2021-07-01", MONEY, "Virtual currency", "Coins are gone", "7"),  # the same again
    ("2016-05-05", "Virtual currency", "Domestic (US) money transfer", "Early coins", "8"),
    ("2024-01-01", "Debt or credit management", "", "A late product", "9"),
    ("2020-01-01", "", "", "Nobody knows of what", "10"),
]


@pytest.fixture
def complaints(tmp_path):
    with (tmp_path / "complaints.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for date, product, part, text, number in COMPLAINTS:
            row = dict.fromkeys(HEADER, "x")
            row |= dict(zip(HEADER[:3], (date, product, part), strict=True))
            row |= {"Consumer complaint narrative": text, "Complaint ID": number}
            writer.writerow(row.values())
    return tmp_path


def test_complaints(complaints):
    found = read("ccd9", complaints, complaints / "kept")
    assert names(found) == [
        "Credit reporting, credit repair services, or other personal consumer reports",
        "Vehicle loan or lease",
        LOAN,
        LOAN,
        MONEY,
        MONEY,
        MONEY,
    ]
    assert dates(found)[:2] == ["2015-04-02", "2017-08-24"]
    assert texts(found)[0] == 'They "lost"\nmy XXXX file,\n\ntwice'
    parts = np.array(found.part_names)[found.parts].tolist()
    assert parts[4:] == ["Virtual currency", "Virtual currency", "Domestic (US) money transfer"]
    assert found.counts == {
        "rows read": 11,
        "without a text": 1,
        "without a date that can be read": 1,
        "without a product": 1,
        "equal to an earlier row": 1,
        "of the product 'Debt or credit management', which the map does not have": 1,
    }


def test_a_map_of_ones_own_takes_the_place_of_ours(complaints):
    own = complaints / "own.csv"
    own.write_text(
        "product,sub_product_contains,category\nConsumer Loan,,loan\nPayday loan,,loan\n"
        "Credit reporting,,report\n"
    )
    found = read("ccd9", complaints, complaints / "kept", products=own)
    assert names(found) == ["report", "loan", "loan", "loan"]
    own.write_text("product,category\nConsumer Loan,loan\n")
    with pytest.raises(InputError, match="sub_product_contains"):
        read("ccd9", complaints, complaints / "kept", products=own)


def test_the_map_has_the_nine_categories_and_every_older_name():
    from importlib import resources

    with resources.as_file(resources.files("headcount.data") / "products.csv") as path:
        table = read_table(path)
    assert len(set(table["category"].tolist())) == 9
    category = product_map()
    for older, newer in (
        ("Credit card", "Credit card or prepaid card"),
        ("Prepaid card", "Credit card or prepaid card"),
        ("Bank account or service", "Checking or savings account"),
        ("Money transfers", MONEY),
        ("Other financial service", MONEY),
    ):
        assert category(older, "") == newer == category(newer, "anything")
    assert category("Consumer Loan", "Vehicle loan") == "Vehicle loan or lease"
    assert category("Consumer Loan", "Title loan") == LOAN
    assert category("  consumer  LOAN", "VEHICLE lease") == "Vehicle loan or lease"
    assert category("Cookies", "") == ""


COMMENTS = """rev_id\tcomment\tyear\tlogged_in\tns\tsample\tsplit
1.0\tHelloNEWLINE_TOKENthereTAB_TOKENyou\t2005\tTrue\tuser\trandom\ttrain
2\t"`` quoted ""words"" ``"\t2009\tTrue\tuser\tblocked\ttrain
3.0\tyou fool\t2012\tFalse\tuser\trandom\ttest
4\tyou blocked fool\t2013\tFalse\tarticle\tblocked\ttest
5\tnobody judged this\t2013\tFalse\tarticle\trandom\ttest
6\t  \t2014\tFalse\tarticle\trandom\ttest
7\tof a wrong year\t1014\tFalse\tarticle\trandom\ttest
3\tyou fool\t2012\tFalse\tuser\trandom\ttest
"""
VOTES = {"1.0": "000", "2": "10", "3": "110", "4.0": "111", "6": "0", "7": "0"}


def test_comments(tmp_path):
    (tmp_path / "toxicity_annotated_comments.tsv").write_text(COMMENTS)
    rows = [
        f"{comment}\t{worker}\t{vote}\t{1.0 - 2 * int(vote)}\n"
        for comment, votes in VOTES.items()
        for worker, vote in enumerate(votes)
    ]
    head = "rev_id\tworker_id\ttoxicity\ttoxicity_score\n"
    (tmp_path / "toxicity_annotations.tsv").write_text(head + "".join(rows))
    found = read("toxicity2", tmp_path, tmp_path / "kept")
    assert names(found) == ["not toxic", "not toxic", "toxic", "toxic", "toxic"]  # a tie is not
    assert texts(found)[:2] == ["Hello\nthere\tyou", '`` quoted "words" ``']
    assert found.may_test.tolist() == [True, False, True, False, True]
    assert dates(found)[0] == "2005-01-01"
    assert found.counts == {
        "rows read": 8,
        "without annotations": 1,
        "with a year out of range": 1,
        "without a text": 1,
        "equal to an earlier row": 1,
    }
    cut = PUBLISHED_SETS["toxicity2"].windows
    with pytest.raises(InputError, match="'for training only': 1"):
        cut.cut(found.days, found.may_test)


def test_a_study_reads_a_published_set_by_its_name(tmp_path):
    from headcount.study import load

    rng = np.random.default_rng(0)
    days = np.arange("2014-07-01", "2016-03-01", dtype="datetime64[D]")
    rows = []
    for i, day in enumerate(np.repeat(days, 2)):
        stars = int(rng.integers(1, 6))
        word = ["bad", "poor", "fair", "good", "great"][stars - 1]
        seconds = int(day.astype("datetime64[s]").astype(int))
        rows.append(
            review(overall=float(stars), reviewText=f"{word} pen {i}", unixReviewTime=seconds)
        )
    (tmp_path / "o.json").write_text(lines(rows))
    (tmp_path / "o.toml").write_text(
        'extends = "temporal"\nname = "x"\n[[methods]]\nquantifier = "PCC"\nclassifier = "base"\n'
        '[[datasets]]\nname = "office2"\namazon = "o.json"\nkeep = "kept"\n'
        "[datasets.temporal]\nminimum = 30\n"
        '[[datasets]]\nname = "five"\nversion = "office5"\namazon = "o.json"\nkeep = "kept"\n'
        'temporal = { minimum = 30, every = "quarter" }\n'
    )
    two, five = load(tmp_path / "o.toml").datasets
    assert two.story["published"] == "office2"
    assert (len(two.classes), len(five.classes)) == (2, 5)
    assert two.story["periods"][-1] == "2016-02"
    assert five.story["windows"]["every"] == "quarter"
    assert len(two.train.y) == 2 * int((days < np.datetime64("2015-08-01")).sum())
    (tmp_path / "bad.toml").write_text(
        (tmp_path / "o.toml").read_text().replace('"office5"', '"ccd9"')
    )
    with pytest.raises(InputError, match="'ccd9' is made of complaints, not of amazon"):
        load(tmp_path / "bad.toml")
