"""`limbeck distill`: what it prints and what it leaves behind."""

import io
import json
import re
import sys

import numpy as np
import pandas as pd
from command_line import SMALL, SOURCE, arrays, contents, release_json, statement


def test_by_default_a_table_is_distilled_by_its_readout(limbeck_here, here):
    plan = ("--epsilon", 1, "--per-class", 1, "--steps", 2, "-o", "out", "--json")
    printed = json.loads(limbeck_here("distill", *SOURCE, *plan).out)
    assert (printed["method"], printed["records"]) == ("readout", 2)
    assert {"learn", "distil"} <= set(printed["seconds"])
    released = release_json(here / "out")
    assert released["model"]["kernel"]["name"] == "bins"
    purposes = {event["purpose"]: event["draws"] for event in released["privacy"]["events"]}
    assert purposes == {"gradient": 2, "class counts": 1, "column histograms": 1}


def test_json_is_one_object_and_standard_error_stays_empty(release):
    assert release.ran.code == 0
    assert release.ran.err == ""
    assert release.ran.out.count("\n") == 1
    printed = release.ran.json
    assert printed.keys() == {
        "bundle", "method", "epsilon", "delta", "records", "seconds", "peak_memory_mb",
    }  # fmt: skip
    assert (printed["bundle"], printed["method"], printed["records"]) == ("out", "dp-kip", 2)
    assert printed["delta"] == 1e-5
    assert printed["seconds"].keys() == {"calibrate", "features", "distil", "write"}
    assert all(seconds >= 0 for seconds in printed["seconds"].values())
    assert 50 < printed["peak_memory_mb"] < 4000


def test_what_was_asked_for_is_spent_and_no_more(release):
    spent = release.ran.json["epsilon"]
    assert 1 - 1e-3 < spent <= 1
    assert release_json(release.folder)["privacy"]["epsilon"] == spent


def test_a_table_becomes_a_folder_of_five_files_and_nothing_beside_it(release):
    assert contents(release.folder).keys() == {
        "release.json", "data.npz", "data.parquet", "README.md", "preview.png",
    }  # fmt: skip
    assert {path.name for path in release.folder.parent.iterdir()} == {
        "out", "patients.csv", "patients.toml",
    }  # fmt: skip


def test_the_readme_opens_with_the_privacy_statement(release):
    first = statement(release.folder)[0]
    assert first == release_json(release.folder)["privacy"]["statement"]
    assert re.match(r"The 2 points are \(ε = 0\.9999\d, δ = 1e-05\)-differentially private", first)


def test_the_files_are_read_without_limbeck(release):
    data = arrays(release.folder)
    assert data["x"].shape == (2, 4)
    assert data["y"].tolist() == ["no", "yes"]
    assert data["y_soft"].tolist() == [[1, 0], [0, 1]]
    frame = pd.read_parquet(release.folder / "data.parquet")
    assert frame.columns.tolist() == ["age", "dose", "ward", "ill", "ill=no", "ill=yes"]
    assert frame["age"].between(0, 100).all()
    assert set(frame["ward"]) <= {"north", "south"}


def test_two_runs_without_a_seed_differ(here, limbeck_here):
    for name in ("one", "two"):
        assert limbeck_here("distill", *SOURCE, "--epsilon", 1, *SMALL, "-o", name).code == 0
    assert not np.array_equal(arrays(here / "one")["x"], arrays(here / "two")["x"])
    assert not release_json(here / "one")["privacy"]["seeded"]


def test_a_seed_repeats_the_run_and_forbids_the_release(here, limbeck, limbeck_here):
    command = ("distill", *SOURCE, "--epsilon", 1, *SMALL, "--seed", 7, "-o")
    printed = limbeck(*command, "one")
    assert (printed.code, printed.err) == (0, "")
    assert limbeck_here(*command, "two").code == 0
    one, two = arrays(here / "one"), arrays(here / "two")
    assert one.keys() == two.keys() == {"x", "y", "y_soft", "not_for_release"}
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
    assert "NOT FOR RELEASE" in printed.out
    assert "NOT FOR RELEASE" in statement(here / "one")[0]
    privacy = release_json(here / "one")["privacy"]
    assert privacy["seeded"]
    assert "NOT FOR RELEASE" in privacy["statement"].splitlines()[0]


def test_images_have_no_parquet_file(here, limbeck_here):
    ran = limbeck_here("distill", "digits", "--epsilon", 1, *SMALL, "-o", "some/where/out")
    assert ran.code == 0
    assert contents(here / "some/where/out").keys() == {
        "release.json", "data.npz", "README.md", "preview.png",
    }  # fmt: skip
    assert arrays(here / "some/where/out")["x"].shape == (10, 8, 8)
    assert "limbeck evaluate some/where/out --on digits:test" in ran.out


def test_without_privacy_the_first_words_are_not_private(here, limbeck_here):
    plan = ("--method", "kip", "--steps", 2, "--per-class", 1, "-o", "out")
    ran = limbeck_here("distill", *SOURCE, *plan, "--not-private", "--json")
    assert (ran.json["epsilon"], ran.json["delta"]) == (None, None)
    privacy = release_json(here / "out")["privacy"]
    assert (privacy["epsilon"], privacy["budget"]) == (None, None)
    assert statement(here / "out")[0].startswith("NOT PRIVATE")
    assert privacy["statement"].startswith("NOT PRIVATE")


def test_adjacency_is_named_in_the_statement(here, limbeck_here):
    plan = ("--epsilon", 1, "--adjacency", "replace", *SMALL, "-o", "out")
    assert limbeck_here("distill", *SOURCE, *plan).code == 0
    assert "the replacement of any one record" in statement(here / "out")[0]
    assert release_json(here / "out")["privacy"]["budget"]["adjacency"] == "replace"


def test_overwrite_replaces_a_bundle(here, limbeck_here):
    plan = ("distill", *SOURCE, "--method", "kip", "--not-private", "--per-class", 1, "-o", "out")
    assert limbeck_here(*plan, "--steps", 1).code == 0
    (here / "out" / "report.html").write_text("of the old bundle")
    assert limbeck_here(*plan, "--steps", 2, "--overwrite").code == 0
    assert release_json(here / "out")["method"]["settings"]["steps"] == 2
    assert not (here / "out" / "report.html").exists()
    assert {path.name for path in here.iterdir()} == {"out", "patients.csv", "patients.toml"}


def test_a_terminal_that_knows_no_greek_is_no_obstacle(here, limbeck_here, monkeypatch):
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", ascii_only)
    ran = limbeck_here("distill", *SOURCE, "--epsilon", 1, *SMALL, "-o", "out")
    ascii_only.flush()
    assert (ran.code, ran.err) == (0, "")
    assert b"\\u03b5 = 1" in ascii_only.buffer.getvalue()
