"""CSV and Parquet: the same rows from both, in bounded pieces, and one line for a broken file."""

import gzip

import numpy as np
import pandas as pd
import pytest

from limbeck.data.source import open_source
from limbeck.errors import UserError

SECRET = "Zebulon-4711"
HEADER = "age,ward,ill\n"


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 100, 50),
            "note": [SECRET] * 50,
            "ward": rng.choice(["north", "south"], 50),
            "ill": rng.integers(0, 2, 50),
        }
    )


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_every_format_gives_the_same_records(tmp_path, frame, patients, read_all, name):
    write(frame, tmp_path / name)
    batches = read_all(tmp_path / name, patients, size=7)
    x = np.concatenate([x for x, _ in batches])
    np.testing.assert_allclose(x[:, 0], frame["age"] / 100, rtol=1e-6)
    np.testing.assert_array_equal(x[:, 2], frame["ward"] == "south")
    np.testing.assert_array_equal(np.concatenate([y for _, y in batches]), frame["ill"])


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_batches_are_bounded_and_complete(tmp_path, frame, patients, read_all, name):
    write(frame, tmp_path / name)
    sizes = [len(y) for _, y in read_all(tmp_path / name, patients, size=7)]
    assert max(sizes) <= 7
    assert sum(sizes) == 50


def test_a_source_can_be_read_twice_and_shows_no_rows(tmp_path, frame, patients):
    write(frame, tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet", patients)
    assert sum(len(y) for _, y in source.batches()) == sum(len(y) for _, y in source.batches())
    assert source.name == "t.parquet"
    assert SECRET not in repr(source)


def test_text_with_quotes_commas_and_line_breaks(tmp_path, patients, read_all):
    (tmp_path / "t.csv").write_text('age,note,ward,ill\n1,"a, ""b""\nc","north",0\n2,,south,1.0\n')
    [(x, y)] = read_all(tmp_path / "t.csv", patients)
    assert x.tolist() == [[np.float32(0.01), 1, 0], [np.float32(0.02), 0, 1]]
    assert y.tolist() == [0, 1]


def test_line_breaks_in_text_at_the_edge_of_a_block(tmp_path, patients, read_all, monkeypatch):
    monkeypatch.setattr("limbeck.data.tables._BLOCK", 64)
    rows = [f'{i},"{"a" * (i % 7)}\n{"b" * (i % 5)}",north,0' for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["age,note,ward,ill", *rows]))
    x = np.concatenate([x for x, _ in read_all(tmp_path / "t.csv", patients)])
    np.testing.assert_allclose(x[:, 0] * 100, np.arange(40), rtol=1e-6)


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path, patients, read_all):
    (tmp_path / "t.csv").write_text(HEADER + "1,north,0\n", encoding="utf-8-sig")
    assert len(read_all(tmp_path / "t.csv", patients)) == 1


GOOD = "1,north,0\n"
CSV = [
    (b"", "t.csv: the file is empty"),
    (HEADER.encode(), "t.csv: there are no rows"),
    (HEADER + GOOD + "2,south\n", "2 fields where the header has 3"),
    (HEADER + GOOD + f"2,south,1,{SECRET}\n", "4 fields where the header has 3"),
    ((HEADER + "1,nörd,0\n").encode("latin-1"), "not in UTF-8"),
    (("äge,age,ward,ill\n" + "1,1,north,0\n").encode("latin-1"), "not in UTF-8"),
    ((HEADER + GOOD).encode("utf-16"), "t.csv: "),
    (bytes(range(256)), "t.csv: "),
    (b"\0" * 64, "t.csv: "),
    ("age,age,ward,ill\n1,1,north,0\n", "column 'age' occurs twice"),
    ("Age,ward,ill\n" + GOOD, r"no column 'age'; did you mean 'Age'\?"),
    (HEADER + GOOD * 9 + f"{SECRET},north,0\n", "column 'age', data row 10: .*not a number"),
    (HEADER + GOOD * 9 + f"1,{SECRET},0\n", "column 'ward', data row 10: .*not declared"),
    (HEADER + GOOD * 9 + f"1,north,{SECRET}\n", "column 'ill', data row 10: .*not declared"),
    (HEADER + GOOD * 9 + ",north,0\n", "column 'age', data row 10: .*missing"),
    (HEADER + GOOD * 9 + "1,north,\n", "column 'ill', data row 10: .*missing"),
    (HEADER + GOOD + f'2,"{SECRET},1\n', "t.csv: "),
]


@pytest.mark.parametrize(("content", "complaint"), CSV)
def test_a_broken_csv_file_is_refused_in_one_line(tmp_path, patients, read_all, content, complaint):
    written = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "t.csv").write_bytes(written)
    with pytest.raises(UserError, match=complaint) as caught:
        read_all(tmp_path / "t.csv", patients)
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("damage", [lambda b: b"hello", lambda b: b[: len(b) // 2]])
def test_a_damaged_gzip_file_is_refused(tmp_path, patients, read_all, damage):
    rows = "".join(f"{i % 100},north,{i % 2}\n" for i in range(5000))
    (tmp_path / "t.csv.gz").write_bytes(damage(gzip.compress((HEADER + rows).encode())))
    with pytest.raises(UserError, match=r"t\.csv\.gz: cannot be read"):
        read_all(tmp_path / "t.csv.gz", patients, size=4096)


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b"",
        lambda b: b"hello",
        lambda b: b[: len(b) // 2],
        lambda b: b[:4] + bytes(x ^ 0x55 for x in b[4:400]) + b[400:],
    ],
    ids=["empty", "other", "truncated", "overwritten"],
)
def test_a_damaged_parquet_file_is_refused(tmp_path, frame, patients, read_all, damage):
    path = tmp_path / "t.parquet"
    frame.to_parquet(path, write_page_checksum=True)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=r"^t\.parquet: ") as caught:
        read_all(path, patients)
    assert "\n" not in str(caught.value)


def test_a_changed_byte_in_a_page_with_a_checksum_is_noticed(tmp_path, frame, patients, read_all):
    path = tmp_path / "t.parquet"
    ages = frame["age"].to_numpy().astype("<i8").tobytes()
    options = {"compression": None, "use_dictionary": False, "write_page_checksum": True}
    frame.to_parquet(path, **options)
    assert ages in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(ages, ages[:-8] + b"\7" + ages[-7:]))
    with pytest.raises(UserError, match=r"^t\.parquet: "):
        read_all(path, patients)


def test_a_parquet_file_without_rows_or_with_other_columns(tmp_path, frame, patients, read_all):
    frame.head(0).to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(UserError, match="no rows"):
        read_all(tmp_path / "empty.parquet", patients)
    frame.drop(columns="ill").to_parquet(tmp_path / "other.parquet")
    with pytest.raises(UserError, match="no column 'ill'"):
        read_all(tmp_path / "other.parquet", patients)


def test_types_that_parquet_keeps(tmp_path, frame, patients, read_all):
    typed = frame.assign(ward=pd.Categorical(frame["ward"]), ill=frame["ill"].astype(bool))
    typed.to_parquet(tmp_path / "typed.parquet")
    frame.to_parquet(tmp_path / "plain.parquet")
    for one, other in zip(
        read_all(tmp_path / "typed.parquet", patients),
        read_all(tmp_path / "plain.parquet", patients),
        strict=True,
    ):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


def test_a_path_that_leads_nowhere_gets_a_hint(tmp_path, patients):
    (tmp_path / "patients.csv").write_text(HEADER + GOOD)
    with pytest.raises(UserError, match=r"no such file.*did you mean 'patients\.csv'"):
        open_source(tmp_path / "patiens.csv", patients)
    with pytest.raises(UserError, match="did you mean 'fashion_mnist'"):
        open_source("fashionmnist", patients)


def test_a_path_needs_a_schema(tmp_path):
    (tmp_path / "t.csv").write_text(HEADER + GOOD)
    with pytest.raises(UserError, match=r"limbeck schema draft .*t\.csv -o schema\.toml"):
        open_source(tmp_path / "t.csv")


def test_the_schema_may_be_a_path(tmp_path, patients, read_all):
    (tmp_path / "t.csv").write_text(HEADER + GOOD)
    (tmp_path / "schema.toml").write_text(patients.dumps())
    assert len(read_all(tmp_path / "t.csv", tmp_path / "schema.toml")) == 1


def test_an_unknown_kind_of_file_or_the_wrong_kind_of_schema(
    tmp_path, patients, pictures, read_all
):
    (tmp_path / "t.xlsx").write_text("")
    with pytest.raises(UserError, match=r"must end in \.csv"):
        open_source(tmp_path / "t.xlsx", patients)
    (tmp_path / "t.csv").write_text(HEADER + GOOD)
    with pytest.raises(UserError, match=r"\[image\] instead of columns"):
        read_all(tmp_path / "t.csv", pictures)
