"""Typed models and their files."""

import json
import zipfile
from dataclasses import fields, is_dataclass
from io import BytesIO
from typing import Any, get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest

from headcount import tables
from headcount._core.codec import decode, encode
from headcount.exceptions import InputError
from headcount.tables import Model
from headcount.tables.accumulator import Part, ScoreLayout
from headcount.tables.model import FILE_FORMAT
from headcount.tables.result import Estimates, GroupRows
from headcount.tables.training import GroupInfo, QualityReport, RareClasses, Training
from tests.commands import messages, run


def test_a_model_file_is_read_once(folder, monkeypatch):
    import headcount.methods.files as files

    reads = []
    original = files._read
    monkeypatch.setattr(files, "_read", lambda path: reads.append(path) or original(path))
    Model.load(folder / "m.hc")
    assert len(reads) == 1


def rewritten(path, change):
    """The same model file after a change of its manifest."""
    content = BytesIO(path.read_bytes())
    with zipfile.ZipFile(content) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "manifest.json":
                manifest = json.loads(data)
                change(manifest["about"])
                data = json.dumps(manifest)
            new.writestr(name, data)
    return path


def test_a_model_file_keeps_everything(tmp_path):
    rng = np.random.default_rng(3)
    rows = pd.concat(
        [
            messages(150, s, rng).assign(shop=f"s{i}")
            for i, s in enumerate([0.2, 0.5, 0.6, 0.8, 0.4, 0.3])
        ]
    )
    columns = {"text": "text", "features": "amount", "label": "kind"}
    fitted = tables.fit(rows, **columns, by="shop", method="PACC", min_rows=20)
    fitted.save(tmp_path / "m.hc")
    loaded = tables.Model.load(tmp_path / "m.hc")
    assert encode(loaded.training) == encode(fitted.training)
    assert (loaded.inputs, loaded.label) == (fitted.inputs, fitted.label)
    assert (loaded.bins.bins_ == fitted.bins.bins_).all()
    assert not hasattr(loaded.quantifier, "channels_") and not hasattr(
        fitted.quantifier, "channels_"
    )
    assert loaded.estimate(rows, "shop") == fitted.estimate(rows, "shop")
    with zipfile.ZipFile(tmp_path / "m.hc") as archive:
        assert sorted(archive.namelist()) == [
            "covariate_bins.skops",
            "manifest.json",
            "model.skops",
        ]
        assert json.loads(archive.read("manifest.json"))["about"]["tables"] == FILE_FORMAT


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda about: about.update(tables=FILE_FORMAT + 1), "another version of headcount"),
        (lambda about: about.pop("tables"), "another version of headcount"),
        (lambda about: about["training"].update(rows="many"), "training.rows: int expected"),
        (lambda about: about["training"]["quality"].update(plain="x"), "fit it again"),
        (lambda about: about["training"].update(other=1), "unknown or missing other"),
        (lambda about: about["inputs"].update(kind="features"), "changed since"),
        (lambda about: about.pop("label"), "unknown or missing label"),
    ],
)
def test_damaged_and_other_files_are_refused(model, tmp_path, change, match):
    model.save(tmp_path / "m.hc")
    with pytest.raises(InputError, match=match) as caught:
        tables.Model.load(rewritten(tmp_path / "m.hc", change))
    assert "fit it again" in str(caught.value)


def test_a_missing_or_changed_part_is_refused(model, tmp_path):
    path = tmp_path / "m.hc"
    for data in (None, b"junk"):
        model.save(path)
        content = BytesIO(path.read_bytes())
        with zipfile.ZipFile(content) as old, zipfile.ZipFile(path, "w") as new:
            for name in old.namelist():
                own = data if name == "covariate_bins.skops" else old.read(name)
                if own is not None:
                    new.writestr(name, own)
        with pytest.raises(InputError, match=r"cut short|changed after it was written"):
            tables.Model.load(path)


def records(kind, seen):
    """Dataclasses that a record is made of."""
    if is_dataclass(kind) and kind not in seen:
        seen.add(kind)
        for hint in get_type_hints(kind).values():
            records(hint, seen)
    for argument in get_args(kind):
        records(argument, seen)
    return seen


@pytest.mark.parametrize("kind", [Training, GroupRows, Estimates, Part, ScoreLayout])
def test_no_record_holds_untyped_dictionaries(kind):
    for record in records(kind, set()):
        if not record.__module__.startswith("headcount.tables"):
            continue
        for name, hint in get_type_hints(record).items():
            assert hint is not Any and "dict[str, typing.Any]" not in str(hint), (record, name)


def test_the_codec_is_its_own_inverse():
    quality = QualityReport(200, 100, "x", 0.1, 0.2, 0.3, plain=0.9, scale=1.5)
    training = Training(3, "SLD", {"a": 0.5}, ["x"], None, None, RareClasses(("q",), 2), quality)
    plain = json.loads(json.dumps(encode(training)))
    again = decode(Training, plain)
    assert all(getattr(again, f.name) == getattr(training, f.name) for f in fields(Training))
    assert get_type_hints(GroupInfo)["counts"] == get_type_hints(Part)["groups"]
    with pytest.raises(ValueError, match=r"Training.shares.a: float expected, got str"):
        decode(Training, {**plain, "shares": {"a": "half"}})


CHANGES = [
    lambda m: m.pop("about"),
    lambda m: m.update(about=None),
    lambda m: m["about"]["inputs"].update(columns=5),
    lambda m: m["about"]["inputs"].update(kind="features"),
    lambda m: m["about"].update(training=None),
    lambda m: m["about"]["training"].update(rows="many"),
    lambda m: m["about"]["training"]["quality"].pop("error") and m["about"].update(label=3),
    lambda m: m["about"].update(surprise=1),
    lambda m: m.update(format=float("inf")),
]


@pytest.mark.parametrize("change", CHANGES)
def test_manifests_of_strangers(folder, tmp_path, change):
    import zipfile

    path = tmp_path / "m.hc"
    with zipfile.ZipFile(folder / "m.hc") as old, zipfile.ZipFile(path, "w") as new:
        manifest = json.loads(old.read("manifest.json"))
        change(manifest)
        new.writestr("manifest.json", json.dumps(manifest))
        for name in ("model.skops", "covariate_bins.skops"):
            new.writestr(name, old.read(name))
    assert "it again" in run("estimate", path, folder / "heap.csv", code=2) or change is CHANGES[-1]
