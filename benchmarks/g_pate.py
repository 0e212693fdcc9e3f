"""Teachers side by side against one after another; and the aggregation of their votes.

    python benchmarks/g_pate.py [--teachers 500] [--batch 50] [--updates 3]

A step of a teacher is `updates` updates of its discriminator and its votes, on made-up pictures of
28 × 28. Side by side is what `limbeck.measure.teachers` does. One after another is the same
function of one teacher, compiled, in a Python loop; and operation by operation, as in a framework
that does not compile, for a few teachers. Votes are those of 4000 teachers on 60 records and 10
dimensions in 10 bins: counting, noise and answers. Prints ratios, and writes
benchmarks/results/g_pate.json.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from limbeck.data.schema import ImageShape, Schema
from limbeck.features.inputs import ImageInputs
from limbeck.measure import discriminators, teachers
from limbeck.measure.votes import VOTES, answers
from limbeck.privacy import clipping, noise
from limbeck.privacy.ledger import Entry, Ledger

RESULTS = Path(__file__).parent / "results" / "g_pate.json"
MNIST = Schema(classes=tuple(range(10)), image=ImageShape(28, 28))
EAGER = 3


def least(function, times=3):
    """Seconds, the least of several, after one to compile."""
    jax.block_until_ready(function())
    found = []
    for _ in range(times):
        start = time.perf_counter()
        jax.block_until_ready(function())
        found.append(time.perf_counter() - start)
    return min(found)


def steps(kind, n, m, updates):
    """Steps a second of all three, for one kind of discriminator."""
    net = discriminators.for_schema(MNIST, kind)
    how = teachers.Schooling(teachers=n, updates=updates)
    rng, one_hot = np.random.default_rng(0), jnp.eye(10)[jnp.arange(m) % 10]
    basis = jnp.asarray(ImageInputs(shape=(28, 28, 1), share=0.0).basis, jnp.float32)
    fakes = jnp.asarray(rng.random((m, 784)), jnp.float32)
    batch, key = teachers.Batch(fakes, one_hot, one_hot, basis), jax.random.key(0)
    chunk = teachers.chunk_of(net, how, m)
    seen = net.seen(jnp.asarray(rng.random((m, 784)), jnp.float32)).shape[1]
    real = rng.random((n, updates, m, seen)).astype(np.float32)
    has, mesh = np.ones((n, m), np.float32), teachers._mesh(1)

    def together():
        found = []
        for at in range(0, n, chunk):
            these = slice(at, at + chunk)
            some = teachers.Teacher(jnp.arange(n)[these])
            found.append(
                teachers._step(net, how, mesh, some, real[these], has[these], batch, key)[1]
            )
        return found

    def one(number, real, has):
        return teachers._taught(net, how, teachers.Teacher(number), real, has, batch, key)[1]

    compiled = jax.jit(one)

    def in_turn():
        return [compiled(i, real[i], has[i]) for i in range(n)]

    def eagerly():
        with jax.disable_jit():
            return [one(i, jnp.asarray(real[i]), jnp.asarray(has[i])) for i in range(EAGER)]

    return n / least(together), n / least(in_turn, 1), EAGER / least(eagerly, 1)


def aggregation():
    """Milliseconds for the votes of a step."""
    votes = np.random.default_rng(0).integers(0, 10, (4000, 600)).astype(np.uint8)
    ledger = Ledger([Entry(purpose=VOTES, draws=100, noise_multiplier=30.0)])
    source = noise.entropy()

    def step():
        counted = clipping.count_votes(votes, 10)
        noisy = noise.gaussian(counted, purpose=VOTES, ledger=ledger, entropy=source)
        return answers(noisy, 4000, "argmax")

    return 1000 * least(step, 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--teachers", type=int, default=500)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--updates", type=int, default=3)
    parser.add_argument("--kinds", default="small")
    options = parser.parse_args()
    found = {**vars(options), "aggregation, ms": aggregation()}
    print(f"votes of 4000 teachers on 600 queries: {found['aggregation, ms']:.1f} ms")
    for kind in options.kinds.split(","):
        side, turn, eager = steps(kind, options.teachers, options.batch, options.updates)
        found[kind] = {"side by side": side, "in turn, compiled": turn, "in turn": eager}
        print(
            f"{kind}: {side:.0f} steps of teachers a second; {side / turn:.1f} times as many as in "
            f"a loop of compiled steps, {side / eager:.0f} times as many as operation by operation"
        )
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
