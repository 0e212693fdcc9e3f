"""`render` makes one HTML file of a bundle, which loads nothing; `write` puts it in its place."""

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limbeck.errors import UserError
from limbeck.release import card
from limbeck.release.bundle import Bundle, Generated, load
from limbeck.release.files import in_a_bundle, write_text
from limbeck.release.report import budget, columns, explanations, images, snippets
from limbeck.release.report.scores import Scores

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

MARK = b'content="limbeck report"'  # near its beginning, by which a report is recognised


def render(bundle: Bundle, scores: Scores | None = None) -> str:
    """The page: self-contained, and the same for the same bundle.

    Everything in it comes from the bundle, but for `scores`, which are private. Names and values
    are escaped by the templates, and the page forbids the browser to run or load anything but its
    own style and script, which are named by their hashes.
    """
    environment = _environment()
    style, script = (_inline(environment, name) for name in ("report.css", "report.js"))
    page = environment.get_template("report.html.j2").render(
        style=style,
        script=script,
        hashes={"style": _hash(style), "script": _hash(script)},
        bundle=bundle,
        title=bundle.title,
        noun=bundle.noun,
        generated=isinstance(bundle, Generated),
        schema=bundle.schema,
        scores=scores,
        warnings=explanations.warnings(bundle, scores is not None),
        record=explanations.record(bundle.schema),
        parts=budget.parts(bundle.events),
        approximate=budget.is_approximate(bundle.events),
        lines=snippets.lines(bundle),
        **(_promised(bundle) if bundle.is_private else {}),
        **(_images(bundle) if bundle.schema.is_image else _table(bundle)),
    )
    return f"{page}\n"


def write(
    folder: str | Path, output: str | Path | None = None, scores: Scores | None = None
) -> Path:
    """Write the report of the bundle in a folder; whole or not at all.

    It becomes report.html in the bundle. With scores, which are private, it never goes into a
    bundle, because that is a folder to be published.
    """
    folder = Path(folder)
    bundle = load(folder)
    if output is None:
        name = f"{folder.resolve().name}-report-private.html"
        output = folder / "report.html" if scores is None else Path(name)
    output = Path(output)
    _check(output, scores is not None)
    page = render(bundle, scores)
    write_text(output, page)
    return output


def _check(output: Path, private: bool) -> None:
    """Refuse to publish scores, and to write over anything but a report."""
    try:
        if private and in_a_bundle(output):
            raise UserError(
                f"{output} lies in a bundle, which is to be published, and scores are private; "
                "choose a file outside of it with -o"
            )
        with output.open("rb") as there:
            if MARK not in there.read(1000):
                raise UserError(f"{output} exists and is not a report; choose another name")
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{output} cannot be written ({error.strerror})") from None


def _promised(bundle: Bundle) -> dict[str, Any]:
    """What only a private bundle has."""
    assert bundle.budget is not None
    return {
        "statement": bundle.statement().splitlines(),
        "meaning": explanations.meaning(bundle),
        "assumed": explanations.assumed_public(bundle),
        "epsilon": card.rounded_up(bundle.epsilon),
        "delta": card.rounded_up(bundle.budget.delta),
    }


def _images(bundle: Bundle) -> dict[str, Any]:
    rows = images.rows(bundle)
    return {"rows": rows, "shown": sum(len(row.tiles) for row in rows)}


def _table(bundle: Bundle) -> dict[str, Any]:
    return {
        "cells": columns.cells(bundle),
        "histograms": columns.histograms(bundle),
        "hidden": columns.hidden(bundle.schema),
    }


def _environment() -> "Environment":
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("limbeck.release.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _inline(environment: "Environment", name: str) -> "Markup":
    """Our own style or script, as it is."""
    from markupsafe import Markup

    return Markup(environment.get_template(name).render())


def _hash(text: str) -> str:
    """As a content security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
