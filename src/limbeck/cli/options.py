"""The options that `distill`, `generate` and `plan` share: one table, of which each has a part."""

import dataclasses
import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from limbeck.cli.console import AsJson
from limbeck.cli.settings import complete_method, complete_setting, configured
from limbeck.errors import UserError
from limbeck.method import Method, load
from limbeck.privacy.budget import Adjacency, Budget

METHOD, BUDGET = "Method", "Budget"
# Options that are settings of methods, frequent enough to have a name of their own.
COMMON = ("records", "per_class", "features", "steps", "label_with")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked for. Each field is an argument or an option of the command line."""

    source: Annotated[
        str, typer.Argument(help="A named set (digits, mnist, adult, ...), a file or a folder.")
    ]
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to which the bundle is written.")
    ] = Path("release")
    schema: Annotated[
        Path | None, typer.Option(help="The public description (TOML) of a file or folder.")
    ] = None
    method: Annotated[
        str,
        typer.Option(
            help="The method; `limbeck methods` lists them.",
            autocompletion=complete_method,
            rich_help_panel=METHOD,
        ),
    ]
    records: Annotated[
        int | None,
        typer.Option(
            "-n", "--records", help="Number of records to generate.", rich_help_panel=METHOD
        ),
    ] = None
    per_class: Annotated[
        int | None, typer.Option(help="Number of points for each class.", rich_help_panel=METHOD)
    ] = None
    features: Annotated[
        str | None,
        typer.Option(
            help="Kernel or feature map, such as fc-ntk, bins (tables) or scatter (images).",
            rich_help_panel=METHOD,
        ),
    ] = None
    steps: Annotated[
        int | None, typer.Option(help="Number of training steps.", rich_help_panel=METHOD)
    ] = None
    label_with: Annotated[
        str | None,
        typer.Option(
            help="Labels of generated images: class, the class that was asked for, or readout, the "
            "class that a private classifier gives them.",
            rich_help_panel=METHOD,
        ),
    ] = None
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other setting, such as --set clip=0.5; may be repeated. `limbeck methods "
            "NAME` lists the settings of a method.",
            autocompletion=complete_setting,
            rich_help_panel=METHOD,
        ),
    ] = dataclasses.field(default_factory=list)
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="The ε of the guarantee, needed for all private methods: 1 is strong, 10 is weak.",
            rich_help_panel=BUDGET,
        ),
    ] = None
    delta: Annotated[
        float,
        typer.Option(
            help="The δ of the guarantee; choose it well below one over the number of records.",
            rich_help_panel=BUDGET,
        ),
    ] = 1e-5
    adjacency: Annotated[
        Adjacency,
        typer.Option(
            help="Whether a record is added or removed, or replaced by another.",
            rich_help_panel=BUDGET,
        ),
    ] = Adjacency.ADD_REMOVE
    not_private: Annotated[
        bool,
        typer.Option(
            "--not-private", help="Accept a method without privacy.", rich_help_panel=BUDGET
        ),
    ] = False
    accept_drafted_schema: Annotated[
        bool,
        typer.Option(
            "--accept-drafted-schema",
            help="Use a schema that was drafted from the private rows; the statement says so.",
            rich_help_panel=BUDGET,
        ),
    ] = False
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Make the run reproducible; its bundle is not for release."),
    ] = None
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a bundle that is there.")
    ] = False
    as_json: AsJson = False

    def configured(self, method: type[Method]) -> Method:
        """The method with the settings that were given."""
        common = {name: getattr(self, name) for name in COMMON}
        given = {name: value for name, value in common.items() if value is not None}
        return configured(method, given, self.settings)

    def budget(self, method: type[Method]) -> Budget | None:
        """The budget of a private method; None for a method without privacy."""
        if not method.private:
            if self.epsilon is not None:
                raise UserError(f"{method.name} gives no privacy, so leave out epsilon")
            return None
        if self.epsilon is None:
            raise UserError("say how much privacy may be spent: --epsilon 1, for example")
        return Budget(epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency)


def command(
    place: str, *, without: Collection[str] = (), method: str | None = None
) -> Callable[..., None]:
    """A function for typer, whose parameters are the fields of `Request`.

    It passes the request to the function at `place`, "module:name", which is imported only then.
    Fields in `without` are left at their defaults. `method` is the default method.
    """

    def run(**given: Any) -> None:
        load(place)(Request(**given))

    hints = get_type_hints(Request, include_extras=True)
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=method if field.name == "method" and method else _default(field),
                annotation=hints[field.name],
            )
            for field in dataclasses.fields(Request)
            if field.name not in without
        ]
    )
    return run


def _default(field: "dataclasses.Field[Any]") -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
