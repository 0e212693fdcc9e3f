"""Kernels by name: what a bundle records of one is enough to make it again."""

import json

import pytest

from limbeck.data.named import schema_of
from limbeck.data.schema import ImageShape, Schema
from limbeck.errors import UserError
from limbeck.features import kernels
from limbeck.features.inputs import inputs_of

COLOUR = Schema(classes=(0, 1), image=ImageShape(32, 32, 3))


PICTURES = [schema_of("digits"), schema_of("mnist"), COLOUR]
CASES = [
    (name, schema)
    for name in kernels.KERNELS
    for schema in ([schema_of("adult")] if name == "bins" else PICTURES)
]


@pytest.mark.parametrize(("name", "schema"), CASES)
def test_a_kernel_survives_json(name, schema):
    chosen = kernels.for_schema(name, schema, inputs_of(schema))
    again = kernels.kernel(**json.loads(json.dumps(kernels.to_json(name, chosen))))
    assert again == chosen
    assert hash(again) == hash(chosen)


@pytest.mark.parametrize(
    "name", [name for name in kernels.KERNELS if name not in ("fc-ntk", "bins")]
)
def test_features_of_pictures_are_for_pictures(name):
    table = schema_of("adult")
    with pytest.raises(UserError, match=f"features={name} is for images"):
        kernels.for_schema(name, table, inputs_of(table))


def test_networks_are_chosen_by_the_picture():
    nets = {
        shape: kernels.for_schema("e-ntk", schema, inputs_of(schema)).net
        for shape, schema in {
            "8": schema_of("digits"),
            "28": schema_of("mnist"),
            "c": COLOUR,
        }.items()
    }
    assert nets == {"8": "fully-connected", "28": "lenet", "c": "resnet18"}
