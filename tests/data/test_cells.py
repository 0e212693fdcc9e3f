"""Every cell is read by itself: what other rows hold changes nothing."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limbeck
from limbeck.data.cells import read_cells
from limbeck.data.column import Column
from limbeck.data.schema import Schema

MARKS = ("?", "999")
COLUMNS = [
    Column("n", "numeric", minimum=0, maximum=1000, missing=40),
    Column("i", "integer", minimum=0, maximum=1000, missing=40),
    Column("c", "categorical", values=(0, 1, 0.1, "x"), other="x", missing="x"),
    Column("b", "boolean", missing=False),
    Column("o", "ordinal", values=(0, 1, 999), missing=0),
]
NUMBERS = [0, 1, 999, 3, 0.1, 0.5, 999.0, -5.0, 2e9, np.float32(0.1), np.int64(1), np.float64(999)]
CELLS = [*NUMBERS, None, np.nan, float("inf"), True, False, "1", " 1 ", "999", "?", "", "nan", "x"]
CELLS += ["0.1", "1_000", "1e2", "no", Decimal("0.1"), pd.Timestamp("2020-01-01")]


def series_of(cells):
    """As pandas makes it: of numbers if they all are, else of objects."""
    return pd.Series(cells)


def told(column, cells):
    found = read_cells(column, cells, MARKS)
    kept = ~(found.missing | found.unfit)
    return [
        (bool(m), bool(u), float(v) if k else None)
        for m, u, v, k in zip(found.missing, found.unfit, found.values, kept, strict=True)
    ]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.kind)
@settings(max_examples=150, deadline=None)
@given(cells=st.lists(st.sampled_from(CELLS), min_size=2, max_size=6))
def test_a_cell_is_read_alike_alone_and_among_others(column, cells):
    together = series_of(cells)
    alone = [told(column, together.iloc[[i]].astype(object))[0] for i in range(len(cells))]
    assert told(column, together) == alone


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.kind)
@pytest.mark.parametrize("kind", ["int64", "float64", "bool", "Int64", "Float64", "boolean"])
def test_a_number_is_read_alike_in_columns_of_every_type(column, kind):
    held = pd.Series([0, 1, 1, 0] if "bool" in kind.lower() else [0, 1, 999, 3]).astype(kind)
    assert told(column, held) == told(column, held.astype(object))


@pytest.mark.parametrize("last", [None, 5])
def test_one_null_of_a_parquet_file_does_not_touch_the_other_rows(tmp_path, last):
    """999 stands for a missing value, also where the file has it as a number."""
    schema = Schema(classes=(0, 1), columns=(COLUMNS[1],), missing_values=MARKS)
    table = pa.table({"i": pa.array([999] * 300 + [last]), "label": [0] * 301})
    pq.write_table(table, tmp_path / "rows.parquet")
    private = limbeck.open(tmp_path / "rows.parquet", schema=schema)
    ((x, _),) = private.reveal()
    np.testing.assert_allclose(x[:300, 0], 0.04)


def test_one_mark_in_a_frame_does_not_touch_the_other_rows():
    schema = Schema(classes=(0, 1), columns=(COLUMNS[0],), missing_values=MARKS)
    for last in ("?", 5.0, True):
        frame = pd.DataFrame({"n": [999.0] * 20 + [last], "label": 0})
        ((x, _),) = limbeck.PrivateData.from_frame(frame, schema).reveal()
        np.testing.assert_allclose(x[:20, 0], 0.04)
