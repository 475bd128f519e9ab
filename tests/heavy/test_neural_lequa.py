"""The networks of the lab on a small task: fitted on its development samples, and light."""

import pickle

import numpy as np
import pytest

pytest.importorskip("torch")

from sklearn.base import clone

from headcount.exceptions import InputError
from headcount.lequa import build_lab, make_corpus, open_task
from headcount.lequa.build import SENTIMENT, Recipe
from headcount.lequa.networks import FromDevSamples, neural_methods
from headcount.neural import DeepSets, Sampling, Training

# Two epochs are too few to learn anything, and the networks say so.
pytestmark = pytest.mark.filterwarnings("ignore::headcount.exceptions.UnreliableWarning")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    home = tmp_path_factory.mktemp("lab")
    sizes = {"n_train": 300, "n_dev": 20, "n_test": 30, "size": 50, "dimensions": 30}
    recipe = Recipe(leak_limit=1.0, label="stars", labels=SENTIMENT, helpful="helpful", **sizes)
    build_lab(make_corpus(3000, random_state=0), home, recipe)
    return home


def small():
    training = Training(epochs=2, n_threads=1)
    return DeepSets(features=(8,), head=(8,), training=training, sampling=Sampling(bag_size=50))


@pytest.mark.parametrize("labels", [True, False])
def test_a_network_learns_from_the_samples_of_its_task(lab, labels):
    task = open_task(lab / "T1A")
    q = FromDevSamples(small(), folder=task.folder, labels=labels)
    assert len(pickle.dumps(q)) < 5000
    test = task.samples("test")
    answers = clone(q).fit(task.train.X, task.train.y).predict_bags(test.X, test.bags)
    assert answers.shape == (30, 2)
    dev = task.samples("dev")
    direct = small()
    if labels:
        direct.fit(np.asarray(task.train.X), task.train.y, bags=dev.bags, pool=dev.X)
    else:
        direct.fit_bags(dev.X, dev.bags)
    np.testing.assert_array_equal(answers, direct.predict_bags(test.X, test.bags))


def test_the_lab_has_its_networks(lab):
    names = {t: [m.name for m in neural_methods(open_task(lab / t))] for t in ("T1A", "T2A")}
    assert names == {"T1A": ["UniOviedo(Team1)", "QuaNet"], "T2A": ["QuaNet"]}


def test_samples_without_shares_are_refused(lab, tmp_path):
    import shutil

    folder = tmp_path / "T1A"
    shutil.copytree(lab / "T1A", folder)
    (folder / "dev_prevalences.txt").unlink()
    task = open_task(folder)
    with pytest.raises(InputError, match=r"dev_prevalences\.txt"):
        FromDevSamples(small(), folder=folder).fit(task.train.X, task.train.y)
