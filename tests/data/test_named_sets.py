"""Named sets: built-in public schemas that fit the real files, and honest advice without them."""

import os

import numpy as np
import pytest

from limbeck.data import named
from limbeck.data.source import open_source
from limbeck.errors import UserError

ROWS = {  # train, test
    "digits": (1438, 359),
    "mnist": (60000, 10000),
    "fashion_mnist": (60000, 10000),
    "cifar10": (50000, 10000),
    "adult": (32561, 16281),
    "credit": (227846, 56961),
    "cervical": (599, 154),
    "covtype": (464810, 116202),
    "intrusion": (395217, 98804),
    "isolet": (1560, 1559),
}
SMALL = ("digits", "adult", "cervical", "isolet", "mnist")


def available(name):
    file = named.NAMED[name].file
    return not file or os.path.exists(os.path.join(os.environ.get("LIMBECK_DATA", ""), file))


def require(name):
    if not available(name):
        pytest.skip(f"{name} is not in LIMBECK_DATA")


def test_every_named_set_is_listed_here():
    assert set(ROWS) == set(named.NAMED)


@pytest.mark.parametrize("name", ROWS)
def test_the_built_in_schema_declares_its_training_rows(name):
    schema = named.schema_of(name)
    assert schema.public_rows == ROWS[name][0]
    assert not schema.drafted
    assert named.schema_of(name, "test").public_rows is None


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("split", ["train", "test"])
def test_each_split_has_its_rows_and_every_class(name, split):
    require(name)
    source = open_source(f"{name}:{split}")
    labels = np.concatenate([y for _, y in source.batches()])
    assert len(labels) == ROWS[name][split == "test"]
    assert set(labels) == set(range(len(source.schema.classes)))


@pytest.mark.parametrize("name", ["fashion_mnist", "cifar10", "credit", "covtype", "intrusion"])
def test_the_large_sets_open_with_their_schema(name):
    require(name)
    source = open_source(name)
    x, y = next(source.batches(1000))
    assert x.shape[1] == source.schema.width
    assert len(x) == len(y) <= 1000
    assert 0 <= x.min() <= x.max() <= 1


@pytest.mark.parametrize(("spec", "split"), [("digits:test", "train"), ("digits", "test")])
def test_a_split_in_the_name_wins(spec, split):
    assert open_source(spec, split=split).name == "digits:test"


def test_the_splits_do_not_overlap():
    train, test = (
        np.concatenate([x for x, _ in open_source(f"digits:{s}").batches()])
        for s in ("train", "test")
    )
    assert not {row.tobytes() for row in train} & {row.tobytes() for row in test}


def test_digits_use_the_whole_pixel_range():
    x = np.concatenate([x for x, _ in open_source("digits").batches(100)])
    assert (x.min(), x.max()) == (0, 1)


def test_an_unknown_split_is_refused():
    with pytest.raises(UserError, match="must be train or test, as in digits:test"):
        open_source("digits:validation")


def test_without_the_file_the_error_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("LIMBECK_DATA", str(tmp_path))
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache")
    with pytest.raises(UserError, match=r"adult\.parquet was not found.*set LIMBECK_DATA"):
        open_source("adult")


def test_a_failed_download_says_what_to_do(monkeypatch, tmp_path):
    def fail(*arguments, **options):
        raise ConnectionError("no route")

    monkeypatch.setenv("LIMBECK_DATA", "")
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path)
    monkeypatch.setattr("pooch.retrieve", fail)
    with pytest.raises(UserError, match=r"mnist\.npz .*the download failed.*set LIMBECK_DATA"):
        open_source("mnist")


def test_the_cache_is_looked_into(monkeypatch, tmp_path):
    monkeypatch.delenv("LIMBECK_DATA", raising=False)
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path)
    (tmp_path / "adult.parquet").write_bytes(b"")
    assert named.find("adult") == tmp_path / "adult.parquet"
