"""Encoding is a bijection on the declared domain, and nothing outside it widens the domain."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limbeck.data.column import Column
from limbeck.data.encode import (
    decode_images,
    decode_labels,
    decode_table,
    encode_images,
    encode_labels,
    encode_rows,
    encode_table,
    nearest_records,
)
from limbeck.data.schema import ImageShape, Schema
from limbeck.errors import UserError

EVERYTHING = Schema(
    classes=("no", "yes"),
    label="ill",
    columns=(
        Column("dose", "numeric", -2.5, 7.5),
        Column("age", "integer", 0, 120),
        Column("grade", "ordinal", values=("low", "middle", "high")),
        Column("ward", "categorical", values=(1, 2, 30), other=99, missing=99),
        Column("smokes", "boolean", missing=False),
    ),
)

NAMES = [column.name for column in EVERYTHING.columns]
few = settings(max_examples=30, deadline=None)

tables = st.lists(
    st.fixed_dictionaries(
        {
            "dose": st.floats(-2.5, 7.5),
            "age": st.integers(0, 120),
            "grade": st.sampled_from(["low", "middle", "high"]),
            "ward": st.sampled_from([1, 2, 30, 99]),
            "smokes": st.booleans(),
            "ill": st.sampled_from(["no", "yes"]),
        }
    ),
    min_size=1,
    max_size=10,
).map(lambda rows: pd.DataFrame(rows, columns=[*NAMES, "ill"]))


def row(**changed):
    usual = {"dose": 0.0, "age": 50, "grade": "low", "ward": 1, "smokes": True, "ill": "yes"}
    return pd.DataFrame([usual | changed])


def encoded(frame, schema=EVERYTHING):
    return encode_table(schema, frame)[0][0].tolist()


@few
@given(tables)
def test_decoding_gives_back_values_and_types(frame):
    x, y = encode_table(EVERYTHING, frame)
    back = decode_table(EVERYTHING, x).assign(ill=decode_labels(EVERYTHING, y))
    pd.testing.assert_frame_equal(back, frame, atol=1e-5)


@few
@given(tables)
def test_coordinates_lie_in_the_unit_interval(frame):
    x, y = encode_table(EVERYTHING, frame)
    assert x.dtype == np.float32
    assert y.dtype == np.int32
    assert x.shape == (len(frame), EVERYTHING.width)
    assert ((x >= 0) & (x <= 1)).all()


@few
@given(tables)
def test_a_record_is_encoded_by_itself(frame):
    x, _ = encode_table(EVERYTHING, frame)
    alone = [encode_table(EVERYTHING, frame.iloc[[i]])[0] for i in range(len(frame))]
    np.testing.assert_array_equal(x, np.concatenate(alone))


@few
@given(tables)
def test_text_as_from_a_csv_file_means_the_same(frame):
    as_text = frame.map(lambda value: f" {value} ")
    (x, y), (x_text, y_text) = (encode_table(EVERYTHING, table) for table in (frame, as_text))
    np.testing.assert_array_equal(x, x_text)
    np.testing.assert_array_equal(y, y_text)


@few
@given(st.lists(st.floats(-5, 5), min_size=EVERYTHING.width, max_size=EVERYTHING.width))
def test_whatever_is_decoded_lies_in_the_domain(point):
    frame = decode_table(EVERYTHING, [point]).assign(ill="no")
    again = decode_table(EVERYTHING, encode_table(EVERYTHING, frame)[0]).assign(ill="no")
    pd.testing.assert_frame_equal(again, frame, atol=1e-5)


@few
@given(st.lists(st.floats(-3, 3), min_size=EVERYTHING.width, max_size=EVERYTHING.width))
def test_the_nearest_record_is_a_record_and_decodes_alike(point):
    near = nearest_records(EVERYTHING, [point])
    pd.testing.assert_frame_equal(
        decode_table(EVERYTHING, near), decode_table(EVERYTHING, np.float32([point]))
    )
    again = encode_rows(EVERYTHING, decode_table(EVERYTHING, near))
    np.testing.assert_allclose(again, near, atol=1e-7)
    assert near.dtype == np.float32


def test_halves_of_a_whole_number_round_as_they_are_decoded():
    odd = Schema(classes=(0, 1), columns=(Column("n", "integer", 1, 5),))
    assert decode_table(odd, nearest_records(odd, [[0.125]]))["n"].tolist() == [2]
    assert decode_table(odd, [[0.125]])["n"].tolist() == [2]


def test_ordered_values_are_equally_spaced():
    assert [encoded(row(grade=g))[2] for g in ("low", "middle", "high")] == [0, 0.5, 1]


def test_numbers_outside_the_bounds_are_clamped():
    assert encoded(row(dose=1e300)) == encoded(row(dose=7.5))
    assert encoded(row(dose=-np.inf)) == encoded(row(dose=-2.5))
    assert encoded(row(age=10**6)) == encoded(row(age=120))


def test_a_fraction_in_an_integer_column_is_rounded():
    assert encoded(row(age=49.8)) == encoded(row(age=50))


def test_an_undeclared_category_becomes_other():
    assert encoded(row(ward=12345)) == encoded(row(ward=99))


@pytest.mark.parametrize("gap", [None, np.nan, "", "  "])
def test_a_missing_value_becomes_what_the_schema_says(gap):
    assert encoded(row(ward=gap)) == encoded(row(ward=99))
    assert encoded(row(smokes=gap)) == encoded(row(smokes=False))


def test_a_declared_mark_is_a_missing_value():
    schema = Schema.from_dict(EVERYTHING.to_dict() | {"missing_values": ["?"]})
    assert encoded(row(ward="?"), schema) == encoded(row(ward=99))
    with pytest.raises(UserError, match="column 'age', data row 1: the value is missing"):
        encode_table(schema, row(age="?"))


@pytest.mark.parametrize("yes", [True, 1, 1.0, "1", "true", "TRUE", "Yes", " yes "])
def test_the_ways_of_saying_yes(yes):
    assert encoded(row(smokes=yes)) == encoded(row(smokes=True))


@pytest.mark.parametrize("one", [1, 1.0, "1", "1.0", " 1", True, np.uint8(1), np.float32(1)])
def test_the_ways_of_writing_a_class(one):
    schema = Schema(classes=(0, 1), image=ImageShape(1, 1))
    assert encode_labels(schema, [one]).tolist() == [1]


def test_labels_with_spaces_are_found_and_with_a_full_stop_are_not():
    schema = Schema(classes=("<=50K", ">50K"), image=ImageShape(1, 1))
    assert encode_labels(schema, [" <=50K", ">50K "]).tolist() == [0, 1]
    with pytest.raises(UserError, match="data row 1"):
        encode_labels(schema, ["<=50K."])


def test_codes_with_leading_zeros_stay_apart():
    schema = Schema(classes=("01", "1"), image=ImageShape(1, 1))
    assert encode_labels(schema, ["01", "1", 1]).tolist() == [0, 1, 1]
    with pytest.raises(UserError, match="not declared"):
        encode_labels(schema, ["1.0"])  # it could be either


@pytest.mark.parametrize("classes", [(3, 7), ("a", "b"), (False, True)])
def test_classes_keep_their_type(classes):
    schema = Schema(classes=classes, image=ImageShape(1, 1))
    back = decode_labels(schema, encode_labels(schema, list(classes))).tolist()
    assert back == list(classes)
    assert [type(value) for value in back] == [type(value) for value in classes]


SECRET = "Zebulon-4711"


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"dose": SECRET}, "column 'dose', data row 2: the value is not a number"),
        ({"age": pd.Timestamp("1947-11-01")}, "column 'age', data row 2"),
        ({"age": None}, "column 'age', data row 2: the value is missing"),
        ({"age": "NaN"}, "column 'age', data row 2: the value is missing"),
        ({"grade": SECRET}, "column 'grade', data row 2: the value is not declared"),
        ({"grade": [SECRET]}, "column 'grade', data row 2: the value is not declared"),
        ({"smokes": SECRET}, "column 'smokes', data row 2: .*yes/no"),
        ({"ill": SECRET}, "column 'ill', data row 2: .*correct the file"),
        ({"ill": None}, "column 'ill', data row 2: .*label cannot be missing"),
    ],
)
def test_an_unfit_value_is_refused_by_its_place_and_never_shown(changed, complaint):
    frame = pd.concat([row(), row(**changed)], ignore_index=True)
    with pytest.raises(UserError, match=complaint) as caught:
        encode_table(EVERYTHING, frame)
    assert SECRET not in str(caught.value)
    assert "1947" not in str(caught.value)


def test_a_canary_record_never_widens_the_domain():
    before = EVERYTHING.to_dict(), EVERYTHING.width, EVERYTHING.coordinate_names
    x, _ = encode_table(EVERYTHING, pd.concat([row(), row(dose=9e9, age=-5, ward=SECRET)]))
    assert x.shape[1] == EVERYTHING.width
    assert decode_table(EVERYTHING, x)["dose"].max() <= 7.5
    assert SECRET not in decode_table(EVERYTHING, x).to_string()
    assert (EVERYTHING.to_dict(), EVERYTHING.width, EVERYTHING.coordinate_names) == before


def test_columns_are_found_by_name_and_others_are_ignored():
    shuffled = row()[["ill", "ward", "smokes", "age", "grade", "dose"]].assign(extra=SECRET)
    assert encoded(shuffled) == encoded(row())


def test_new_rows_need_no_label(pictures):
    np.testing.assert_array_equal(
        encode_rows(EVERYTHING, row().drop(columns="ill")), encode_table(EVERYTHING, row())[0]
    )
    assert encode_rows(pictures, np.zeros((2, 4, 5), np.uint8)).shape == (2, 20)
    with pytest.raises(UserError, match="give a pandas DataFrame"):
        encode_rows(EVERYTHING, np.zeros((2, 5)))


def test_a_missing_column_is_named_with_a_hint():
    with pytest.raises(UserError, match=r"no column 'smokes'; did you mean 'Smokes'\?$"):
        encode_table(EVERYTHING, row().rename(columns={"smokes": "Smokes"}))


def test_a_missing_column_does_not_show_the_others():
    """Without a header they would be the cells of a private row."""
    with pytest.raises(UserError) as caught:
        encode_table(EVERYTHING, row().rename(columns={"smokes": SECRET}))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("channels", [1, 3])
def test_images_round_trip(channels):
    schema = Schema(classes=(0, 1), image=ImageShape(4, 5, channels))
    shape = (7, 4, 5) if channels == 1 else (7, 4, 5, channels)
    images = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    x = encode_images(schema, images)
    assert x.shape == (7, schema.width)
    assert x.dtype == np.float32
    assert 0 <= x.min() <= x.max() <= 1
    np.testing.assert_allclose(decode_images(schema, x), images, atol=1e-4)


def test_the_nearest_picture_has_whole_pixels(pictures):
    x = np.random.default_rng(0).uniform(-0.1, 1.1, (5, pictures.width))
    near = decode_images(pictures, nearest_records(pictures, x))
    whole = np.rint(np.clip(near, 0, 255)).astype(np.uint8)
    np.testing.assert_allclose(near, whole, atol=1e-4)
    np.testing.assert_array_equal(encode_images(pictures, whole), nearest_records(pictures, x))
    assert np.abs(whole / 255 - np.clip(x, 0, 1).reshape(whole.shape)).max() <= 0.5001 / 255


def test_decoded_images_are_not_clipped(pictures):
    assert decode_images(pictures, np.full((1, 20), 2.0)).max() == 510


@pytest.mark.parametrize(
    ("images", "complaint"),
    [
        (np.zeros((2, 5, 4), np.uint8), "shape 5×4.*declares 4×5"),
        (np.zeros((2, 4, 5, 3), np.uint8), "shape 4×5×3"),
        (np.zeros((2, 20), np.uint8), "shape 20"),
        (np.zeros((2, 4, 5), np.float32), "type float32"),
        (np.full((2, 4, 5), 256), "outside 0..255"),
        (np.full((2, 4, 5), -1), "outside 0..255"),
    ],
)
def test_arrays_that_are_not_such_images_are_refused(pictures, images, complaint):
    with pytest.raises(UserError, match=complaint):
        encode_images(pictures, images)


MIXED = {
    "integers and a gap": ([1, 1, 1], [None]),
    "whole floats and a fraction": ([1.0, 1.0], [0.5]),
    "numbers and a truth": ([1, 1], [True]),
    "numbers and a text": ([1, 1], ["01"]),
    "texts and a number": (["1", "1"], [1]),
    "large integers and a gap": ([2**53 + 1, 2**53 + 1], [None]),
}


@pytest.mark.parametrize(("others", "one"), MIXED.values(), ids=MIXED)
def test_no_record_changes_how_another_is_read(others, one):
    """One odd cell may change the type of a column; the others must be encoded as without it."""
    values = ("1", "01", str(2**53 + 1), "x")
    column = Column("c", "categorical", values=values, other="x", missing="x")
    schema = Schema(classes=(0, 1), columns=(column,))

    def encoded(cells):
        frame = pd.DataFrame({"c": pd.Series(cells, dtype=object), "label": 0})
        return encode_table(schema, frame)[0]

    def inferred(cells):
        return encode_table(schema, pd.DataFrame({"c": cells, "label": 0}))[0]

    np.testing.assert_array_equal(encoded(others + one)[: len(others)], encoded(others))
    if others[0] != 2**53 + 1:  # which pandas rounds, if left to choose the type
        np.testing.assert_array_equal(inferred(others + one)[: len(others)], inferred(others))
