"""A schema says what it means, survives being written, and refuses what is wrong by name."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limbeck.data import toml
from limbeck.data.column import Column
from limbeck.data.schema import ImageShape, Schema
from limbeck.data.values import first_repeated, text
from limbeck.errors import UserError

few = settings(max_examples=50, deadline=None)
words = st.text(min_size=1).filter(str.strip)
scalars = st.one_of(words, st.integers(-1000, 1000), st.booleans())


def distinct(values, low=2):
    return st.lists(values, min_size=low, max_size=6).filter(lambda v: first_repeated(v) is None)


@st.composite
def columns(draw, name):
    kind = draw(st.sampled_from(["numeric", "integer", "ordinal", "categorical", "boolean"]))
    if kind == "boolean":
        return Column(name, kind, missing=draw(st.none() | st.booleans()))
    if kind in ("numeric", "integer"):
        number = st.integers(-(10**6), 10**6) if kind == "integer" else st.floats(-1e6, 1e6)
        low, high = sorted(draw(st.lists(number, min_size=2, max_size=2, unique=True)))
        return Column(name, kind, low, high, missing=draw(st.sampled_from([None, low, high])))
    values = tuple(draw(distinct(scalars | st.floats(-10, 10))))
    policy = st.sampled_from([None, *values])
    return Column(name, kind, values=values, other=draw(policy), missing=draw(policy))


@st.composite
def schemas(draw):
    names = draw(st.lists(st.text(), min_size=2, max_size=5, unique=True))
    shape = st.builds(ImageShape, st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3]))
    image = draw(st.none() | shape)
    return Schema(
        classes=tuple(draw(distinct(scalars))),
        columns=() if image else tuple(draw(columns(name)) for name in names[1:]),
        image=image,
        label=names[0],
        public_rows=draw(st.none() | st.integers(1, 10**9)),
        missing_values=tuple(draw(st.lists(st.text(), max_size=3))),
        drafted=draw(st.booleans()),
    )


def typed(schema):
    """Equality that tells 1 from True."""
    return schema, [type(value) for value in schema.classes]


@few
@given(schemas())
def test_toml_round_trip(schema):
    assert typed(Schema.loads(schema.dumps())) == typed(schema)


@few
@given(schemas())
def test_json_round_trip(schema):
    assert typed(Schema.from_dict(json.loads(json.dumps(schema.to_dict())))) == typed(schema)


@few
@given(schemas())
def test_there_is_one_name_for_each_coordinate(schema):
    assert len(schema.coordinate_names) == schema.width


def test_a_schema_written_by_hand():
    schema = Schema.loads(
        """
        rows = 48842
        [label]
        name = "income"
        classes = ["<=50K", ">50K"]
        [columns.age]
        kind = "integer"
        minimum = 17
        maximum = 90
        [columns.workclass]
        kind = "categorical"
        values = ["Private", "Self-emp"]
        other = "Other"
        missing = "Other"
        """
    )
    assert schema.public_rows == 48842
    assert schema.coordinate_names == (
        "age",
        "workclass=Private",
        "workclass=Self-emp",
        "workclass=Other",
    )
    assert not schema.is_image
    assert not schema.drafted


def test_the_examples_of_the_page_on_data_are_valid():
    page = Path(__file__).parents[2] / "docs" / "data.md"
    examples = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert [Schema.loads(example).is_image for example in examples] == [False, True]


def test_long_lists_are_wrapped_and_read_back():
    schema = Schema(classes=tuple(f"class {i}" for i in range(60)), image=ImageShape(2, 2))
    assert max(map(len, schema.dumps().splitlines())) <= 100
    assert Schema.loads(schema.dumps()) == schema


def test_unusual_names_are_quoted_wherever_they_stand():
    document = {"a b": 1, 'c"\n': {"d.e": [True, "\x7f"], "": {"é": 0.5}}}
    assert tomllib.loads(toml.dumps(document, header="two\nlines")) == document


def test_the_draft_says_in_its_first_line_where_it_comes_from():
    drafted = Schema(classes=(0, 1), image=ImageShape(2, 2), drafted=True).dumps()
    assert "READ FROM THE PRIVATE ROWS" in drafted.splitlines()[0]
    assert Schema.loads(drafted).drafted


def test_rows_are_private_unless_declared(patients):
    assert patients.public_rows is None


LABEL = "[label]\nclasses = [0, 1]\n"
AGE = '[columns.age]\nkind = "integer"\nminimum = 0\nmaximum = 9\n'


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("rows = \n", r"s.toml: not valid TOML: .*line 1"),
        (LABEL + AGE + "minimun = 3\n", r"column 'age': unknown key 'minimun'.*'minimum'"),
        ("row = 3\n" + LABEL + AGE, r"unknown key 'row'; did you mean 'rows'"),
        (LABEL + AGE.replace("9", "0"), r"column 'age': minimum must be below maximum"),
        (LABEL + AGE.replace("9", "inf"), r"column 'age': .*finite"),
        (LABEL + AGE.replace("9", "9.5"), r"column 'age': .*whole numbers"),
        (LABEL + AGE.replace("9", "true"), r"column 'age': maximum must be a number"),
        (LABEL + AGE.replace("maximum = 9", ""), r"column 'age': maximum is missing"),
        (LABEL + AGE + "missing = 10\n", r"column 'age': missing must be a value"),
        (LABEL + AGE.replace("integer", "intger"), r"unknown kind 'intger'.*'integer'"),
        (LABEL + AGE.replace("age", "label"), r"label 'label' is also among the columns"),
        (LABEL + AGE.replace("age", '"label=1"'), r"'label=1' has the name of a label weight"),
        ("[label]\nclasses = [1]\n" + AGE, r"at least two classes"),
        ("[label]\nclasses = [1, 1]\n" + AGE, r"\[label\] classes: 1 is listed twice"),
        ('[label]\nclasses = ["a", " a"]\n' + AGE, r"' a' is listed twice"),
        ("[label]\nclasses = [0.5, 1]\n" + AGE, r"classes must be whole numbers"),
        ("[label]\nclasses = [[0], [1]]\n" + AGE, r"classes must hold text"),
        ("[label]\nclasses = 3\n" + AGE, r"classes must be a list"),
        (AGE, r"label is missing"),
        (LABEL, r"\[columns.NAME\] tables or by \[image\]"),
        (LABEL + AGE + "[image]\nheight = 2\nwidth = 2\n", r"not both"),
        (LABEL + "[image]\nheight = 2\nwidth = 2\nchannels = 2\n", r"channels must be 1"),
        (LABEL + "[image]\nheight = 0\nwidth = 2\n", r"height must be at least 1"),
        ('rows = "many"\n' + LABEL + AGE, r"rows must be"),
        ("rows = 0\n" + LABEL + AGE, r"rows must be"),
        (
            LABEL + '[columns.c]\nkind = "categorical"\nvalues = ["a", "a"]\n',
            r"'a' is listed twice",
        ),
        (LABEL + '[columns.c]\nkind = "categorical"\nvalues = ["a"]\n', r"at least two values"),
        (LABEL + '[columns.c]\nkind = "categorical"\nvalues = ["a", ""]\n', r"empty text"),
        (
            LABEL + '[columns.c]\nkind = "ordinal"\nvalues = ["a", "b"]\nother = "c"\n',
            r"column 'c': other must be one of",
        ),
    ],
)
def test_a_mistake_is_refused_in_one_line_that_names_it(written, complaint):
    with pytest.raises(UserError, match=complaint) as caught:
        Schema.loads(written, where="s.toml")
    assert str(caught.value).startswith("s.toml: ")
    assert "\n" not in str(caught.value)


def test_a_schema_file_that_is_absent_or_not_text(tmp_path):
    with pytest.raises(UserError, match="no such schema file"):
        Schema.load(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="UTF-8"):
        Schema.load(tmp_path / "binary.toml")


def test_numbers_are_told_apart_from_text_only_where_text_is_declared():
    assert first_repeated([1, 1.0]) == 1.0
    assert first_repeated(["01", "1"]) is None
    assert text(" x ") == "x"


def test_the_schema_module_starts_without_the_heavy_libraries():
    program = (
        "import sys, limbeck.data.schema, limbeck.data.source, limbeck.data.private\n"
        "print({'pandas', 'pyarrow', 'PIL', 'sklearn', 'jax'} & set(sys.modules))"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert printed.stdout.strip() == "set()", printed.stderr
