"""The command starts at once, and says what there is."""

import subprocess
import sys

import pytest
from command_line import assert_refused

HEAVY = {"jax", "pandas", "matplotlib", "sklearn", "scipy", "pyarrow", "jinja2"}

HELP = """
import sys
from limbeck.cli.main import main
sys.argv = ["limbeck", *sys.argv[1:]]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments",
    [["--version"], *([*name, "--help"] for name in ([], ["distill"], ["plan"], ["evaluate"]))],
)
def test_help_loads_nothing_heavy(arguments):
    ended = subprocess.run([sys.executable, "-c", HELP, *arguments], capture_output=True, text=True)
    assert ended.returncode == 0
    assert "limbeck" in ended.stdout
    loaded = set(ended.stderr.split())
    assert "typer" in loaded
    assert not HEAVY & loaded


def test_methods_as_json_say_which_are_private(limbeck):
    methods = {row["method"]: row for row in limbeck("methods", "--json").json["methods"]}
    assert methods["dp-kip"]["private"]
    assert not methods["kip"]["private"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["distil"], "'distil'"),
        (["distill", "digits", "-o", "out", "--epsilom", "1"], "--epsilon"),
        (["distill", "digits", "-o", "out", "--epsilon", "little"], "--epsilon"),
        (["distill", "digits", "-o", "out", "--epsilon", "1", "--seed", "-1"], "--seed"),
    ],
)
def test_a_mistyped_command_is_one_line_too(limbeck, arguments, word):
    assert_refused(limbeck(*arguments), word)


def test_no_command_shows_the_help(limbeck):
    ran = limbeck()
    assert ran.code == 2
    assert "evaluate" in ran.out + ran.err
