"""Mistakes: one line that says what to do, exit code 2, nothing on disk, no value of any row."""

import os
import zipfile

import numpy as np
import pandas as pd
import pytest
from command_line import ROWS, SMALL, SOURCE, assert_refused, contents, patients
from PIL import Image

CANARY = "Zebulon77"
DP_KIP = ("--epsilon", 1, *SMALL)
KIP = ("--method", "kip", "--not-private", "--steps", 1, "--per-class", 1)

PICTURES = '[label]\nclasses = ["cat", "dog"]\n[image]\nheight = 4\nwidth = 5\n'


def refuse(command, here, *arguments, words, output="out"):
    """The command is refused, and the folder holds afterwards what it held before."""
    before = contents(here)
    ran = command("distill", *arguments, "-o", output)
    assert_refused(ran, *words)
    assert CANARY not in ran.err
    assert contents(here) == before


BEFORE_THE_WORK = {
    "missing file": (["nowhere.csv", *DP_KIP], ["nowhere.csv", "no such file"]),
    "misspelt file": (["patient.csv", *DP_KIP], ["patient.csv", "did you mean 'patients.csv'"]),
    "misspelt named set": (["digit", *DP_KIP], ["did you mean 'digits'"]),
    "unknown split": (["digits:valid", *DP_KIP], ["train or test"]),
    "kind of file": (["patients.toml", *DP_KIP], ["unknown kind of file", ".parquet"]),
    "missing schema": (["patients.csv", *DP_KIP], ["a schema is needed", "schema draft"]),
    "missing schema file": (
        ["patients.csv", "--schema", "no.toml", *DP_KIP],
        ["no such schema file"],
    ),
    "unknown method": (
        [*SOURCE, *DP_KIP, "--method", "dp-kipp"],
        ["'dp-kipp'", "did you mean 'dp-kip'"],
    ),
    "no epsilon": ([*SOURCE, *SMALL], ["--epsilon 1"]),
    "epsilon below zero": ([*SOURCE, "--epsilon", -1], ["epsilon must be a positive number"]),
    "epsilon of nan": ([*SOURCE, "--epsilon", "nan"], ["epsilon must be a positive number"]),
    "delta of zero": ([*SOURCE, *DP_KIP, "--delta", 0], ["delta must lie between 0 and 1"]),
    "delta of one": ([*SOURCE, *DP_KIP, "--delta", 1], ["delta must lie between 0 and 1"]),
    "adjacency": ([*SOURCE, *DP_KIP, "--adjacency", "swap"], ["'add-remove', 'replace'"]),
    "private and not": ([*SOURCE, *DP_KIP, "--not-private"], ["leave out --not-private"]),
    "kip unasked": ([*SOURCE, "--method", "kip"], ["no privacy at all", "--not-private"]),
    "kip with epsilon": ([*SOURCE, *KIP, "--epsilon", 1], ["leave out epsilon"]),
    "no points": ([*SOURCE, "--epsilon", 1, "--per-class", 0], ["per_class must be"]),
    "empty batch": ([*SOURCE, *DP_KIP, "--set", "batch=0"], ["batch must be"]),
}


@pytest.mark.parametrize("mistake", BEFORE_THE_WORK)
def test_mistakes_found_at_once(limbeck, here, mistake):
    arguments, words = BEFORE_THE_WORK[mistake]
    refuse(limbeck, here, *arguments, words=words)


IN_THE_SETTINGS = {
    "features": (["--features", "fc-ntkk"], ["'fc-ntkk'", "fc-ntk"]),
    "setting of another method": (["--set", "labels=hard"], ["dp-kip has no setting 'labels'"]),
    "steps of another method": (["--steps", 3], ["dp-kip has no setting 'steps'"]),
    "misspelt setting": (["--set", "epoch=3"], ["no setting 'epoch'", "did you mean 'epochs'?"]),
    "no value": (["--set", "epochs"], ["--set epochs", "name=value"]),
    "given twice": (["--set", "epochs=1", "--set", "epochs=2"], ["epochs is given twice"]),
    "batch of unknown share": (["--set", "batch=10"], ["sampling_rate", "rows"]),
    "sampling rate of zero": (["--set", "sampling_rate=0"], ["sampling_rate must be", "positive"]),
    "sampling rate of two": (["--set", "sampling_rate=2"], ["sampling_rate", "at most 1, not 2"]),
    "optimiser": (["--set", "optimiser=lion"], ["optimiser must be adam or sgd, not 'lion'"]),
    "schedule": (["--set", "schedule=linear"], ["schedule must be cosine or constant"]),
    "epochs below zero": (["--set", "epochs=-1"], ["epochs must be a positive number, not -1"]),
    "learning rate of nan": (["--set", "learning_rate=nan"], ["learning_rate", "positive"]),
    "clip of zero": (["--set", "clip=0"], ["clip must be a positive number, not 0"]),
    "clip in words": (["--set", "clip=tight"], ["clip must be a number, auto or normalise"]),
    "regularisation below zero": (["--set", "regularisation=-1"], ["regularisation", "positive"]),
}


@pytest.mark.parametrize("mistake", IN_THE_SETTINGS)
def test_settings_that_a_method_cannot_have(limbeck_here, here, mistake):
    arguments, words = IN_THE_SETTINGS[mistake]
    plan = ("--epsilon", 1, "--method", "dp-kip")
    refuse(limbeck_here, here, *SOURCE, *plan, *arguments, words=words)


OF_THE_READOUT = {
    "labels": (["--set", "labels=fuzzy"], ["labels must be soft or hard, not 'fuzzy'"]),
    "smooth table": (["--set", "smoothness=0.1"], ["smoothness is for images"]),
    "features of images": (["--features", "whitened-scatter"], ["is for images"]),
    "steps": (["--steps", 0], ["steps must be a positive number, not 0"]),
    "clip": (["--set", "clip=auto"], ["clip must be a number, not 'auto'"]),
    "setting of another method": (["--set", "epochs=3"], ["readout has no setting 'epochs'"]),
}


@pytest.mark.parametrize("mistake", OF_THE_READOUT)
def test_settings_that_the_default_method_cannot_have(limbeck_here, here, mistake):
    arguments, words = OF_THE_READOUT[mistake]
    refuse(limbeck_here, here, *SOURCE, "--epsilon", 1, *arguments, words=words)


def table(**changed):
    """Thirty patients with a name that nobody may see, and one cell in row 4 changed."""
    rows = patients(30).astype(object).assign(name=CANARY)
    for column, value in changed.items():
        rows.loc[3, column] = value
    return rows


BAD_TABLES = {
    "column": (table().rename(columns={"dose": "Dose"}), ["'dose'", "did you mean 'Dose'"]),
    "no rows": (table()[:0], ["no rows"]),
    "label missing": (table(ill=np.nan), ["'ill'", "data row 4", "missing"]),
    "label undeclared": (table(ill=CANARY), ["'ill'", "data row 4", "not declared"]),
    "category undeclared": (table(ward=CANARY), ["'ward'", "data row 4", "not declared"]),
    "text for a number": (table(age=CANARY), ["'age'", "data row 4", "not a number"]),
    "number missing": (table(dose=np.nan), ["'dose'", "data row 4", "missing"]),
}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("mistake", BAD_TABLES)
def test_tables_that_do_not_fit(limbeck_here, here, mistake, kind):
    rows, words = BAD_TABLES[mistake]
    if kind == "csv":
        rows.to_csv("bad.csv", index=False)
    else:
        rows.map(str, na_action="ignore").to_parquet("bad.parquet", index=False)
    arguments = (f"bad.{kind}", "--schema", "patients.toml", *KIP)
    refuse(limbeck_here, here, *arguments, words=[f"bad.{kind}", *words])


def test_a_bad_row_found_in_the_middle_of_a_private_run(limbeck, here):
    table(ill=CANARY).to_csv("bad.csv", index=False)
    arguments = ("bad.csv", "--schema", "patients.toml", *DP_KIP, "--json")
    refuse(limbeck, here, *arguments, words=["bad.csv", "'ill'", "data row 4"])


@pytest.mark.parametrize("name", ["bad.csv", "bad.parquet", "bad.npz"])
@pytest.mark.parametrize("held", [b"", b"PAR1" + CANARY.encode() * 9, b"\xff\xfe\x00" * 50])
def test_files_that_are_not_what_their_name_says(limbeck_here, here, name, held):
    (here / name).write_bytes(held)
    refuse(limbeck_here, here, name, "--schema", "patients.toml", *KIP, words=[name])


def test_a_damaged_parquet_file(limbeck_here, here):
    table().to_parquet("bad.parquet", index=False)
    whole = (here / "bad.parquet").read_bytes()
    (here / "bad.parquet").write_bytes(whole[: len(whole) // 2])
    arguments = ("bad.parquet", "--schema", "patients.toml", *KIP)
    refuse(limbeck_here, here, *arguments, words=["bad.parquet", "damaged"])


def test_a_ragged_row_is_not_quoted(limbeck_here, here):
    table().to_csv("bad.csv", index=False)
    with open("bad.csv", "a") as file:
        file.write(f"40,1.5,north,no,{CANARY},{CANARY}\n")
    arguments = ("bad.csv", "--schema", "patients.toml", *KIP)
    refuse(limbeck_here, here, *arguments, words=["bad.csv", "6 fields"])


def test_a_table_without_a_header_keeps_its_first_row_to_itself(limbeck_here, here):
    table().to_csv("bad.csv", index=False, header=False)
    arguments = ("bad.csv", "--schema", "patients.toml", *KIP)
    refuse(limbeck_here, here, *arguments, words=["bad.csv", "'age'"])


def test_a_truncated_picture(limbeck_here, here):
    (here / "pictures.toml").write_text(PICTURES)
    for kind in ("cat", "dog"):
        (here / "pets" / kind).mkdir(parents=True)
        noise = np.random.default_rng(0).integers(0, 256, (4, 5), dtype=np.uint8)
        Image.fromarray(noise).save(here / "pets" / kind / "1.png")
    whole = (here / "pets/dog/1.png").read_bytes()
    (here / "pets/dog/1.png").write_bytes(whole[: len(whole) - 30])
    arguments = ("pets", "--schema", "pictures.toml", *KIP)
    refuse(limbeck_here, here, *arguments, words=["dog/1.png", "truncated"])


def test_a_zip_bomb(limbeck_here, here):
    (here / "pictures.toml").write_text(PICTURES)
    with zipfile.ZipFile("bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("x.npy", "y.npy"):
            with archive.open(name, "w") as member:
                for _ in range(150):
                    member.write(bytes(2**20))
    arguments = ("bomb.npz", "--schema", "pictures.toml", *KIP)
    refuse(limbeck_here, here, *arguments, words=["bomb.npz", "zip bomb"])


def test_a_folder_in_the_way_is_never_touched(limbeck, limbeck_here, here):
    (here / "out").mkdir()
    (here / "out" / "thesis.txt").write_text("ten years of work")
    command = (*SOURCE, *DP_KIP)
    refuse(limbeck_here, here, *command, words=["out exists", "--overwrite"])
    refuse(limbeck, here, *command, "--overwrite", words=["out is not a bundle"])


def test_a_file_in_the_way_is_never_touched(limbeck, limbeck_here, here):
    command = (*SOURCE, *DP_KIP)
    for given in (command, (*command, "--overwrite")):
        refuse(limbeck_here, here, *given, output="patients.csv", words=["patients.csv"])
    refuse(limbeck, here, *command, output="patients.csv/a/b", words=["csv is not a folder"])


def test_an_impossible_name(limbeck_here, here):
    refuse(limbeck_here, here, *SOURCE, *DP_KIP, output="o" * 300, words=["cannot be written"])
    refuse(limbeck_here, here, *SOURCE, *DP_KIP, output="/", words=["/ exists"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(limbeck_here, here):
    (here / "locked").mkdir(mode=0o500)
    refuse(limbeck_here, here, *SOURCE, *DP_KIP, output="locked/out", words=["may not write"])


def test_the_patients_themselves_are_in_order(limbeck_here, here):
    """Otherwise the refusals above could have another reason."""
    assert len(pd.read_csv("patients.csv")) == ROWS
    assert limbeck_here("distill", *SOURCE, *KIP, "-o", "out").code == 0
