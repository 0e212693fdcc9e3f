"""The judge: pictures that look like another class are drawn again, and nothing else changes."""

import jax
import numpy as np
import pytest

from limbeck.data.schema import ImageShape, Schema
from limbeck.errors import UserError
from limbeck.generate.moment_matching import _filtered
from limbeck.models import class_filter, sampling
from limbeck.models import generators as nets
from limbeck.models.class_filter import ClassFilter
from limbeck.models.generators import GeneratorConfig
from limbeck.models.state import GeneratorState
from limbeck.privacy.noise import entropy

PICTURES = Schema(classes=(0, 1, 2), image=ImageShape(10, 9, 1))
SHAPE = GeneratorConfig(4, (6,))


def generator(**judged):
    """Untrained, so that its pictures have nothing to do with their class."""
    net = nets.net_for(PICTURES, SHAPE, jax.random.key(0))
    codes = nets.codes_for(
        jax.random.normal(jax.random.key(1), (300, 4)), np.eye(3, dtype=np.float32)[[0, 1, 2] * 100]
    )
    config = {**SHAPE._asdict(), "shares": [0.2, 0.3, 0.5], "places": {}}
    return GeneratorState(config, {**nets.to_arrays(net, net(codes)[1]), **judged})


@pytest.fixture(scope="module")
def by_brightness():
    """Takes dark pictures for class 0 and bright ones for class 2."""
    x, _ = sampling.draw(PICTURES, generator(), 2000, entropy(0))
    third = np.argsort(np.argsort(x.mean(axis=1))) // 667
    return class_filter.learn(x, third, 3)


def test_it_learns_what_most_pictures_of_a_class_have_in_common():
    rng = np.random.default_rng(0)
    labels = np.arange(900) % 3
    x = 0.3 * rng.random((900, 90)) + 0.7 * np.repeat(np.eye(3), 30, axis=1)[labels]
    told = np.where(np.arange(900) < 90, (labels + 1) % 3, labels)  # every tenth is wrong
    np.testing.assert_array_equal(class_filter.learn(x, told, 3)(x), labels)


def test_of_two_classes_it_scores_both():
    labels = np.arange(100) % 2
    found = class_filter.learn(labels[:, None] + np.zeros((100, 4)), labels, 2)
    assert found.weight.shape == (4, 2)
    np.testing.assert_array_equal(found(np.array([[0.0] * 4, [1.0] * 4])), [0, 1])


def test_records_are_drawn_until_it_agrees(by_brightness):
    x, y = sampling.draw(PICTURES, generator(), 1500, entropy(1))
    assert np.mean(by_brightness(x) == y) < 0.5
    judged = generator(**class_filter.to_arrays(by_brightness))
    again, labels = sampling.draw(PICTURES, judged, 1500, entropy(1))
    assert np.mean(by_brightness(again) == labels) > 0.99
    np.testing.assert_array_equal(np.bincount(labels), [300, 450, 750])
    agreed = (labels == y) & (by_brightness(x) == y)
    np.testing.assert_array_equal(again[agreed], x[agreed])


def test_a_class_that_it_never_sees_is_drawn_all_the_same():
    blind = ClassFilter(np.zeros((90, 3), np.float32), np.array([1, 0, 0], np.float32))
    x, y = sampling.draw(PICTURES, generator(**class_filter.to_arrays(blind)), 30, entropy(0))
    assert x.shape == (30, 90)
    np.testing.assert_array_equal(np.bincount(y), [6, 9, 15])


def test_it_is_kept_as_arrays(by_brightness):
    again = class_filter.from_arrays(class_filter.to_arrays(by_brightness), 90, 3)
    np.testing.assert_array_equal(again.weight, by_brightness.weight)
    np.testing.assert_array_equal(again.bias, by_brightness.bias)
    assert class_filter.from_arrays({}, 90, 3) is None


@pytest.mark.parametrize("kept", [slice(1), slice(0)])
def test_one_of_other_pictures_is_refused_in_a_line(by_brightness, kept):
    arrays = class_filter.to_arrays(by_brightness)
    arrays["class_filter.weight"] = arrays["class_filter.weight"][kept]
    with pytest.raises(UserError, match="another version"):
        sampling.draw(PICTURES, generator(**arrays), 5, entropy(0))


def test_a_generator_that_went_out_of_bounds_has_none():
    """What it makes is no picture, and the bundle refuses it with a message that helps."""
    fine = generator()
    lost = GeneratorState(
        fine.config, {name: array * np.nan for name, array in fine.arrays.items()}
    )
    assert class_filter.from_arrays(_filtered(PICTURES, lost, entropy(0)).arrays, 90, 3) is None
