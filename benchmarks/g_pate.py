"""Teachers side by side against one after another; and the aggregation of their votes.

    python benchmarks/g_pate.py [--teachers 500] [--batch 50] [--updates 3]

A step of a teacher is `updates` updates of its discriminator and its votes. Side by side is what
`limbeck.measure.teachers` does. One after another is the plain definition (the gradient of the
loss, Adam, the gradient of log σ, projection, bins) in a Python loop over teachers: compiled as a
whole; and operation by operation, as in a framework that does not compile, for a few teachers.
Votes are those of 4000 teachers on 60 records and 10 dimensions in 10 bins: counting, noise and
answers. Prints ratios, and writes benchmarks/results/g_pate.json.
"""

import argparse
import functools
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

import limbeck
from limbeck.data.column import Column
from limbeck.data.schema import ImageShape, Schema
from limbeck.measure import teachers
from limbeck.measure.votes import VOTES, answers
from limbeck.models import discriminators
from limbeck.privacy import clipping, noise
from limbeck.privacy.ledger import Entry, Ledger

RESULTS = Path(__file__).parent / "results" / "g_pate.json"
MNIST = Schema(classes=tuple(range(10)), image=ImageShape(28, 28))
CREDIT = Schema(
    classes=(0, 1),
    columns=tuple(Column(f"x{i}", "numeric", minimum=0, maximum=1) for i in range(29)),
)
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


def plain(net, how, batch, number, real, has, key):
    """The votes of one teacher as the paper has them, with teachers that start alike."""
    first = how.first(net)

    def logits(weights, seen):
        own, common = (net.logits(w, seen, batch.one_hot) for w in (weights, first))
        return own - common

    def loss(weights, real):
        of_fakes = jax.nn.softplus(logits(weights, net.preprocess(batch.fakes)))
        return jnp.mean(has * (jax.nn.softplus(-logits(weights, real)) + of_fakes))

    adam, weights = how.optimiser(), first
    state = adam.init(weights)
    for update in range(how.updates):
        change, state = adam.update(jax.grad(loss)(weights, real[update]), state)
        weights = optax.apply_updates(weights, change)

    def looks_real(x):
        return jnp.sum(has * jax.nn.log_sigmoid(logits(weights, net.preprocess(x))))

    projected = batch.weights.T @ jax.grad(looks_real)(batch.fakes) @ batch.basis
    coin = jax.random.fold_in(jax.random.fold_in(key, number), 1)
    return teachers.bins_of(projected, how, coin)


def steps(schema, n, m, updates):
    """Steps a second of all three."""
    net, classes = discriminators.for_schema(schema), len(schema.classes)
    how = teachers.Schooling(teachers=n, updates=updates)
    rng, one_hot = np.random.default_rng(0), jnp.eye(classes)[jnp.arange(m) % classes]
    d, key = schema.width, jax.random.key(0)
    basis = jnp.eye(d)[:, :64]
    fakes = jnp.asarray(rng.random((m, d)), jnp.float32)
    batch = teachers.Batch(fakes, one_hot, one_hot, basis)
    private = limbeck.PrivateData.from_arrays(*made_up(schema, 20 * n, rng), schema)
    school = teachers.Teachers(private, net, how, secret=bytes(32), key=key)
    key = jax.random.fold_in(key, 0)  # of the first step
    uniform = np.asarray(teachers._uniform(key, n, updates, m))
    own = school._drawn(uniform, slice(0, n), np.arange(m) % classes)
    compiled = jax.jit(functools.partial(plain, net, how, batch))

    def in_turn(n=n, one=compiled):
        return [one(i, jnp.asarray(own.seen[i]), jnp.asarray(own.has[i]), key) for i in range(n)]

    def eagerly():
        with jax.disable_jit():
            return in_turn(EAGER, functools.partial(plain, net, how, batch))

    def together():
        school._steps = 0
        return school.vote(batch)

    # The same votes, but for rounding at the edge of a bin.
    assert np.mean(together() == np.stack(in_turn())) > 0.99
    return n / least(together), n / least(in_turn), EAGER / least(eagerly, 1)


def made_up(schema, n, rng):
    """Records of noise."""
    labels = np.array(schema.classes)[rng.integers(0, len(schema.classes), n)]
    if schema.is_image:
        return rng.integers(0, 256, (n, *schema.image_shape), np.uint8), labels
    return rng.random((n, schema.width)), labels


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
    options = parser.parse_args()
    found = {**vars(options), "aggregation, ms": aggregation()}
    print(f"votes of 4000 teachers on 600 queries: {found['aggregation, ms']:.1f} ms")
    for kind, schema in {"pictures": MNIST, "rows": CREDIT}.items():
        side, turn, eager = steps(schema, options.teachers, options.batch, options.updates)
        found[kind] = {"side by side": side, "in turn, compiled": turn, "in turn": eager}
        print(
            f"{kind}: {side:.0f} steps of teachers a second; {side / turn:.1f} times as many as in "
            f"a loop of compiled steps, {side / eager:.0f} times as many as operation by operation"
        )
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
