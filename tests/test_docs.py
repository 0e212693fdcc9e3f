"""Every command and every piece of Python in the README and the docs is run.

A page is run from top to bottom in an empty folder with the examples in it. `$` lines of `console`
blocks go to a shell, `python` blocks to Python. A block under `<!-- slow -->` runs with `-m slow`,
and needs the data sets that it names in LIMBECK_DATA.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(<!-- slow -->\n+)?```(console|python)\n(.*?)```", re.DOTALL)


def commands(page, slow):
    """(language, text) of the blocks to run."""
    for mark, language, text in BLOCK.findall(page.read_text()):
        if bool(mark) != slow:
            continue
        if language == "python":
            yield language, text
        else:
            for line in text.splitlines():
                if line.startswith("$ "):
                    yield language, line[2:]


def run(language, text, folder):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    arguments = [sys.executable, "-c", text] if language == "python" else ["sh", "-ec", text]
    return subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=900
    )


def run_page(page, folder, slow=False):
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    for language, text in commands(page, slow):
        if text.startswith("make "):  # the recipes are run by whoever runs these tests
            text = text.replace("make ", "make --dry-run ")
        done = run(language, text, folder)
        assert done.returncode == 0, f"{page.name}: {text}\n{done.stdout}{done.stderr}"


def pages(slow):
    return [page for page in PAGES if list(commands(page, slow))]


@pytest.mark.parametrize("page", pages(slow=False), ids=lambda page: page.name)
def test_what_the_page_says_can_be_done(page, tmp_path):
    run_page(page, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", pages(slow=True), ids=lambda page: page.name)
def test_what_the_page_says_of_large_sets_can_be_done(page, tmp_path):
    if "LIMBECK_DATA" not in os.environ:
        pytest.skip("the large sets are not in LIMBECK_DATA")
    run_page(page, tmp_path, slow=True)


def test_the_readme_has_commands():
    assert len(list(commands(ROOT / "README.md", slow=False))) >= 4
