"""Model files: every quantifier survives, nothing foreign is loaded, damage is told."""

import io
import json
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import headcount
from headcount import SLD, GridSearch, InputError, MedianOf, TextQuantifier
from headcount.lequa import make_corpus
from headcount.methods.files import load, load_file, save
from headcount.methods.registry import named_methods

X, y = load_iris(return_X_y=True)
BINARY = y < 2
NAMES = [
    n for n in named_methods() if n not in ("ReadMe", "MedianOf", "OneVsAll", "TextQuantifier")
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_every_method_survives(name, tmp_path):
    model = named_methods()[name]()
    small = {"size": 4, "keep": 2, "n_trials": 5}
    model.set_params(**{k: v for k, v in small.items() if k in model.get_params()})
    items, labels = X[BINARY] + 1, y[BINARY]
    save(model.fit(items, labels), tmp_path / "m.hc", {"trained on": "iris"})
    again = load(tmp_path / "m.hc")
    np.testing.assert_array_equal(again.predict(items[:70]), model.predict(items[:70]))


def test_composed_models_and_texts(tmp_path):
    corpus = make_corpus(300)
    labels = np.where(corpus["stars"] >= 4, "good", "bad")
    search = GridSearch(SLD(LogisticRegression(max_iter=1000)), {"classifier__C": [0.1, 1.0]}).fit(
        X, y
    )
    for model, items in (
        (TextQuantifier().fit(corpus["text"], labels), corpus["text"]),
        (TextQuantifier(vectorizer="learnt").fit(corpus["text"], labels), corpus["text"]),
        (search, X),
        (MedianOf([SLD(), headcount.PACC()]).fit(X, y), X),
    ):
        save(model, tmp_path / "m.hc")
        np.testing.assert_array_equal(load(tmp_path / "m.hc").predict(items), model.predict(items))
    assert load_file(tmp_path / "m.hc").manifest["classes"] == ["0", "1", "2"]


class Stranger(BaseEstimator):
    """A class that no model file may hold."""

    def fit(self, X, y):
        self.inner_ = LogisticRegression(max_iter=1000).fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)


def packed(path, data, **more):
    import hashlib

    manifest = {"format": 1, "headcount": "0", "sha256": hashlib.sha256(data).hexdigest(), **more}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("model.skops", data)


def test_foreign_types_are_refused_both_ways(tmp_path):
    with pytest.raises(InputError, match="Stranger, which a model file may not contain"):
        save(SLD(Stranger()).fit(X, y), tmp_path / "m.hc")
    assert not (tmp_path / "m.hc").exists()
    packed(tmp_path / "m.hc", skops.io.dumps(SLD(Stranger()).fit(X, y)))
    with pytest.raises(InputError, match="Nothing of it was run"):
        load(tmp_path / "m.hc")


def test_what_is_no_quantifier_is_refused(tmp_path):
    packed(tmp_path / "m.hc", skops.io.dumps(LogisticRegression(max_iter=1000).fit(X, y)))
    with pytest.raises(InputError, match="a quantifier is expected"):
        load(tmp_path / "m.hc")
    with pytest.raises(InputError, match="a quantifier is expected"):
        save(LogisticRegression(max_iter=1000).fit(X, y), tmp_path / "n.hc")
    with pytest.raises(Exception, match="not fitted"):
        save(SLD(), tmp_path / "n.hc")


def test_damage_is_told(tmp_path):
    path = tmp_path / "m.hc"
    save(SLD().fit(X, y), path)
    whole = path.read_bytes()
    for data in (b"", b"junk", whole[: len(whole) // 2]):
        path.write_bytes(data)
        with pytest.raises(InputError, match="not a model file of Headcount, or cut short"):
            load(path)
    inner = io.BytesIO(whole)
    with zipfile.ZipFile(inner) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        data = archive.read("model.skops")
    for change, body, words in (
        ({"format": 4}, data, "newer"),
        ({}, data[:-1] + b"x", "changed after it was written"),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("manifest.json", json.dumps({**manifest, **change}))
            archive.writestr("model.skops", body)
        with pytest.raises(InputError, match=words):
            load(path)
    packed(path, b"junk")
    with pytest.raises(InputError, match="is damaged"):
        load(path)
    with pytest.raises(InputError, match="there is no file"):
        load(tmp_path / "nowhere.hc")
