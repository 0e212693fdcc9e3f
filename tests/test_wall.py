"""The privacy wall: who may import whom, and who may look at private rows."""

import ast
from pathlib import Path

import pytest

import limbeck

ROOT = Path(limbeck.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# For each part of the package, the parts of it that it may import. Order of most to least exact.
PLAIN = {"errors", "data.schema", "registry"}
RULES = {
    "cli": None,  # anything, and nothing imports it
    "reproduce": None,  # runs whole methods as a user would, and the command line alone imports it
    "batching": set(),
    "method": PLAIN | {"privacy", "progress", "release.bundle"},
    "privacy": PLAIN | {"privacy", "progress"},
    "features": PLAIN | {"features", "batching"},
    "models": PLAIN | {"models", "features", "progress"},
    "data": PLAIN | {"data"},
    "measure": PLAIN
    | {"measure", "data.private", "features", "models", "privacy", "batching", "progress"},
    "distill": PLAIN
    | {"distill", "features", "models", "measure", "privacy", "release.bundle", "method"}
    | {"progress"},
    "generate": PLAIN
    | {"generate", "features", "models", "measure", "privacy", "release.bundle", "method"}
    | {"progress"},
    "release": PLAIN
    | {"release", "data.arrays", "data.column", "data.encode", "data.parse"}
    | {"features", "models", "privacy"},
    "evaluate": PLAIN | {"evaluate", "data", "features", "models", "release", "progress"},
    "registry": {"errors"},
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


def attributes(path):
    """The names of all attributes that a file reads."""
    return {n.attr for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Attribute)}


def test_records_are_read_off_rows_within_measure_only():
    """Methods hold `Rows`, derive others from it and sum over it; they cannot read it."""
    for path in FILES:
        if {"parts", "total", "votes"} & attributes(path) and part(path).startswith(
            ("distill", "generate", "method", "models")
        ):
            names = attributes(path) & {"parts", "votes"}
            assert not names, f"{path.name} reads {names}"


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
        "cli.run",
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


def test_noise_is_added_in_one_place():
    """`Run.sum` adds the noise, to a `Bounded` that it makes of the sum."""
    for path in FILES:
        if {"gaussian", "laplace"} & attributes(path):
            assert part(path) == "privacy.run"
        calls = [
            n.func.id
            for n in ast.walk(ast.parse(path.read_text()))
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        ]
        if "Bounded" in calls:
            assert part(path) == "privacy.run"
        if {"rounded_gaussian", "rounded_laplace"} & {name for _, name in imports(path)}:
            assert part(path) == "privacy.noise"


def test_the_report_of_scores_needs_no_jax():
    assert not list(imports(ROOT / "evaluate" / "score.py"))
