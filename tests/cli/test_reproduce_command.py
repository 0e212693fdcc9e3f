"""`limbeck reproduce`."""

import pytest
from command_line import assert_refused


def test_without_a_table_all_are_listed(limbeck):
    ran = limbeck("reproduce", "--json")
    assert ran.code == 0
    listed = {entry["table"]: entry for entry in ran.json["tables"]}
    assert listed["dp-kip/table6"] == {"table": "dp-kip/table6", "cells": 12, "runnable": 12}


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        (("dp-kip/table9",), "did you mean"),
        (("dp-kip/table2", "--cells", "mnist:3"), "mnist:10:eps1"),
        (("dp-kip/table2", "--methods", "kip"), "dp-kip-scatternet"),
        (("dp-kip/table2", "--cells", "svhn:1"), "lack the method or the data"),
        (("dp-kip/table2", "--cells", "mnist", "--seeds", "a"), "0,1,2"),
    ],
)
def test_mistakes_are_told_before_anything_is_run(limbeck, asked, word):
    assert_refused(limbeck("reproduce", *asked), word)


def test_the_page_can_be_written_from_nothing(limbeck, tmp_path):
    ran = limbeck("reproduce", "--results", tmp_path / "none.json", "--page", tmp_path / "page.md")
    assert (ran.code, ran.err) == (0, "")
    assert "not run" in (tmp_path / "page.md").read_text(encoding="utf-8")
