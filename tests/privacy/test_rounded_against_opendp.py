"""Rounded Gaussian noise against an independent exact sampler, OpenDP's discrete Gaussian.

The two laws are not the same: the discrete Gaussian weighs n by exp(−n²/2σ²), the rounded one by
the integral of the density over [n − 1/2, n + 1/2], which has variance σ² + 1/12. Their total
variation distance is about 0.02/σ². At σ = 20 it is 5e-5, far below what 200 000 draws can show.
"""

import json
import subprocess
import venv

import numpy as np
import pytest
from scipy import stats

from limbeck.privacy.noise import SystemEntropy
from limbeck.privacy.rounded import rounded_gaussian

DEVIATION, COUNT = 20.0, 200_000

DRAW = """
import json, sys
import opendp.prelude as dp
dp.enable_features("contrib")
deviation, count = json.loads(sys.argv[1])
domain = dp.vector_domain(dp.atom_domain(T="i64"))
noise = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=deviation)
print(json.dumps(noise([0] * count)))
"""


def probabilities():
    """The rounded and the discrete Gaussian on |n| ≤ 400."""
    n = np.arange(-400, 401)
    ends = stats.norm.sf((np.arange(402) - 0.5) / DEVIATION)
    upper = ends[:-1] - ends[1:]
    discrete = np.exp(-(n**2) / (2 * DEVIATION**2))
    return np.concatenate([upper[:0:-1], upper]), discrete / discrete.sum()


def test_the_two_laws_are_closer_than_the_draws_can_tell():
    rounded, discrete = probabilities()
    assert 4e-5 < 0.5 * np.abs(rounded - discrete).sum() < 6e-5


@pytest.mark.slow
def test_draws_are_distributed_as_those_of_opendp(tmp_path):
    """Two-sample chi-square, a bin for each integer; fails by chance 1 time in a million."""
    venv.create(tmp_path / "opendp", with_pip=True)
    python = tmp_path / "opendp" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "opendp"], check=True)
    answer = subprocess.run(
        [python, "-c", DRAW, json.dumps([DEVIATION, COUNT])],
        check=True,
        capture_output=True,
        text=True,
    )
    theirs = np.array(json.loads(answer.stdout), np.int64)
    ours = rounded_gaussian(SystemEntropy(), (COUNT,), DEVIATION)
    edge = 60
    table = [np.bincount(np.clip(x, -edge, edge) + edge, minlength=121) for x in (ours, theirs)]
    assert stats.chi2_contingency(table).pvalue > 1e-6
