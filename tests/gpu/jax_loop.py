# SPDX-License-Identifier: Apache-2.0
"""A JAX loop with epochs(), steps() and log(): JAX has no place where a hook could stand safely."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import epochmeter
import jax
import jax.numpy as jnp
from truth import Truth, first_gpu

SMALL = os.environ.get("SMALL") == "1"
EPOCHS, STEPS, WIDTH = 3, 6 if SMALL else 150, 64 if SMALL else 8192


@jax.jit
def step(weights, x, y):
    def loss_of(w):
        return jnp.mean((jnp.tanh(x @ w) - y) ** 2)

    loss, gradient = jax.value_and_grad(loss_of)(weights)
    return weights - 0.1 * gradient, loss


def counters():
    stats = jax.local_devices()[0].memory_stats()
    if not stats:
        return None
    return {"allocated_bytes": stats["bytes_in_use"], "max_allocated_bytes": stats["peak_bytes_in_use"]}


def main():
    truth = Truth("jax")
    key = jax.random.PRNGKey(0)
    x = jax.random.normal(key, (WIDTH // 2, WIDTH), dtype=jnp.bfloat16)
    y, weights = x * 0.5, jax.random.normal(key, (WIDTH, WIDTH), dtype=jnp.bfloat16) * 0.01
    for epoch in epochmeter.epochs(EPOCHS):
        steps = 0
        for _ in epochmeter.steps(range(STEPS), batch_size=WIDTH // 2):
            weights, loss = step(weights, x, y)
            steps += 1
            last = float(loss)
            epochmeter.log(loss=last)
        truth.epoch(epoch, steps, {"loss": last}, allocator=counters())
    truth.write(gpu=first_gpu() if jax.default_backend() == "gpu" else None)


main()
