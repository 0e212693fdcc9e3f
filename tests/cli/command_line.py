"""Running commands, the patients that they run on, and what is expected of a refusal."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SCRIPT = Path(sys.executable).with_name("limbeck")
# Rich takes FORCE_COLOR for a terminal; bars must stay away from a file all the same.
ENVIRONMENT = {**os.environ, "FORCE_COLOR": "1"}

ROWS = 317
SCHEMA = """
[label]
name = "ill"
classes = ["no", "yes"]

[columns.age]
kind = "integer"
minimum = 0
maximum = 100

[columns.dose]
kind = "numeric"
minimum = 0
maximum = 10

[columns.ward]
kind = "categorical"
values = ["north", "south"]
"""
SOURCE = ("patients.csv", "--schema", "patients.toml")
SMALL = ("--method", "dp-kip", "--per-class", "1", "--set", "epochs=1", "--set", "sampling_rate=1")


@dataclasses.dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)


def run(*arguments: object, cwd: Path) -> Ran:
    """Run the installed script in a process of its own."""
    ended = subprocess.run(
        [SCRIPT, *map(str, arguments)],
        cwd=cwd,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Ran(ended.returncode, ended.stdout, ended.stderr)


def patients(rows: int, seed: int = 0) -> pd.DataFrame:
    """Made-up patients: the older, the more often ill. Every dose is one of a kind."""
    draw = np.random.default_rng(seed)
    age = draw.integers(20, 90, rows)
    return pd.DataFrame(
        {
            "age": age,
            "dose": draw.uniform(0, 10, rows).round(9),
            "ward": draw.choice(["north", "south"], rows),
            "ill": np.where(age + draw.normal(0, 5, rows) > 55, "yes", "no"),
        }
    )


def write_patients(folder: Path) -> None:
    """Put patients.csv and patients.toml into the folder."""
    patients(ROWS).to_csv(folder / "patients.csv", index=False)
    (folder / "patients.toml").write_text(SCHEMA)


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder, hidden or not: the bytes of files, None for folders."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def release_json(bundle: Path) -> dict[str, Any]:
    return json.loads((bundle / "release.json").read_text())


def statement(bundle: Path) -> list[str]:
    """The lines of README.md below its title, without headings and gaps."""
    lines = (bundle / "README.md").read_text().splitlines()
    assert lines[0].startswith("# ")
    return [line for line in lines[1:] if line and not line.startswith("#")]


def arrays(bundle: Path) -> dict[str, np.ndarray]:
    with np.load(bundle / "data.npz", allow_pickle=False) as data:
        return {name: data[name] for name in data.files}


def assert_refused(ran: Ran, *words: str) -> None:
    """One line on standard error that starts with the program's name and holds the words."""
    assert ran.code == 2, ran
    assert ran.out == ""
    assert ran.err.startswith("limbeck: "), ran.err
    assert ran.err.count("\n") == 1, ran.err
    assert "Traceback" not in ran.err
    for word in words:
        assert word in ran.err
