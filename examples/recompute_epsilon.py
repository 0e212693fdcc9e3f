"""Recompute the ε of a bundle from its events, with nothing but dp-accounting.

python examples/recompute_epsilon.py release/
"""

import json
import math
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
    noise = event["noise_multiplier"]
    if event.get("mechanism") != "laplace":
        drawn = dp_accounting.GaussianDpEvent(noise)
        if event["sampling_probability"] < 1:
            drawn = dp_accounting.PoissonSampledDpEvent(event["sampling_probability"], drawn)
    elif privacy["budget"]["adjacency"] == "add-remove":
        drawn = dp_accounting.LaplaceDpEvent(noise)
    else:  # 2/b-DP, of which randomised response is the worst case
        drawn = dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(2 / noise)), 2)
    accountant.compose(drawn, event["draws"])

print(f"stated epsilon     {privacy['epsilon']:.6f}")
print(f"recomputed epsilon {accountant.get_epsilon(privacy['budget']['delta']):.6f}")
