"""A draft says where it comes from; a check finds all problems and quotes no value."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from limbeck.data.draft import check, draft
from limbeck.data.schema import Schema
from limbeck.data.source import open_source
from limbeck.errors import UserError

SECRET = "Zebulon-4711"


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "age": [23, 41, 87, 35],
            "dose": [0.13, 0.2, None, 0.37],
            "ward": ["north", "?", "south", "north"],
            "smokes": ["yes", "no", "no", "yes"],
            "code": ["01", "02", "03", "01"],
            "ill": [0, 1, 1, 0],
        }
    )


def columns(schema):
    return {column.name: column.to_dict() for column in schema.columns}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_kinds_and_round_bounds_are_guessed(tmp_path, frame, suffix):
    path = tmp_path / f"t.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    schema = draft(path)
    assert schema.drafted
    assert schema.public_rows is None
    assert (schema.label, schema.classes) == ("ill", (0, 1))
    assert schema.missing_values == ("?",)
    found = columns(schema)
    assert found["age"] == {"kind": "integer", "minimum": 20, "maximum": 90}
    assert found["dose"] == {"kind": "numeric", "minimum": 0.1, "maximum": 0.4, "missing": 0.25}
    assert found["ward"]["values"] == ["north", "south"]
    assert found["ward"]["missing"] == "Unknown"
    assert found["smokes"] == {"kind": "boolean"}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_file_fits_its_own_draft(tmp_path, frame, suffix):
    path = tmp_path / f"t.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    schema = Schema.loads(draft(path).dumps())
    assert check(schema, path) == []
    assert sum(len(y) for _, y in open_source(path, schema).batches()) == 4


def test_the_label_is_the_usual_name_or_the_last_column_or_as_told(tmp_path, frame):
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    assert draft(path).label == "ill"
    assert draft(path, label="smokes").classes == ("no", "yes")
    frame.rename(columns={"ward": "Target"}).assign(Target=[1, 2, 1, 2]).to_csv(path, index=False)
    assert draft(path).label == "Target"
    with pytest.raises(UserError, match="no column 'smoke'; does it have a header"):
        draft(path, label="smoke")


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"ill": 1}, "only one class"),
        ({"ill": [0, 1, None, 1]}, "label 'ill' has missing values"),
        ({"ill": [0.5, 1.5, 2.5, 1.0]}, "not a set of classes"),
        ({"dose": None}, "column 'dose' has no values"),
    ],
)
def test_what_cannot_be_drafted_is_refused(tmp_path, frame, changed, complaint):
    frame.assign(**changed).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(UserError, match=complaint):
        draft(tmp_path / "t.csv")


def test_a_column_of_names_is_refused_without_quoting_one(tmp_path):
    names = [f"{SECRET}{i}" for i in range(300)]
    pd.DataFrame({"name": names, "y": [0, 1] * 150}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(UserError, match="more than 200 distinct texts; remove it") as caught:
        draft(tmp_path / "t.csv")
    assert SECRET not in str(caught.value)


def test_arrays_are_drafted_as_images_or_as_a_table(tmp_path):
    y = np.array([3, 5, 3])
    np.savez(tmp_path / "images.npz", x=np.zeros((3, 4, 5), np.uint8), y=y)
    schema = draft(tmp_path / "images.npz")
    assert (schema.image_shape, schema.classes, schema.drafted) == ((4, 5, 1), (3, 5), True)
    assert check(schema, tmp_path / "images.npz") == []
    np.savez(tmp_path / "rows.npz", x=np.array([[0.5, 2], [0.7, 3], [0.1, 9]]), y=y)
    schema = draft(tmp_path / "rows.npz")
    assert [column.kind for column in schema.columns] == ["numeric", "integer"]
    assert check(schema, tmp_path / "rows.npz") == []


def test_a_folder_is_drafted_from_its_class_folders(tmp_path):
    for name in ("0", "1"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (5, 4)).save(tmp_path / name / "a.png")
    schema = draft(tmp_path)
    assert (schema.image_shape, schema.classes) == ((4, 5, 3), (0, 1))
    assert check(schema, tmp_path) == []


def test_a_check_goes_on_after_the_first_problem_and_quotes_nothing(tmp_path, patients):
    rows = ["x,south,0"] + [f"{SECRET}{i},{SECRET}{i % 3},0" for i in range(6)] + [",,0"]
    (tmp_path / "t.csv").write_text("\n".join(["age,ward,ill", *rows]))
    findings = check(patients, tmp_path / "t.csv")
    assert findings == [
        "column 'age': not a number in 7 rows, first in row 1",
        "column 'age': missing in 1 rows, first in row 8, "
        "and the schema says nothing of missing values",
        "column 'ward': undeclared values, 3 distinct ones, first in row 2",
        "column 'ward': missing in 1 rows, first in row 8, "
        "and the schema says nothing of missing values",
        "label 'ill': only one of the declared classes is present",
    ]


def test_a_check_names_missing_columns_and_looks_at_the_others(tmp_path, patients):
    (tmp_path / "t.csv").write_text("ward,ill\nnorth,0\nwest,1\n")
    assert check(patients, tmp_path / "t.csv") == [
        "column 'age' is missing",
        "column 'ward': undeclared values, 1 distinct ones, first in row 2",
    ]


def test_a_check_does_not_count_what_is_clamped(tmp_path, patients):
    (tmp_path / "t.csv").write_text("age,ward,ill\n1000,north,0\n-7,south,1\n")
    assert check(patients, tmp_path / "t.csv") == []


def test_a_check_compares_the_declared_number_of_rows(tmp_path, patients):
    (tmp_path / "t.csv").write_text("age,ward,ill\n10,north,0\n7,south,1\n")
    declared = Schema.from_dict(patients.to_dict() | {"rows": 3})
    assert check(declared, tmp_path / "t.csv") == [
        "rows declares 3, but the file has another number of rows"
    ]


def test_a_check_of_a_folder_names_every_bad_file(tmp_path, pictures):
    for name in ("cat", "dog", "zebra"):
        (tmp_path / name).mkdir()
        Image.new("L", (5, 4)).save(tmp_path / name / "a.png")
    (tmp_path / "cat" / "b.png").write_bytes(b"hello")
    Image.new("L", (9, 9)).save(tmp_path / "dog" / "b.png")
    findings = check(pictures, tmp_path)
    assert len(findings) == 3
    assert "cat/b.png" in findings[0]
    assert "dog/b.png" in findings[1]
    assert "zebra" in findings[2]


def test_a_check_of_an_unreadable_file_is_one_finding(tmp_path, patients):
    (tmp_path / "t.parquet").write_bytes(b"hello")
    assert len(check(patients, tmp_path / "t.parquet")) == 1


def test_an_unknown_kind_of_file_is_not_guessed_at(tmp_path, patients):
    (tmp_path / "t.xlsx").write_text("age,ward,ill\n10,north,0\n")
    with pytest.raises(UserError, match="unknown kind of file"):
        draft(tmp_path / "t.xlsx")
    with pytest.raises(UserError, match="unknown kind of file"):
        check(patients, tmp_path / "t.xlsx")
