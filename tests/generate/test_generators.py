"""Generators: what comes out of them is a record, and training brings the moments near."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.data.column import Column
from limbeck.data.schema import ImageShape, Schema
from limbeck.errors import UserError
from limbeck.features.fourier import Fourier
from limbeck.features.mixed import Mixed
from limbeck.generate import training
from limbeck.generate.moment_matching import DPMERF
from limbeck.generate.training import Descent, Target
from limbeck.models import generators as nets
from limbeck.models import sampling
from limbeck.models.generators import GeneratorConfig
from limbeck.models.state import GeneratorState
from limbeck.privacy.noise import entropy

TABLE = Schema(
    classes=("no", "yes"),
    columns=(
        Column("age", "integer", minimum=0, maximum=9),
        Column("ward", "categorical", values=("a", "b", "c")),
        Column("smoker", "boolean"),
    ),
)
PICTURES = Schema(classes=(0, 1, 2), image=ImageShape(10, 9, 3))
SHAPES = [
    (TABLE, GeneratorConfig(4, (8, 7))),
    (PICTURES, GeneratorConfig(4, (6, 5))),
    (PICTURES, GeneratorConfig(4, (6,))),
]


def codes_of(schema, n=30, seed=0):
    classes = len(schema.classes)
    noise = jax.random.normal(jax.random.key(seed), (n, 4))
    return nets.codes_for(noise, jnp.eye(classes)[jnp.arange(n) % classes])


@pytest.mark.parametrize(("schema", "shape"), SHAPES)
def test_what_comes_out_is_of_the_schemas_width_and_within_bounds(schema, shape):
    net = nets.net_for(schema, shape, jax.random.key(0))
    x, _ = net(codes_of(schema))
    assert x.shape == (30, schema.width)
    assert float(x.min()) >= 0
    assert float(x.max()) <= 1


def test_a_categorical_column_is_shares_that_add_up_to_one():
    x, _ = nets.net_for(*SHAPES[0], jax.random.key(0))(codes_of(TABLE))
    np.testing.assert_allclose(x[:, 1:4].sum(axis=1), 1, atol=1e-6)


def test_a_doubled_map_is_a_transposed_convolution():
    keys = jax.random.split(jax.random.key(0), 2)
    x, filters = jax.random.normal(keys[0], (2, 3, 4, 5)), jax.random.normal(keys[1], (5, 4, 4, 6))
    plain = np.zeros((2, 8, 10, 6))
    for i in range(3):
        for j in range(4):
            patch = np.einsum("ni,iabo->nabo", x[:, i, j], filters)
            plain[:, 2 * i : 2 * i + 4, 2 * j : 2 * j + 4] += patch
    np.testing.assert_allclose(nets.upsampled(x, filters), plain[:, 1:-1, 1:-1], atol=1e-5)


def test_a_residual_block_is_a_convolution_a_doubling_and_the_map_around_them():
    """By sums over pixels; the last normalisation is by what was frozen, here nothing."""
    x = jax.random.normal(jax.random.key(0), (2, 3, 4, 5))
    block = nets.ResidualBranch(5, 6, jax.random.key(1))
    nothing = [(jnp.zeros(5), jnp.ones(5) - 1e-5)]
    around, inner = block(x, 2 * x, nets.BatchNorm(nothing))
    edged = np.pad(2 * x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    plain = np.zeros(x.shape)
    for i in range(3):
        for j in range(3):
            plain += edged[:, i : i + 3, j : j + 4] @ np.asarray(block.filters[i, j])
    np.testing.assert_allclose(inner, np.maximum(plain, 0), atol=1e-4)
    assert around.shape == (2, 6, 8, 6)
    for i in range(6):
        np.testing.assert_allclose(around[:, i, ::2], x[:, i // 2] @ block.mixed, atol=1e-5)
        np.testing.assert_allclose(around[:, i, 1::2], x[:, i // 2] @ block.mixed, atol=1e-5)


def test_pictures_in_colour_have_residual_blocks_and_grey_ones_do_not():
    grey = Schema(classes=(0, 1, 2), image=ImageShape(10, 9))
    found = [
        nets.net_for(schema, GeneratorConfig(4, (6, 5)), jax.random.key(0))
        for schema in (PICTURES, grey)
    ]
    assert [len(net.blocks) for net in found] == [2, 0]


@pytest.mark.parametrize(("schema", "shape"), SHAPES)
def test_frozen_a_record_depends_on_its_own_code_alone(schema, shape):
    net = nets.net_for(schema, shape, jax.random.key(0))
    codes = codes_of(schema)
    _, frozen = net(codes)
    np.testing.assert_allclose(net(codes, frozen)[0][:5], net(codes[:5], frozen)[0], atol=1e-6)
    assert np.abs(net(codes)[0][:5] - net(codes[:5])[0]).max() > 1e-3


@pytest.mark.parametrize(("schema", "shape"), SHAPES)
def test_arrays_are_the_whole_generator(schema, shape):
    net = nets.net_for(schema, shape, jax.random.key(3))
    codes = codes_of(schema)
    _, frozen = net(codes)
    arrays = nets.to_arrays(net, frozen)
    again, its = nets.from_arrays(arrays, schema, shape)
    np.testing.assert_array_equal(again(codes, its)[0], net(codes, frozen)[0])
    name = next(iter(arrays))
    with pytest.raises(ValueError, match="do not fit"):
        nets.from_arrays({**arrays, name: arrays[name][:1]}, schema, shape)


def learned(steps):
    """Class 0 is young and in ward a, class 1 old and in ward b; half of all smoke."""
    phi = Mixed(
        columns=((1, "number"), (3, "choice"), (1, "yes-no")),
        inner=Fourier(dimension=1, count=20, length_scale=0.5),
    )
    rng = np.random.default_rng(0)
    age, smoker = 0.1 * rng.random((2, 500, 1)), rng.integers(0, 2, (2, 500, 1))
    ward = np.eye(3)[[[0] * 500, [1] * 500]]
    x = np.concatenate([age + np.array([0.1, 0.8])[:, None, None], ward, smoker], axis=2)
    means = np.stack([np.asarray(phi(part.astype(np.float32))).mean(axis=0) for part in x])
    target = Target(means.astype(np.float32), np.ones(2, np.float32))
    descent, key = Descent(steps, 50, 0.02), jax.random.key(0)
    net, frozen = training.train(TABLE, phi, target, GeneratorConfig(4, (20, 20)), descent, key)
    config = {"latent_dim": 4, "widths": [20, 20], "shares": [0.25, 0.75], "places": {}}
    return GeneratorState(config, nets.to_arrays(net, frozen))


@pytest.fixture(scope="module")
def generator():
    return learned(300)


def test_pictures_take_many_small_steps_of_at_least_ten_records_a_class():
    digits, objects = (Schema(classes=range(n), image=ImageShape(8, 8, 1)) for n in (10, 100))
    assert DPMERF().descent_for(TABLE, 3.0) == Descent(2000, 500, 0.01)
    assert DPMERF().descent_for(digits, 0.3) == Descent(8000, 25, 0.01)
    assert DPMERF().descent_for(objects, 0.3) == Descent(8000, 10, 0.01)


def test_steps_are_fewer_where_the_noise_is_longer_than_a_mean_but_not_if_they_were_asked_for():
    digits = Schema(classes=range(10), image=ImageShape(8, 8, 1))
    assert DPMERF().descent_for(digits, 4.0) == Descent(2000, 25, 0.01)
    assert DPMERF().descent_for(digits, 1e9).steps == 1
    assert DPMERF(steps=5, batch=30).descent_for(digits, 4.0) == Descent(5, 3, 0.01)


def test_training_finds_records_with_the_moments(generator):
    x, y = sampling.draw(TABLE, generator, 2000, entropy(0))
    assert x[y == 0, 0].mean() == pytest.approx(0.15, abs=0.05)
    assert x[y == 1, 0].mean() == pytest.approx(0.85, abs=0.05)
    assert x[y == 0, 1].mean() > 0.9
    assert x[y == 1, 2].mean() > 0.9
    assert x[:, 4].mean() == pytest.approx(0.5, abs=0.15)


def test_nothing_recompiles_from_one_training_to_a_shorter_one(generator):
    compiled = training._step._cached._cache_size()
    learned(3)
    assert training._step._cached._cache_size() == compiled


def test_records_are_choices_and_classes_come_in_their_shares(generator):
    x, y = sampling.draw(TABLE, generator, 2001, entropy(0))
    assert set(np.unique(x[:, 1:])) == {0, 1}
    np.testing.assert_array_equal(x[:, 1:4].sum(axis=1), 1)
    assert sorted(np.bincount(y)) == [500, 1501]
    assert 0.1 < np.mean(y[:1000] == 0) < 0.4  # in random order


def test_draws_are_as_reproducible_as_their_entropy(generator):
    same = [sampling.draw(TABLE, generator, 50, entropy(seed))[0] for seed in (1, 1, 2)]
    np.testing.assert_array_equal(same[0], same[1])
    assert np.abs(same[0] - same[2]).max() > 0
    other = [sampling.draw(TABLE, generator, 50, entropy())[0] for _ in range(2)]
    assert np.abs(other[0] - other[1]).max() > 0


def test_nothing_recompiles_from_one_draw_to_the_next(generator):
    for n in (10, 1500, 999):
        sampling.draw(TABLE, generator, n, entropy(0))
        if n == 10:
            compiled = sampling._forward._cached._cache_size()
    assert sampling._forward._cached._cache_size() == compiled


@pytest.mark.parametrize("missing", ["latent_dim", "shares", "places", "arrays"])
def test_a_generator_of_another_version_is_refused_in_a_line(generator, missing):
    config = {name: value for name, value in generator.config.items() if name != missing}
    arrays = {} if missing == "arrays" else generator.arrays
    with pytest.raises(UserError, match="another version"):
        sampling.draw(TABLE, GeneratorState(config, arrays), 5, entropy(0))


@pytest.mark.parametrize(
    "changed",
    [
        {"shares": [0.2] * 5},
        {"shares": [-1.0, 2.0]},
        {"shares": [float("inf"), 1.0]},
        {"shares": [0.0, 0.0]},
        {"places": {"numbers": [999], "edges": [[0, 1]], "at": [[0, 1]]}},
        {"places": {"numbers": [0], "edges": [], "at": []}},
        {"latent_dim": 10**12},
        {"latent_dim": float("inf")},
    ],
    ids=str,
)
def test_a_stranger_s_generator_is_refused_before_anything_is_made_of_it(generator, changed):
    with pytest.raises(UserError, match="another version"):
        sampling.draw(
            TABLE, GeneratorState({**generator.config, **changed}, generator.arrays), 5, entropy(0)
        )
