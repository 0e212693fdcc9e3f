"""What is rounded alike wherever a record stands is so on processors with shorter vectors, too."""

import os
import platform
import subprocess
import sys

import pytest

# Every record at every place of a piece, and in two calls.
SCRIPT = """
import numpy as np
from limbeck.features.base import features_of
from limbeck.features.fourier import Fourier
from limbeck.features.hermite import Hermite
from limbeck.features.scattering import Scattering
from limbeck.features.smooth import SmoothFourier
from limbeck.features.whitened import WhitenedScattering

for width, phi in (
    (432, WhitenedScattering(shape=(12, 12, 3), pictures=20)),
    (507, WhitenedScattering(shape=(13, 13, 3), components=501, pictures=20)),
    (117, Scattering(shape=(13, 9, 1))),
    (17, Fourier(dimension=17, count=101, length_scale=1.5)),
    (13, Hermite(dimension=13)),
    (351, SmoothFourier(shape=(13, 9, 3), count=101)),
):
    x = np.random.default_rng(0).normal(size=(phi.batch + 3, width)).astype(np.float32)
    whole = features_of(phi, x)
    for places in range(1, min(phi.batch, 12)):
        moved = features_of(phi, np.roll(x, places, axis=0))
        assert np.array_equal(np.roll(whole, places, axis=0), moved), (phi, places)
print("alike")
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="they are of x86")
@pytest.mark.parametrize("vectors", ["AVX2", "SSE4_2"])
def test_a_record_is_rounded_alike_wherever_it_stands(vectors):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_max_isa={vectors}"
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout == "alike\n"
