"""Seconds per million numbers of rounded noise, beside float noise and OpenDP's discrete Gaussian.

    python benchmarks/noise.py --opendp-python ENVIRONMENT/bin/python

OpenDP has an environment of its own, `pip install opendp`; without the option its column is left
out. Its noise is that of `make_gaussian` on vectors of integers, whose time includes a Python list
on either side (about 1% of it). All three use the operating system's entropy. The sides take
turns, each on one core, and the median of the turns counts. OpenDP draws 100 000 numbers in a turn,
the others a million.
"""

import argparse
import json
import statistics
import subprocess
import time
from pathlib import Path

from limbeck.privacy import rounded
from limbeck.privacy.noise import SystemEntropy, standard_normal

EXPONENTS = [0, 16, 30, 40]
COUNT, OPENDP_COUNT, TURNS = 1_000_000, 100_000, 5
RESULTS = Path(__file__).parent / "results" / "noise.json"

OPENDP = """
import json, sys, time
import opendp.prelude as dp
dp.enable_features("contrib")
for line in sys.stdin:
    request = json.loads(line)
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    noise = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=request["deviation"])
    zeros = [0] * request["count"]
    start = time.perf_counter()
    noise(zeros)
    print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)
"""


class Peer:
    """The process that has OpenDP."""

    def __init__(self, python):
        self.process = subprocess.Popen(
            [python, "-c", OPENDP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def per_million(self, deviation):
        request = {"deviation": deviation, "count": OPENDP_COUNT}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        seconds = json.loads(self.process.stdout.readline())["seconds"]
        return seconds * 1e6 / OPENDP_COUNT


def per_million(draw):
    start = time.perf_counter()
    draw(SystemEntropy(), (COUNT,))
    return (time.perf_counter() - start) * 1e6 / COUNT


def exact_share(sampler, scale):
    """Share of draws that take the exact path."""
    exact, calls = rounded._exact, []

    def counted(*arguments, **named):
        calls.append(1)
        return exact(*arguments, **named)

    rounded._exact = counted
    try:
        sampler(SystemEntropy(), (COUNT,), scale)
    finally:
        rounded._exact = exact
    return len(calls) / COUNT


def compare(exponent, peer):
    scale = 2.0**exponent
    sides = {
        "rounded_gaussian": lambda: per_million(
            lambda source, shape: rounded.rounded_gaussian(source, shape, scale)
        ),
        "rounded_laplace": lambda: per_million(
            lambda source, shape: rounded.rounded_laplace(source, shape, scale)
        ),
        "float_gaussian": lambda: per_million(
            lambda source, shape: scale * standard_normal(source, shape)
        ),
    }
    if peer:
        sides["opendp_gaussian"] = lambda: peer.per_million(scale)
    times = {name: [] for name in sides}
    for _ in range(TURNS):
        for name, side in sides.items():
            times[name].append(side())
    medians = {name: statistics.median(some) for name, some in times.items()}
    ours = medians["rounded_gaussian"]
    row = {"deviation": f"2^{exponent}"}
    row |= {f"{name}_seconds": round(seconds, 4) for name, seconds in medians.items()}
    row["ratio_to_float"] = round(ours / medians["float_gaussian"], 2)
    if peer:
        row["opendp_over_ours"] = round(medians["opendp_gaussian"] / ours, 1)
    row["exact_path_gaussian"] = exact_share(rounded.rounded_gaussian, scale)
    row["exact_path_laplace"] = exact_share(rounded.rounded_laplace, scale)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--opendp-python", help="python of an environment that has opendp")
    python = parser.parse_args().opendp_python
    if not python:
        print("OpenDP is left out; --opendp-python names an interpreter that has it.")
    peer = Peer(python) if python else None
    rows = [compare(exponent, peer) for exponent in EXPONENTS]
    print(*(f"{name:>24}" for name in rows[0]), sep="")
    for row in rows:
        print(*(f"{value:>24}" for value in row.values()), sep="")
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
