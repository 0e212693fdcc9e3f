"""The lines that the page offers to copy do what they say."""

import dataclasses
import re
import sys
import types

import numpy as np
import pandas as pd
import pytest
from releases import COLOURED, PICTURES, TABLE, generated, release

from limbeck.release.report.render import render
from limbeck.release.report.snippets import LIBRARIES, lines


@pytest.fixture(params=[TABLE, PICTURES, COLOURED], ids=["table", "pictures", "coloured"])
def schema(request):
    return request.param


@pytest.fixture(params=[release, generated])
def make(request):
    return request.param


@pytest.fixture
def saved(schema, make, tmp_path, monkeypatch):
    """A bundle in the working folder."""
    made = make(schema, 12)
    monkeypatch.chdir(made.save(tmp_path / "out"))
    return made


def code(made, library):
    (block,) = [block for block in lines(made) if block.library == library]
    return block.code


def run(made, library, **given):
    exec(compile(code(made, library), library, "exec"), given)
    return given


def new_rows(made):
    return made.to_frame() if made.schema == TABLE else np.clip(made.x, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("make", [release], indirect=True)
def test_limbeck_loads_the_bundle_and_predicts(saved):
    run(saved, "Limbeck", new_rows=new_rows(saved))


@pytest.mark.parametrize("make", [generated], indirect=True)
def test_limbeck_loads_the_bundle_and_draws_more(saved, monkeypatch):
    def draw(schema, generator, n, entropy):
        return np.zeros((n, schema.width), np.float32), np.zeros(n, np.int64)

    sampling = types.SimpleNamespace(draw=draw)
    monkeypatch.setitem(sys.modules, "limbeck.models.sampling", sampling)
    assert len(run(saved, "Limbeck")["more"].x) == 1000
    file = "more.csv" if saved.schema == TABLE else "more.npz"
    assert f"limbeck sample . -n 1000 -o {file}" in code(saved, "Limbeck")


@pytest.mark.parametrize("make", [generated], indirect=True)
def test_lines_for_records_know_no_weights(saved):
    for block in lines(saved):
        assert not re.search("weight|y_soft|classifier", block.code), block.library


def test_pandas_has_the_rows_and_the_label(saved):
    frame = run(saved, "pandas")["frame"]
    assert frame[saved.schema.label].tolist() == saved.y.tolist()
    if saved.schema == TABLE:
        pd.testing.assert_frame_equal(frame, saved.to_frame(), check_dtype=False)
    else:
        pixels = frame.drop(columns=saved.schema.label)
        np.testing.assert_allclose(pixels, saved.x.reshape(12, -1), rtol=1e-6)


def test_scikit_learn_fits_and_predicts_classes(saved):
    model = run(saved, "scikit-learn")["model"]
    assert model.classes_.tolist() == sorted(saved.schema.classes)
    if saved.schema == TABLE:
        assert (
            len(model.predict(saved.to_frame()[["age", "dose", "visits", "smoker", "ward"]])) == 12
        )


@pytest.mark.parametrize("label", ['it\'s "ill"', "back\\slash", "two\nlines", "{braces}", "é"])
@pytest.mark.parametrize("schema", [TABLE, PICTURES], ids=["table", "pictures"])
def test_any_label_is_found(schema, label, tmp_path, monkeypatch):
    made = release(dataclasses.replace(schema, label=label), 12)
    monkeypatch.chdir(made.save(tmp_path / "out"))
    assert run(made, "pandas")["frame"][label].tolist() == made.y.tolist()
    assert len(run(made, "scikit-learn")["model"].classes_) == len(schema.classes)


@pytest.mark.parametrize("library", ["PyTorch", "Hugging Face"])
def test_lines_for_what_is_not_installed_here_are_python(saved, library):
    compile(code(saved, library), library, "exec")


def test_all_of_them_are_on_the_page_as_they_are(saved):
    import html

    blocks = re.findall(r"<pre.*?><code>(.*?)</code></pre>", render(saved), re.DOTALL)
    assert [html.unescape(block) for block in blocks] == [b.code for b in lines(saved)]
    assert len(blocks) == len(LIBRARIES)
