"""The other side of `scattering.py`: Kymatio's PyTorch front end, in an environment of its own.

Reads one JSON request a line, {"x": file, "side": 28, "batch": 32, "vjp": false}, runs it once and
answers with {"seconds": ...}; with "out" the coefficients are written there as well.
"""

import json
import sys
import time

import numpy as np
import torch
from kymatio.torch import Scattering2D

TRANSFORMS = {}


def transform(side):
    if side not in TRANSFORMS:
        TRANSFORMS[side] = Scattering2D(J=2, shape=(side, side), L=8)
    return TRANSFORMS[side]


def run(request):
    scattering, x = transform(request["side"]), torch.from_numpy(np.load(request["x"]))
    x = x.contiguous()
    start, out = time.perf_counter(), []
    for piece in torch.split(x, request["batch"]):
        if request["vjp"]:
            piece = piece.clone().requires_grad_()
            found = scattering(piece)
            found.backward(torch.ones_like(found))
        else:
            with torch.no_grad():
                found = scattering(piece)
        out.append(found.detach())
    seconds = time.perf_counter() - start
    if "out" in request:
        np.save(request["out"], torch.cat(out).numpy())
    return {"seconds": seconds}


for line in sys.stdin:
    print(json.dumps(run(json.loads(line))), flush=True)
