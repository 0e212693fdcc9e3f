"""The lines that the page offers to copy do what they say."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from releases import COLOURED, PICTURES, TABLE, release

from limbeck.report.loading import LIBRARIES, lines
from limbeck.report.render import render


@pytest.fixture(params=[TABLE, PICTURES, COLOURED], ids=["table", "pictures", "coloured"])
def saved(request, tmp_path, monkeypatch):
    """A bundle in the working folder."""
    made = release(request.param, 12)
    monkeypatch.chdir(made.save(tmp_path / "out"))
    return made


def code(made, library):
    (block,) = [block for block in lines(made.schema) if block.library == library]
    return block.code


def run(made, library, **given):
    exec(compile(code(made, library), library, "exec"), given)
    return given


def new_rows(made):
    return made.to_frame() if made.schema == TABLE else np.clip(made.x, 0, 255).astype(np.uint8)


def test_limbeck_loads_the_bundle_and_predicts(saved):
    run(saved, "Limbeck", new_rows=new_rows(saved))


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
    assert [html.unescape(block) for block in blocks] == [b.code for b in lines(saved.schema)]
    assert len(blocks) == len(LIBRARIES)
