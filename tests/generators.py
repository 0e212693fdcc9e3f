"""Generated bundles without a network: the generator is a mean and a spread."""

import dataclasses
import types
from typing import Any, ClassVar

import numpy as np

from limbeck.data.schema import Schema
from limbeck.models.state import GeneratorState
from limbeck.privacy.budget import Budget
from limbeck.privacy.ledger import Entry, Ledger
from limbeck.privacy.noise import SeededEntropy, standard_normal
from limbeck.release.bundle import Generated


@dataclasses.dataclass(frozen=True)
class Method:
    """A configuration, as methods have it."""

    name: ClassVar[str] = "dp-ntk"
    width: int = 800


def saved(schema: Schema) -> GeneratorState:
    """A generator with awkward names, as the leaves of a tree have them."""
    draw = np.random.default_rng(1)
    config = {"network": "gaussian", "spread": 0.2, "layers": [schema.width]}
    mean = draw.uniform(0.2, 0.8, schema.width).astype(np.float32)
    return GeneratorState(config, {"[0].mean": mean, "file": np.arange(3), "steps": np.array(7)})


def draw(schema, generator, n, entropy):
    """In place of `limbeck.models.sampling.draw`."""
    labels = np.frombuffer(entropy.bytes(n), np.uint8) % len(schema.classes)
    noise = standard_normal(entropy, (n, schema.width))
    x = generator.arrays["[0].mean"] + generator.config["spread"] * noise
    return np.clip(x, 0, 1).astype(np.float32), labels.astype(np.int64)


SAMPLING = types.SimpleNamespace(draw=draw)


def ledger() -> Ledger:
    """One draw, which spends less than ε = 1."""
    spent = Ledger([Entry(purpose="moments", draws=1, noise_multiplier=4.0)])
    spent.charge("moments")
    return spent


def exact() -> Ledger:
    """One look without noise."""
    spent = Ledger([Entry(purpose="moments", draws=1, noise_multiplier=None)])
    spent.charge("moments")
    return spent


def generated(schema: Schema, records: int, **changed: Any) -> Generated:
    """A private bundle of records."""
    generator = saved(schema)
    x, labels = draw(schema, generator, records, SeededEntropy(0))
    given: dict[str, Any] = {
        "method": Method(),
        "schema": schema,
        "x": x,
        "labels": labels,
        "generator": generator,
        "budget": Budget(epsilon=1.0),
        "ledger": ledger(),
        "seeded": False,
    }
    return Generated.of(**{**given, **changed})


def generated_without_noise(schema: Schema, records: int) -> Generated:
    return generated(schema, records, budget=None, ledger=exact())
