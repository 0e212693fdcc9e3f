"""The privacy wall: who may import whom, and who may look at private rows."""

import ast
from pathlib import Path

import pytest

import limbeck

ROOT = Path(limbeck.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# For each part of the package, the parts of it that it may import. Order of most to least exact.
PLAIN = {"errors", "data.schema"}
RULES = {
    "cli": None,  # anything, and nothing imports it
    "reproduce": None,  # runs whole methods as a user would, and the command line alone imports it
    "methods": {"errors"},
    "privacy": PLAIN | {"privacy"},
    "features": PLAIN | {"features"},
    "data": PLAIN | {"data"},
    "models": PLAIN | {"models", "features", "progress"},
    "measure": PLAIN | {"measure", "data.private", "features", "models", "privacy", "progress"},
    "distill": PLAIN
    | {"distill", "features", "models", "measure", "privacy", "release.bundle", "progress"},
    "generate": PLAIN
    | {"generate", "features", "models", "measure", "privacy", "release.bundle", "progress"},
    "release": PLAIN
    | {"release", "data.column", "data.encode", "data.parse", "data.arrays"}
    | {"features", "models", "privacy"},
    "evaluate": PLAIN | {"evaluate", "data.source", "features", "models", "release", "progress"},
    "errors": set(),
    "progress": set(),
}


def part(path):
    """The dotted name of a file below `limbeck`."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path):
    """(line, dotted name below `limbeck`) of everything of ours that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "limbeck":
                yield node.lineno, name.removeprefix("limbeck").lstrip(".")


def allowed(name, permitted):
    return any(name == rule or name.startswith(f"{rule}.") for rule in permitted)


@pytest.mark.parametrize("path", [f for f in FILES if part(f) != "__init__"], ids=part)
def test_imports_stay_in_their_layer(path):
    top = part(path).split(".")[0]
    assert top in RULES, f"{path.name}: give this part of the package a rule"
    permitted = RULES[top]
    offending = [
        f"{path.relative_to(ROOT)}:{line} imports limbeck.{name}"
        for line, name in imports(path)
        if (permitted is not None and not allowed(name, permitted)) or name.startswith("cli.")
        if not (top == "cli" and name.startswith("cli."))
    ]
    assert not offending


def test_rows_are_handed_out_within_measure_only():
    """By `revealed`; everything else that can be imported hands out noisy numbers."""
    importers = {
        part(f) for f in FILES for _, name in imports(f) if name == "measure.records.revealed"
    }
    assert importers
    assert all(name.startswith("measure.") for name in importers)


def test_nobody_reaches_into_private_data():
    for path in FILES:
        names = {
            n.attr for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Attribute)
        }
        assert "_source" not in names or part(path) == "data.private"


def test_only_measure_and_the_public_front_import_private_data():
    importers = {
        part(f) for f in FILES for _, name in imports(f) if name.startswith("data.private")
    }
    assert {name for name in importers if not name.startswith("measure")} == {
        "__init__",
        "cli.making",
        "reproduce.runs",
    }


def test_only_measure_calls_reveal():
    callers = {
        f"{part(path)}:{node.lineno}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "reveal"
    }
    assert callers
    assert all(caller.startswith("measure.") for caller in callers)


def test_only_measure_noises_and_only_clipping_bounds():
    """`noise.gaussian` and `noise.laplace` are called behind the wall; clipping makes `Bounded`."""
    for path in FILES:
        names = {
            n.attr for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Attribute)
        }
        if {"gaussian", "laplace"} & names:
            assert part(path).startswith("measure.")
        calls = [
            n.func.id
            for n in ast.walk(ast.parse(path.read_text()))
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        ]
        if "Bounded" in calls:
            assert part(path) == "privacy.clipping"


def test_the_report_of_scores_needs_no_jax():
    assert not list(imports(ROOT / "evaluate" / "score.py"))
