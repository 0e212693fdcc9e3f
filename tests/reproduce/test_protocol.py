"""The protocol of the papers for tables, and ours beside it."""

import numpy as np
import pytest

from limbeck.data.column import Column
from limbeck.data.schema import Schema
from limbeck.data.source import Source
from limbeck.errors import UserError
from limbeck.evaluate.score import Score
from limbeck.evaluate.task import Rows
from limbeck.generate.moment_matching import DPMERF
from limbeck.reproduce import protocol, runs
from limbeck.reproduce.cells import OUR_PROTOCOL, THEIR_PROTOCOL, TWICE, cells_of

SCHEMA = Schema(classes=("<=50K", ">50K"), columns=(Column("a", "numeric"),), public_rows=800)


def rows(n, split):
    """Of rows 1, 2, ... of a file every fifth is for testing; every third is rich."""
    positions = np.arange(1, n + 1)
    chosen = positions[(positions % 5 == 0) == (split == "test")]
    return Rows((chosen[:, None] / n).astype(np.float32), (chosen % 3 == 0).astype(np.int64))


@pytest.fixture
def made_up(monkeypatch):
    """A thousand rows under the name of adult."""

    def open_source(name, split="train"):
        found = rows(1000, split)
        return Source(split, SCHEMA, lambda size: iter([(found.x, found.y.astype(np.int32))]))

    monkeypatch.setattr(protocol, "open_source", open_source)
    monkeypatch.setattr(runs, "open_source", open_source)


def test_most_of_the_commonest_class_is_thrown_away_before_the_split(made_up):
    train, test = protocol.prepared("adult", seed=0)
    together = np.concatenate([train.y, test.y])
    assert np.bincount(together).tolist() == [int(0.4 * 667), 333]
    assert len(train.y) == int(0.9 * len(together))
    places = np.concatenate([train.x, test.x])[:, 0]
    assert len(np.unique(places)) == len(places)
    assert 0.3 < np.mean(test.y == 0) < 0.6  # the test rows as well


def test_a_seed_is_a_split(made_up):
    first, again, other = (protocol.prepared("adult", seed)[0].x for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert set(first[:, 0]) != set(other[:, 0])


def test_the_first_rows_are_those_of_the_file(made_up):
    found = protocol._first("adult", 100)
    np.testing.assert_allclose(np.sort(found.x[:, 0]), np.arange(1, 101) / 1000, rtol=1e-6)


def cells(data, method, setting):
    return [
        c
        for c in cells_of(TWICE)
        if (c.data, c.method, c.setting) == (data, method, setting) and runs.runnable(c)
    ]


@pytest.mark.parametrize("setting", [THEIR_PROTOCOL, OUR_PROTOCOL])
def test_one_run_has_both_numbers_each_as_its_protocol_counts(made_up, monkeypatch, setting):
    fitted = []

    class Quick(DPMERF):
        def fit(self, private, budget, *, seed, progress):
            fitted.append((self.records, private.schema.public_rows, budget.epsilon))
            return super().fit(private, budget, seed=seed, progress=progress)

    def twelve(found, test, classes, seed, progress):
        metrics = dict.fromkeys([*runs.METRICS.values(), *protocol.METRICS.values()])
        values = {name: i / 10 for i, name in enumerate(metrics)}
        return [Score("mean-of-12", name, value) for name, value in values.items()]

    monkeypatch.setitem(runs.METHODS, "dp-merf", lambda cell: Quick(steps=1, batch=4))
    monkeypatch.setattr(runs.classical, "twelve", twelve)
    monkeypatch.setattr(runs, "open_private", lambda name: runs.PrivateData(runs.open_source(name)))
    runs._scored.cache_clear()
    roc, prc = cells("adult", "dp-merf", setting)
    found = [runs.run(cell, seed=0)["value"] for cell in (roc, prc)]
    if setting == THEIR_PROTOCOL:
        assert (found, fitted) == ([0.3, 0.4], [(539, None, 1.0)])
    else:
        assert (found, fitted) == ([0.0, 0.1], [(800, 800, 1.0)])


def test_only_tables_that_we_have_as_they_have_them_can_be_run():
    data = {c.data for c in cells_of(TWICE) if runs.runnable(c)}
    assert data == set(protocol.PREPARED)  # of isolet we have two parts of five, and letters


def test_the_appendix_sets_the_network_of_a_table():
    (roc, _) = cells("adult", "dp-ntk", THEIR_PROTOCOL)
    config = runs._as_published(runs.METHODS["dp-ntk"](roc), roc)
    assert (config.net, config.widths) == ("cnn", (30, 200))
    assert (config.steps, config.latent_dim, config.batch) == (50, 11, 200)
    (roc, _) = cells("credit", "dp-ntk", THEIR_PROTOCOL)
    config = runs._as_published(runs.METHODS["dp-ntk"](roc), roc)
    assert (config.net, config.widths) == ("fc", (1500,))


def test_the_appendix_has_nothing_for_the_others(made_up):
    (roc, _) = cells("adult", "dp-merf", THEIR_PROTOCOL)
    with pytest.raises(UserError, match="--published"):
        runs.run(roc, seed=0, published=True)
