"""The words of a bundle: its privacy statement and its data card."""

import math
from typing import TYPE_CHECKING

from limbeck.privacy.accounting import group_epsilon
from limbeck.privacy.budget import Adjacency

if TYPE_CHECKING:
    from limbeck.release.bundle import Bundle, Distilled, Generated

SEEDED = (
    "SEEDED: NOT FOR RELEASE. The noise is predictable from the seed, so no privacy is promised."
)
MOST_TILES = 10  # images of a class in the preview

_NEIGHBOURS = {
    Adjacency.ADD_REMOVE: "the addition or removal of any one record",
    Adjacency.REPLACE: "the replacement of any one record by any other",
}


def statement(bundle: "Bundle") -> str:
    """Warnings first, then the guarantee; a seeded bundle has none."""
    seeded = bundle.seeded and bundle.budget is not None
    return "\n".join(warnings(bundle) if seeded else [*warnings(bundle), promise(bundle)])


def warnings(bundle: "Bundle") -> list[str]:
    """The limitations of the guarantee; empty for a bundle as it should be."""
    lines = []
    if bundle.schema.drafted:
        lines.append(
            "WARNING: the schema (bounds, categories, classes) was drafted from the private rows; "
            "what it reveals is not covered by the guarantee below."
        )
    if bundle.seeded:
        lines.insert(0, SEEDED)
    rows = bundle.schema.public_rows or bundle.noisy_rows
    if bundle.budget and rows is not None and bundle.budget.delta * max(rows, 1) > 1:
        lines.append(
            f"WARNING: δ = {bundle.budget.delta:g} is more than one over the "
            f"{'' if bundle.schema.public_rows else 'about '}{rows:.0f} rows, so the "
            "guarantee would allow a whole record to be published."
        )
    return lines


def promise(bundle: "Bundle") -> str:
    """The guarantee in words that can be quoted, or that there is none."""
    if bundle.budget is None:
        return (
            f"NOT PRIVATE. These {bundle.noun} were made without noise. They carry no privacy "
            "guarantee and must not be published."
        )
    budget = bundle.budget
    return (
        f"The {len(bundle.points)} {bundle.noun} are (ε = {rounded_up(bundle.epsilon)}, "
        f"δ = {rounded_up(budget.delta)})-differentially private with respect to "
        f"{_NEIGHBOURS[budget.adjacency]} of the private data (budget: "
        f"ε = {budget.epsilon:g}). The whole release, with all its files, {bundle.covered}."
        f" Assumed public: {_assumed(bundle)} A record is any that fits the schema, and one "
        f"person is assumed to have one record: {_group(bundle)}"
    )


GROUP = 10


def _group(bundle: "Bundle") -> str:
    """What holds for several records of one person, at the same δ."""
    assert bundle.budget is not None
    delta, adjacency = bundle.budget.delta, bundle.budget.adjacency
    epsilon = group_epsilon(bundle.events, delta, adjacency, GROUP)
    if epsilon is None:
        return "k records of one person may have more than k times this ε at the same δ."
    return f"{GROUP} records of one person have ε = {rounded_up(epsilon)} at the same δ."


def _assumed(bundle: "Bundle") -> str:
    assert bundle.budget is not None
    if bundle.schema.public_rows or bundle.budget.adjacency is Adjacency.REPLACE:
        return "the schema, the settings of the method and the number of rows."
    return "the schema and the settings of the method. The number of rows is protected too."


def rounded_up(number: float) -> str:
    """Five digits, never rounded down."""
    digits = 4 - math.floor(math.log10(number))
    return f"{math.ceil(number * 10**digits * (1 - 1e-12)) / 10**digits:g}"


def multiplier(noise: float | None, mechanism: str) -> str:
    """The noise of an event in words; Gaussian unless it says otherwise."""
    if noise is None:
        return "none"
    return f"{noise:.4f}" if mechanism == "gaussian" else f"{noise:.4f} ({mechanism.title()})"


def readme(bundle: "Bundle") -> str:
    """A data card; the privacy statement first."""
    schema = bundle.schema
    record = (
        "{} × {} pixels, {} channel(s)".format(*schema.image_shape)
        if schema.is_image
        else f"{len(schema.columns)} columns: {', '.join(c.name for c in schema.columns)}"
    )
    events = "\n".join(
        f"| {e.purpose} | {e.draws} | {e.sampling_probability:g} | "
        f"{multiplier(e.noise_multiplier, e.mechanism)} |"
        for e in bundle.events
    )
    return README.format(
        title=bundle.title,
        statement=statement(bundle),
        method=bundle.method,
        points=len(bundle.points),
        noun=bundle.noun,
        nobody=", not records of anybody" if bundle.is_private else "",
        record=record,
        classes=", ".join(map(str, schema.classes)),
        label=schema.label,
        events=events,
        about=bundle.about(),
    )


def about_distilled(bundle: "Distilled") -> str:
    """How distilled points are used, and the files."""
    return DISTILLED.format(
        kernel=bundle.kernel["name"],
        look=", and their look or statistics say nothing about single records"
        if bundle.is_private
        else "",
        table="" if bundle.schema.is_image else DISTILLED_TABLE,
    )


def about_generated(bundle: "Generated") -> str:
    """What generated records are good for, and the files."""
    is_image = bundle.schema.is_image
    return GENERATED.format(
        noisy="noisy " if bundle.budget else "",
        free=", which costs no privacy" if bundle.is_private else "",
        x="images, whole numbers 0 to 255" if is_image else "encoded rows",
        more="more.npz" if is_image else "more.csv",
        table="" if is_image else GENERATED_TABLE,
        picture=f"the first {MOST_TILES} of each class" if is_image else "the columns",
    )


README = """# {title}

## Privacy

{statement}

| measurement | draws of noise | sampling probability | noise multiplier |
|---|---|---|---|
{events}

## What it is

{points} {noun} made by `{method}`{nobody}. A record is {record}; the label
`{label}` has the classes {classes}.

{about}- `release.json`: method, settings, budget, all events of the ledger, schema, versions.
"""

DISTILLED = """\
The points are meant to be used together with their kernel (`{kernel}`): kernel ridge regression
on them, with the weights of `y_soft` as labels, classifies new records. They are not a sample of
the data. A network, a forest or any other model trained from scratch on so few points does much
worse{look}.

    import limbeck
    bundle = limbeck.load(".")
    bundle.x, bundle.y, bundle.to_frame()
    bundle.classifier().predict(new_rows)

## Files

- `data.npz`: `x` (images in units of pixels, 0 to 255 and beyond; tables as encoded rows), `y`,
  and `y_soft`, one weight per class.
{table}- `preview.png`: the points as an image.
"""

DISTILLED_TABLE = """\
- `data.parquet`: the points in the schema's own units and category names, the label, and one
  weight a class. Rounded to the schema, so a reader sees valid rows; the exact points that the
  classifier uses are in `data.npz`.
"""

GENERATED = """\
They are a sample of a model: a generator, which was learned from {noisy}measurements of the private
data. They are good for training models, by `x` and `y` like any other records. They are not for
counting people: how often something occurs among them is what the model says, what is rare may be
missing, and what never occurs may be there. Test on real records what was trained on these.

    import limbeck
    bundle = limbeck.load(".")
    bundle.x, bundle.y, bundle.to_frame()

The generator draws as many more as one likes{free}: `bundle.sample(1000)`, or

    limbeck sample . -n 1000 -o {more}

## Files

- `data.npz`: `x` ({x}) and `y`.
{table}- `generator.npz`: the generator as plain data: `config`, in JSON, and arrays of weights.
- `preview.png`: {picture}, as an image.
"""

GENERATED_TABLE = """\
- `data.parquet`: the records in the schema's own units and category names, and the label.
"""
