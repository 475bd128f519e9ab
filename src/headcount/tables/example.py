"""A small corpus to try the commands on: messages to a bicycle hire, made by a grammar.

All messages are made up by the rules below. The words of complaints and of other messages stay the
same all the time; what changes from month to month is how many of the messages are complaints.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.files import write_text
from headcount._core.frame import Frame
from headcount.exceptions import InputError

# What share of the messages complains, month by month: the new locks come in September.
COMPLAINTS = [0.09, 0.11, 0.10, 0.08, 0.12, 0.10, 0.13, 0.11, 0.31, 0.42, 0.47, 0.44, 0.41, 0.36,
              0.33, 0.29, 0.25, 0.22]  # fmt: skip
FIRST_MONTH = "2025-01"
LABELLED = 1600  # of which half complain, because somebody picked them so
CLASSES = ("complaint", "other")
# Of a sentence for the message's class, for the other, and for neither.
CHANCES = (0.55, 0.15, 0.3)

RULES = {
    "complaint": [
        "{the} {part} {was} {broken}",
        "I {waited} {time} and {nobody} {came}",
        "your app {charged} me {money} for a ride that I never {took}",
        "{the} lock {refused} to {open}, so the meter kept running",
        "{please} refund {money}, I have asked {times}",
        "the bike at {place} had {a} {broken} {part}",
        "this is the {nth} time that {something} goes wrong",
        "I want to {cancel} my pass because of this",
    ],
    "other": [
        "could you add a station near {place}",
        "how do I {change} {the} {setting} of my pass",
        "{thanks}, the ride from {place} was {fine}",
        "is there a discount for {people}",
        "I found {a} {thing} in the basket of a bike at {place}",
        "{the} {part} {was} {fine} this time",
        "can I take {a} {thing} with me on the bike",
        "my {people} and I {enjoy} the new bikes",
    ],
    "either": [
        "I took a bike at {place} {time} ago",
        "it was {weather} and I was on my way to {place}",
        "I have had a pass for {time}",
        "my ride was number {number}",
        "the app said that there were {few} bikes at {place}",
        "{please} tell me what to do",
        "I use the bikes nearly every {day}",
        "the {part} is not what it was, but never mind",
        "I wrote to you {times} before",
    ],
}
WORDS = {
    "the": "the|the front|the rear|that",
    "part": "brake|saddle|chain|lamp|lock|pedal|tyre|battery|bell|basket|gear",
    "was": "was|is|seemed|felt",
    "broken": "broken|loose|flat|bent|rusty|missing|stuck|dead|useless|worn out",
    "waited": "waited|stood there|rang|was on hold for",
    "time": "an hour|two weeks|a month|ten minutes|half a day|a year",
    "nobody": "nobody|no one|no mechanic",
    "came": "came|answered|helped|called back",
    "charged": "charged|billed|cost",
    "money": "4 euros|12 euros|the deposit|30 euros|a full day",
    "took": "took|started|booked",
    "refused": "refused|failed|would not agree",
    "open": "open|close|let go",
    "please": "please|kindly|could you",
    "times": "twice|three times|many times|once",
    "a": "a|another|one more",
    "nth": "second|third|fifth",
    "something": "something|the return|the payment",
    "cancel": "cancel|end|give back",
    "change": "change|find|renew",
    "setting": "address|card|name|date",
    "thanks": "thanks|thank you|many thanks",
    "fine": "fine|smooth|a pleasure|as good as new|quick",
    "people": "students|kids|colleagues|neighbours|guests",
    "thing": "scarf|helmet|child seat|bag|dog",
    "enjoy": "enjoy|like|love",
    "weather": "raining|sunny|dark|cold|windy",
    "number": "1182|20417|733|5096|8240",
    "few": "no|two|five|plenty of",
    "day": "day|morning|weekend|evening",
    "place": "the harbour|Mill Lane|the station|Oak Square|the library|the old bridge|North Gate",
}
HOLE = re.compile(r"\{(\w+)\}")


def make_example(random_state: int = 0, rows: int = 500) -> tuple[Frame, Frame]:
    """Labelled messages, and all messages of eighteen months with their true labels.

    Parameters
    ----------
    random_state : int
    rows : messages of a month, about

    Examples
    --------
    >>> labelled, messages = make_example()
    >>> labelled.columns, messages.columns
    (['message', 'kind'], ['date', 'channel', 'message', 'kind'])
    """
    rng = np.random.default_rng(random_state)
    labelled = _messages(rng, LABELLED, 0.5)
    months = np.datetime64(FIRST_MONTH) + np.arange(len(COMPLAINTS))
    parts = []
    for month, share in zip(months, COMPLAINTS, strict=True):
        n = int(rng.integers(int(0.8 * rows), int(1.2 * rows)))
        days = np.sort(rng.integers(0, 28, n)) + month.astype("datetime64[D]")
        channel = rng.choice(["app", "mail", "phone"], n, p=[0.6, 0.3, 0.1])
        parts.append({"date": days.astype(str), "channel": channel, **_messages(rng, n, share)})
    heap = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Frame(labelled), Frame(heap)


def write_example(folder: Path, random_state: int = 0) -> tuple[Path, Path]:
    """Write ``labelled.csv`` and ``messages.csv`` into a folder; files that are there are kept."""
    paths = folder / "labelled.csv", folder / "messages.csv"
    for path in paths:
        if path.exists():
            raise InputError(f"{path} is there already: choose another folder, or remove it.")
    folder.mkdir(parents=True, exist_ok=True)
    for path, frame in zip(paths, make_example(random_state), strict=True):
        write_text(path, frame.to_csv())
    return paths


def _messages(rng: np.random.Generator, n: int, share: float) -> dict[str, NDArray[Any]]:
    """Messages of which so many complain, on average."""
    kinds = np.where(rng.random(n) < share, *CLASSES)
    draw = random.Random(int(rng.integers(2**32)))  # much quicker than numpy's for single words
    return {"message": np.array([_message(draw, k) for k in kinds.tolist()]), "kind": kinds}


def _message(draw: random.Random, kind: str) -> str:
    """A few sentences, some of which speak for the other class."""
    opposite = CLASSES[kind == CLASSES[0]]
    rules = draw.choices([kind, opposite, "either"], CHANCES, k=draw.randint(2, 4))
    sentences = [_sentence(draw, rule) for rule in rules]
    return " ".join(f"{s[0].upper()}{s[1:]}." for s in sentences)


def _sentence(draw: random.Random, kind: str) -> str:
    rule = draw.choice(RULES[kind])
    return HOLE.sub(lambda hole: draw.choice(WORDS[hole[1]].split("|")), rule)
