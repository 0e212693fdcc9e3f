"""Labels by a private readout: the class of a picture is what the readout says, in every share."""

import jax
import numpy as np
import pytest

import limbeck
from limbeck.data.schema import ImageShape, Schema
from limbeck.data.source import open_source
from limbeck.errors import UserError
from limbeck.evaluate.task import read
from limbeck.features.smooth import SmoothFourier
from limbeck.generate import labels
from limbeck.generate.moment_matching import DPMERF
from limbeck.models import generators as nets
from limbeck.models import labeller as labellers
from limbeck.models import sampling
from limbeck.models.generators import GeneratorConfig
from limbeck.models.labeller import Labeller
from limbeck.models.state import GeneratorState
from limbeck.privacy.budget import Budget
from limbeck.privacy.noise import entropy
from limbeck.privacy.plan import Plan
from limbeck.privacy.run import Run

PICTURES = Schema(classes=(0, 1, 2), image=ImageShape(10, 9, 1))
SHAPE = GeneratorConfig(4, (6,))
PHI = SmoothFourier(shape=(10, 9, 1))


def generator():
    """Untrained, so that its pictures have nothing to do with their class."""
    net = nets.net_for(PICTURES, SHAPE, jax.random.key(0))
    noise = jax.random.normal(jax.random.key(1), (300, 4))
    codes = nets.codes_for(noise, np.eye(3, dtype=np.float32)[[0, 1, 2] * 100])
    config = {**SHAPE._asdict(), "shares": [0.2, 0.3, 0.5], "places": {}}
    return GeneratorState(config, nets.to_arrays(net, net(codes)[1]))


@pytest.fixture(scope="module")
def labeller():
    """Some readout, by which no class is rare."""
    x, _ = sampling.draw(PICTURES, generator(), 500, entropy(0))
    for seed in range(100):
        readout = np.random.default_rng(seed).normal(size=(PHI.size, 3)).astype(np.float32)
        found = Labeller(PHI, readout - readout.mean(axis=0))
        if np.bincount(found(x), minlength=3).min() > 50:
            return found
    raise AssertionError("no such readout")


def test_every_picture_is_of_the_class_that_the_readout_says(labeller):
    x, y = sampling.draw(PICTURES, labellers.added(generator(), labeller), 3000, entropy(1))
    assert np.mean(labeller(x) == y) > 0.999  # it may round otherwise beside other pictures
    np.testing.assert_array_equal(np.bincount(y), [600, 900, 1500])
    assert len(np.unique(x, axis=0)) == 3000


def test_without_it_they_are_of_the_class_they_were_made_for(labeller):
    x, y = sampling.draw(PICTURES, generator(), 3000, entropy(1))
    assert np.mean(labeller(x) == y) < 0.6


def test_a_class_that_the_readout_never_sees_is_drawn_all_the_same():
    readout = np.zeros((PHI.size, 3), np.float32)
    blind = Labeller(PHI, readout)  # of equal scores the first is taken
    x, y = sampling.draw(PICTURES, labellers.added(generator(), blind), 30, entropy(0))
    assert np.isfinite(x).all()
    np.testing.assert_array_equal(np.bincount(y), [6, 9, 15])


def test_it_is_kept_with_the_generator(labeller):
    again = labellers.of(labellers.added(generator(), labeller), PICTURES)
    assert again.phi == labeller.phi
    np.testing.assert_array_equal(again.readout, labeller.readout)
    assert labellers.of(generator(), PICTURES) is None


@pytest.mark.parametrize("wrong", ["features", "readout", "missing"])
def test_one_that_does_not_fit_is_refused_in_a_line(labeller, wrong):
    saved = labellers.added(generator(), labeller)
    config, arrays = dict(saved.config), dict(saved.arrays)
    if wrong == "features":
        config["labels"] = "of tomorrow"
    elif wrong == "readout":
        arrays[labellers.READOUT] = arrays[labellers.READOUT][:-1]
    else:
        del arrays[labellers.READOUT]
    with pytest.raises(UserError, match="another version"):
        sampling.draw(PICTURES, GeneratorState(config, arrays), 5, entropy(0))


def learned(epsilon):
    """From digits; a fixed seed, so nothing here fails by chance."""
    run = Run(Plan(measurements=(labels.planned(1.0),)), Budget(epsilon=epsilon), seed=0)
    counts = np.full(10, len(read(open_source("digits")).y) / 10)
    return labels.measure(limbeck.open("digits"), counts, run), run.ledger


def test_the_readout_knows_real_pictures_and_noise_costs_accuracy():
    test = read(open_source("digits", split="test"))
    (one, ledger), (other, _) = learned(20.0), learned(0.1)
    assert ledger.draws == labels.DESCENT.steps
    right, less = (np.mean(found(test.x) == test.y) for found in (one, other))
    assert right > 0.9
    assert less < right - 0.2


@pytest.fixture(scope="module")
def labelled():
    return DPMERF(records=300, steps=60, frequencies=200, label_with="readout").fit(
        limbeck.open("digits"), Budget(epsilon=10.0), seed=0
    )


def test_a_release_pays_for_its_labels(labelled):
    draws = {event.purpose: event.draws for event in labelled.events}
    assert draws == {
        "class-wise sums of features": 1,
        "class counts": 1,
        "gradient": labels.DESCENT.steps,
    }
    noise = {event.purpose: event.noise_multiplier for event in labelled.events}
    of_readout = noise["gradient"] / np.sqrt(labels.DESCENT.steps)
    assert noise["class-wise sums of features"] == pytest.approx(np.sqrt(2) * of_readout)
    assert labelled.epsilon <= 10


def test_more_drawn_from_a_saved_release_are_labelled_by_it_too(labelled, tmp_path):
    again = limbeck.load(labelled.save(tmp_path / "release"))
    more, found = again.sample(400, seed=3), labellers.of(again.generator, again.schema)
    exact, classes = sampling.draw(again.schema, again.generator, 400, entropy(3))
    np.testing.assert_array_equal(more.y_soft.argmax(axis=1), classes)
    np.testing.assert_allclose(more.points, exact, atol=0.5 / 16 + 1e-6)  # whole pixels
    assert np.mean(found(exact) == classes) > 0.97  # those of a rare class may be of another
    assert not any(name.startswith("class_filter") for name in again.generator.arrays)


def test_a_table_is_told_that_it_is_for_pictures():
    with pytest.raises(UserError, match="label_with=readout is for images"):
        DPMERF(label_with="readout").fit(
            limbeck.open("examples/patients.csv.gz", schema="examples/patients.toml"),
            Budget(epsilon=1.0),
        )


def test_the_release_says_how_it_was_labelled(labelled, tmp_path):
    settings = limbeck.load(labelled.save(tmp_path / "release")).settings
    assert DPMERF(**settings) == DPMERF(
        records=300, steps=60, frequencies=200, label_with="readout"
    )
