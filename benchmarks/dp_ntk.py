"""DP-NTK's embedding and training step in closed form, against the gradient of each record alone.

    python benchmarks/dp_ntk.py [--width 800] [--records 200]

The plain definition is vmap(grad) of the sum of the logits, as in Algorithm 1 of the paper, and the
loop is the same one record after another, compiled. All in float32, on made-up pictures of 28 × 28.
Prints milliseconds a record and ratios, and writes benchmarks/results/dp_ntk.json.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from limbeck.features.base import unit_norm
from limbeck.features.dense_ntk import DenseNTK
from limbeck.generate.training import scale

RESULTS = Path(__file__).parent / "results" / "dp_ntk.json"
CLASSES, PIXELS = 10, 784


def gradient_of(ntk, record):
    """φ by automatic differentiation: all parameters, those of the last layer for each logit."""

    def logits(layers):
        x = record
        for w, b in layers[:-1]:
            x = jax.nn.relu(x @ w + b)
        return jnp.sum(x @ layers[-1][0] + layers[-1][1])

    leaves = jax.tree.leaves(jax.grad(logits)(ntk._layers))
    return unit_norm(jnp.concatenate([leaf.ravel() for leaf in leaves])[None])[0]


def timed(function, *arguments, times=3):
    """Milliseconds, the least of several."""
    jax.block_until_ready(function(*arguments))
    found = []
    for _ in range(times):
        start = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        found.append(time.perf_counter() - start)
    return 1000 * min(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=800)
    parser.add_argument("--records", type=int, default=200)
    options = parser.parse_args()
    ntk = DenseNTK(dimension=PIXELS, widths=(options.width,))
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.random((CLASSES, options.records // CLASSES, PIXELS)), jnp.float32)
    n = x.shape[0] * x.shape[1]

    def plain_means(x):
        return jax.vmap(lambda part: jnp.mean(jax.vmap(lambda r: gradient_of(ntk, r))(part), 0))(x)

    def means(x):
        return jax.vmap(lambda part: ntk.total(part, scale) / len(part))(x)

    one = jax.jit(lambda record: gradient_of(ntk, record))

    def looped_means(x):
        return [sum(one(record) for record in part) / len(part) for part in x]

    # The kernels are the same, so are the distances; the coordinates of the last layer differ.
    ours, theirs = np.asarray(jax.jit(means)(x)), np.asarray(jax.jit(plain_means)(x))
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, rtol=1e-3)

    def step(of_means, target):
        return jax.jit(jax.grad(lambda x: jnp.sum((of_means(x) - target) ** 2)))

    found = {
        "width": options.width,
        "records": n,
        "embedding": timed(jax.jit(means), x) / n,
        "embedding, vmap(grad)": timed(jax.jit(plain_means), x) / n,
        "embedding, loop": timed(looped_means, x, times=1) / n,
        "step": timed(step(means, jnp.zeros(ours.shape)), x) / n,
        "step, vmap(grad)": timed(step(plain_means, jnp.zeros(theirs.shape)), x) / n,
    }
    for name, value in found.items():
        print(f"{name}: {value:.4g}" + (" ms a record" if isinstance(value, float) else ""))
    for name in ("embedding, vmap(grad)", "embedding, loop", "step, vmap(grad)"):
        found[f"ratio: {name}"] = found[name] / found[name.split(",")[0]]
        print(f"{name}: {found[f'ratio: {name}']:.1f} times as slow")
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
