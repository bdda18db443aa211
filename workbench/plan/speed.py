"""How long a training may take: arithmetic over assumed shares of what a GPU's maker states.
Nothing here was measured.
"""

from __future__ import annotations

import math

from workbench.plan.gpus import GPU
from workbench.plan.phases import Learning, Sampled
from workbench.plan.shapes import Shape

# assumed shares of the stated speed in learning, and of the bandwidth in generation
OF_FLOPS, OF_BANDWIDTH = 0.3, 0.5
# assumed: what a layer of plain transformers with an adapter takes of a token, however small
LAYER_SECONDS = 1e-3


def forward_flops(shape: Shape, length: int) -> float:
    """Of one token in a row of that length, which looks at half of it on average: two a weight,
    and attention's.
    """
    weights = shape.layers * shape.linear + shape.vocabulary * shape.hidden
    return 2.0 * weights + 2.0 * shape.layers * length * shape.queries


def learning_seconds(shape: Shape, one: Learning, gpu: GPU) -> float:
    """Of one step. The base is frozen: what goes backward costs as much as what goes forward, or
    as computing it again.
    """
    passes = (2 + one.again) * one.epochs + one.forward
    tokens = one.rows * one.sides * one.length
    return tokens * passes * forward_flops(shape, one.length) / (OF_FLOPS * gpu.flops)


def sampling_seconds(shape: Shape, one: Sampled, gpu: GPU) -> float:
    """Of a step's rollouts, of which every one is taken to be as long as it may."""
    waves = math.ceil(one.responses / one.rows)
    held = 2 * shape.parameters + 4 * shape.layers * shape.keys * one.rows * one.length / 2
    token = max(
        shape.layers * LAYER_SECONDS,
        held / (OF_BANDWIDTH * gpu.bandwidth),
        one.rows * forward_flops(shape, one.length) / (OF_FLOPS * gpu.flops),
    )
    reading = one.prompts * one.prompt * forward_flops(shape, one.prompt) / (OF_FLOPS * gpu.flops)
    return waves * (one.new * token + reading)


def assumed(gpu: GPU) -> str:
    return (
        f"assumed, not measured: {OF_FLOPS:.0%} of {gpu.flops / 1e12:.0f} TFLOP/s in learning,"
        f" {OF_BANDWIDTH:.0%} of {gpu.bandwidth / 1e12:.2f} TB/s and at least"
        f" {LAYER_SECONDS * 1e3:g} ms a layer and token in generation, every response as long as it"
        " may be; without the judge's time, evaluations and stages whose steps the data decide"
    )
