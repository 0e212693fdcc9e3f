"""Private rows cannot be had by accident."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from limbeck.data.private import PrivateData, open_private
from limbeck.data.schema import Schema
from limbeck.errors import UserError

SECRET = "Zebulon-4711"


@pytest.fixture
def private(patients):
    wards = ["north", "south"] * 21 + ["north"]
    frame = pd.DataFrame({"age": 37, "ward": wards, "ill": 1, "name": SECRET})
    return PrivateData.from_frame(frame, patients)


def test_the_repr_has_no_value_and_no_row_count(private):
    assert repr(private) == str(private) == "PrivateData('frame', 2 columns, 2 classes)"
    assert repr(open_private("digits")) == "PrivateData('digits:train', 8×8×1 pixels, 10 classes)"


def test_it_is_neither_an_array_nor_a_sequence(private):
    assert not hasattr(private, "__array__")
    assert not hasattr(private, "__dict__")
    with pytest.raises(TypeError):
        len(private)
    with pytest.raises(TypeError):
        iter(private)
    assert np.asarray(private).dtype == object


@pytest.mark.parametrize("escape", [pickle.dumps, copy.copy, copy.deepcopy])
def test_it_is_neither_pickled_nor_copied(private, escape):
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        escape(private)


def test_its_schema_is_public(private, patients):
    assert private.schema == patients


def test_a_drafted_schema_is_refused_unless_accepted(patients):
    drafted = replace(patients, drafted=True)
    frame = pd.DataFrame({"age": [37], "ward": ["north"], "ill": [1]})
    with pytest.raises(UserError, match="drafted from the private rows"):
        PrivateData.from_frame(frame, drafted)
    accepted = PrivateData.from_frame(frame, drafted, accept_drafted_schema=True)
    assert accepted.schema.drafted


def test_a_frame_is_revealed_in_bounded_batches(private):
    sizes = [len(y) for _, y in private.reveal(10)]
    assert sizes == [10, 10, 10, 10, 3]


def test_a_frame_is_kept_as_it_was_given(patients):
    frame = pd.DataFrame({"age": [37], "ward": ["north"], "ill": [1]})
    private = PrivateData.from_frame(frame, patients)
    frame.loc[0, "age"] = 99
    [(x, _)] = private.reveal()
    assert x[0, 0] == np.float32(0.37)


def test_errors_say_where_and_not_what(patients):
    frame = pd.DataFrame({"age": [1, 2, 3], "ward": ["north", "south", SECRET], "ill": 1})
    with pytest.raises(UserError, match="column 'ward', data row 3") as caught:
        list(PrivateData.from_frame(frame, patients).reveal(1))
    assert SECRET not in str(caught.value)


def test_a_canary_label_is_refused_and_adds_no_class(patients):
    frame = pd.DataFrame({"age": [1], "ward": ["north"], "ill": [7]})
    private = PrivateData.from_frame(frame, patients)
    with pytest.raises(UserError, match="column 'ill', data row 1"):
        list(private.reveal())
    assert private.schema.classes == (0, 1)


def test_arrays_may_be_images_or_encoded_records(pictures):
    images = np.random.default_rng(0).integers(0, 256, (7, 4, 5), dtype=np.uint8)
    labels = ["cat", "dog", "cat", "dog", "cat", "dog", "cat"]
    raw = list(PrivateData.from_arrays(images, labels, pictures).reveal(3))
    encoded = images.reshape(7, 20) / 255
    same = list(PrivateData.from_arrays(encoded, labels, pictures).reveal(3))
    assert [len(y) for _, y in raw] == [3, 3, 1]
    for (x, y), (x_same, y_same) in zip(raw, same, strict=True):
        np.testing.assert_allclose(x, x_same, atol=1e-6)
        np.testing.assert_array_equal(y, y_same)


@pytest.mark.parametrize(
    ("x", "y", "complaint"),
    [
        (np.zeros((2, 20)), ["cat"], "one label for each record"),
        (np.zeros((2, 19)), ["cat", "dog"], r"shape \[n, 20\]"),
        (np.full((2, 20), 1.5), ["cat", "dog"], r"lie in \[0, 1\]"),
        (np.full((2, 20), np.nan), ["cat", "dog"], r"lie in \[0, 1\]"),
        (np.zeros((2, 5, 4), np.uint8), ["cat", "dog"], "declares 4×5"),
        (np.zeros((2, 20)), ["cat", SECRET], "data row 2"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(pictures, x, y, complaint):
    with pytest.raises(UserError, match=complaint) as caught:
        PrivateData.from_arrays(x, y, pictures)
    assert SECRET not in str(caught.value)


def test_encoded_tables_are_welcome(patients):
    [(x, y)] = PrivateData.from_arrays(np.array([[0.5, 1, 0]]), [1], patients).reveal()
    assert x.tolist() == [[0.5, 1, 0]]
    assert y.tolist() == [1]


def test_a_file_is_opened_with_its_schema(tmp_path, patients):
    (tmp_path / "t.csv").write_text("age,ward,ill\n37,north,1\n")
    private = open_private(tmp_path / "t.csv", schema=patients)
    assert isinstance(private.schema, Schema)
    assert private.name == "t.csv"
    assert len(list(private.reveal())) == 1
