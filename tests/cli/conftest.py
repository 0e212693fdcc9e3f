"""The command line as a user meets it: real processes, and the same entry point in this process.

A process that gets as far as JAX takes seconds to start. So mistakes that are found before that,
and one of each kind of run, are tested in real processes (`limbeck`); the rest calls the entry
point here (`limbeck_here`).
"""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import SOURCE, Ran, run, write_patients


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own working folder that holds patients.csv and patients.toml."""
    write_patients(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def limbeck(here: Path) -> Callable[..., Ran]:
    """`limbeck(*arguments)` in a process of its own, in the working folder."""
    return lambda *arguments: run(*arguments, cwd=here)


@pytest.fixture
def limbeck_here(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """`limbeck_here(*arguments)`: the entry point of the script, in this process."""
    from limbeck.cli.main import main

    def call(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["limbeck", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return Ran(ended.value.code or 0, *capfd.readouterr())

    return call


@dataclasses.dataclass(frozen=True)
class Release:
    """A bundle that a real process made, and how that ended."""

    folder: Path
    ran: Ran


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The bundle that many tests look at and none changes: two points of the patients."""
    folder = tmp_path_factory.mktemp("release")
    write_patients(folder)
    plan = ("--method", "dp-kip", "--epsilon", "1", "--per-class", "1")
    plan = (*plan, "--set", "epochs=1", "--set", "sampling_rate=0.5")
    return Release(
        folder / "out", run("distill", *SOURCE, *plan, "-o", "out", "--json", cwd=folder)
    )
