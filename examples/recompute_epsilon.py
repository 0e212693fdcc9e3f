"""Recompute the ε of a bundle from its events, with nothing but dp-accounting.

python examples/recompute_epsilon.py release/
"""

import json
import sys
from pathlib import Path

import dp_accounting
from dp_accounting import pld

privacy = json.loads((Path(sys.argv[1]) / "release.json").read_text())["privacy"]
relation = {
    "add-remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace": dp_accounting.NeighboringRelation.REPLACE_ONE,
}[privacy["budget"]["adjacency"]]

accountant = pld.PLDAccountant(relation)
for event in privacy["events"]:
    gaussian = dp_accounting.GaussianDpEvent(event["noise_multiplier"])
    if event["sampling_probability"] < 1:
        gaussian = dp_accounting.PoissonSampledDpEvent(event["sampling_probability"], gaussian)
    accountant.compose(gaussian, event["draws"])

print(f"stated epsilon     {privacy['epsilon']:.6f}")
print(f"recomputed epsilon {accountant.get_epsilon(privacy['budget']['delta']):.6f}")
