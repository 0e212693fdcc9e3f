"""What a method is, and the registry of methods.

A method is a frozen dataclass of settings with a public `plan` and a `run`; `fit` is the same for
all. To add one, write a subclass of `Method` and name it in `BUILT_IN`, or, from another package,
under the entry point group "limbeck.methods".
"""

import abc
import dataclasses
import math
import types
from collections.abc import Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Union,
    dataclass_transform,
    final,
    get_args,
    get_origin,
    get_type_hints,
)

from limbeck import registry
from limbeck.errors import UserError
from limbeck.progress import Progress, silent

if TYPE_CHECKING:
    from limbeck.data.schema import HasSchema, Schema
    from limbeck.privacy.budget import Budget
    from limbeck.privacy.plan import Plan
    from limbeck.privacy.run import Run
    from limbeck.release.bundle import Bundle


def setting(
    *,
    default: Any,
    meaning: str,
    least: float | None = None,
    most: float = math.inf,
    below: float = math.inf,
) -> Any:
    """A field of a method: its default, and what it means in one sentence.

    Numbers must be positive and finite, unless `least` allows others; at most `most`; and less
    than `below`. The bounds also hold for each number of a tuple.
    """
    limits = {"meaning": meaning, "least": least, "most": most, "below": below}
    return dataclasses.field(default=default, metadata=limits)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting,))
class Method(abc.ABC):
    """A way to distil or to generate: settings, a public plan, and a run.

    A subclass becomes a frozen, keyword-only dataclass, whose fields are made by `setting`. It
    defines the class variables below, `plan`, `run` and, where settings must go together, `check`.

    Attributes
    ----------
    name : the name on the command line.
    command : the command that it belongs to.
    summary : what it does, in a phrase.
    guarantee : what is promised, and by which mechanism.
    paper : the reference, or "ours".
    docs : its page in the documentation.
    private : False for a baseline without privacy, which takes no budget.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    name: ClassVar[str]
    command: ClassVar[Literal["distill", "generate"]]
    summary: ClassVar[str]
    guarantee: ClassVar[str]
    paper: ClassVar[str]
    docs: ClassVar[str]
    private: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)

    @abc.abstractmethod
    def plan(self, schema: "Schema", budget: "Budget | None") -> "Plan":
        """What will be measured, from public information alone; no record is read."""

    @abc.abstractmethod
    def run(self, private: "HasSchema", run: "Run") -> "Bundle":
        """Measure through `run` what was planned, and make a bundle of it."""

    def check(self) -> None:  # noqa: B027
        """Raise `UserError` for settings that do not go together."""

    def __post_init__(self) -> None:
        check_settings(self)
        self.check()

    @final
    def fit(
        self,
        private: "HasSchema",
        budget: "Budget | None" = None,
        *,
        seed: int | None = None,
        progress: Progress = silent,
    ) -> "Bundle":
        """Run the method on private records within the budget.

        The plan is calibrated to the budget before a record is read. An interrupt is answered with
        what had been spent. With a `seed` the result is reproducible, hence not for release.
        """
        from limbeck.privacy.run import Run

        self.check_budget(budget)
        progress("calibrate", 0, 0)
        plan = self.plan(private.schema, budget)
        plan.needs.check()
        run = Run(plan, budget, seed=seed, progress=progress)
        try:
            return self.run(private, run)
        except KeyboardInterrupt:
            raise run.interrupted() from None

    @final
    def check_budget(self, budget: "Budget | None") -> None:
        """Refuse a private method without a budget, and a baseline with one."""
        if self.private and budget is None:
            raise UserError(f"{self.name} needs a budget, for example epsilon=1")
        if not self.private and budget is not None:
            raise UserError(f"{self.name} has no privacy, so it takes no budget")


def check_settings(method: Method) -> None:
    """Refuse values outside the declared bounds, or not among the listed words.

    Lists, as JSON has them, become tuples.
    """
    for field, hint in fields(type(method)).values():
        value = getattr(method, field.name)
        if isinstance(value, list):
            value = tuple(value)
            object.__setattr__(method, field.name, value)
        if isinstance(value, bool) or (value is None and type(None) in get_args(hint)):
            continue
        if isinstance(value, tuple):
            if not value:
                raise UserError(f"{field.name} must have at least one number")
            for number in value:
                _check_number(field, number)
        elif isinstance(value, int | float):
            _check_number(field, value)
        else:
            _check_word(field.name, hint, value)


def _check_number(field: "dataclasses.Field[Any]", value: float) -> None:
    limits = field.metadata
    least, most, below = limits["least"], limits["most"], limits["below"]
    if not math.isfinite(value) or (value <= 0 if least is None else value < least):
        bound = "a positive number" if least is None else f"a number of at least {least:g}"
        raise UserError(f"{field.name} must be {bound}, not {value:g}")
    if value > most:
        raise UserError(f"{field.name} must be at most {most:g}, not {value:g}")
    if value >= below:
        raise UserError(f"{field.name} must be below {below:g}, not {value:g}")


def _check_word(name: str, hint: Any, value: object) -> None:
    if hint is str and isinstance(value, str):
        return
    words = words_of(hint)
    if value not in words:
        kinds = [*words, *(["a number"] if {int, float} & set(alternatives(hint)) else [])]
        raise UserError(f"{name} must be one of {', '.join(kinds)}, not '{value}'")


def fields(method: type[Method]) -> dict[str, tuple["dataclasses.Field[Any]", Any]]:
    """The settings of a method by name, each with its resolved type."""
    hints = get_type_hints(method)
    listed = dataclasses.fields(method)
    return {field.name: (field, hints[field.name]) for field in listed}


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The members of a union; a type that is none is its only member."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def words_of(hint: Any) -> list[str]:
    """The words that a setting of this type may be."""
    return [w for part in alternatives(hint) if get_origin(part) is Literal for w in get_args(part)]


BUILT_IN: Mapping[str, str] = {
    "readout": "limbeck.distill.readout:Readout",
    "dp-kip": "limbeck.distill.dp_kip:DPKIP",
    "kip": "limbeck.distill.kip:KIP",
    "dp-ntk": "limbeck.generate.moment_matching:DPNTK",
    "dp-merf": "limbeck.generate.moment_matching:DPMERF",
    "dp-hp": "limbeck.generate.moment_matching:DPHP",
    "g-pate": "limbeck.generate.g_pate:GPATE",
    "dp-gan": "limbeck.generate.gan:DPGAN",
    "gan": "limbeck.generate.gan:GAN",
}


def method_names() -> list[str]:
    """The names of all methods, ours first."""
    return list(registry.registered("methods", BUILT_IN))


def find(name: str) -> type[Method]:
    """The method of that name."""
    method = registry.load("methods", BUILT_IN, name)
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise UserError(f"method '{name}' is not a subclass of limbeck.Method")
    return method
