"""The formulas of memory, in bytes: docs/scaling.md derives them and says what they were
measured against.

What a layer keeps for its backward pass was read off the tensors that PyTorch saves, with a LoRA
adapter on every matrix and attention by `scaled_dot_product_attention` under a mask, and is
exact; copies of the logits were measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.plan.shapes import Shape

ADAM = 8  # bytes a trained parameter: two moments in float32
CRITIC_COPIES = 4  # of the logits, in float32, that a trainer of ours holds at its peak
TRL_COPIES = 3  # and that TRL's do, where no fused kernel spares them
# bytes a logit while a token is drawn: as computed, in float32, its probability, the sums in
# float64
DRAWN = 20


@dataclass(frozen=True)
class Precision:
    """Bytes of a base weight and what it computes, of what a LoRA matrix reads, and of the
    adapter's copy under autocast.
    """

    name: str
    base: int
    read: int
    copy: int = 0


FP32 = Precision("float32", 4, 4)  # on a CPU
AMP = Precision("bfloat16 under autocast", 2, 2, copy=2)  # TRL's trainers on a GPU
# our own loops on a GPU: PPO and reward models
BF16 = Precision("bfloat16, the adapter in float32", 2, 4)


def four_bits(shape: Shape) -> int:
    """Bytes of the weights with the layers' matrices in 4 bits (NF4) and all others in 16, by
    arithmetic alone.

    A block of 64 has a constant of 8 bits, and 256 of these one of 32. The widest matrix is
    there in 16 bits besides: each is unpacked where it is used.
    """
    packed = shape.layers * shape.linear
    blocks = -(-packed // 64)
    widest = shape.hidden * max(shape.inner, shape.queries)
    return (
        -(-packed // 2)
        + blocks
        + 4 * -(-blocks // 256)
        + 2 * (shape.parameters - packed)
        + 2 * widest
    )


def kept(shape: Shape, how: Precision, rank: int, length: int) -> int:
    """Bytes that one layer keeps of one token, in a row of `length`, for the backward pass.

    The MLP keeps gate, activation and up; attention queries, keys and values of every head, its
    output and a row of the mask; norms their inputs in float32; each LoRA pair its input, of
    which a lower precision makes a copy for each, and its middle.
    """
    h, q, kv = shape.hidden, shape.queries, shape.keys
    # float32 everywhere needs no copies: q, k and v read one tensor, gate and up another
    cast = how.read != 4 or how.base != 4
    base = 3 * shape.inner + 3 * q + length + (q if cast else 0)
    reads = shape.inner + (5 if cast else 2) * h + q + 7 * rank
    exact = (
        2 * h + shape.heads + 2 + (q + kv + shape.heads + shape.kv_heads if shape.qk_norm else 0)
    )
    return how.base * base + how.read * reads + 4 * exact


def activations(shape: Shape, how: Precision, rank: int, rows: int, length: int) -> int:
    return rows * length * shape.layers * kept(shape, how, rank, length)


def checkpointed(
    shape: Shape, how: Precision, rank: int, rows: int, length: int, freed: int
) -> int:
    """With gradient checkpointing: every layer's input, and one layer computed again with its
    widest gradient, as far as the `freed` bytes of the logits have no room for that: these are
    gone by then."""
    layer = kept(shape, how, rank, length) + how.base * shape.inner
    return rows * length * shape.layers * shape.hidden * how.base + max(
        0, rows * length * layer - freed
    )


def logits(shape: Shape, how: Precision, rows: int, positions: int, copies: int) -> int:
    """At the beginning of the backward pass: what the loss keeps and the gradients on their way,
    in float32.
    """
    return rows * positions * shape.vocabulary * (4 * copies + (how.base if how.base != 4 else 0))


def cache(shape: Shape, size: int, rows: int, length: int) -> int:
    """Keys and values of all layers, and one layer's a second time, since a cache grows by being
    copied.
    """
    return 2 * (shape.layers + 1) * shape.keys * size * rows * length


def prefill(shape: Shape, size: int, prompts: int, length: int) -> int:
    """What the widest layer holds while prompts are read, all at once: gate, up and their
    product, residual, norm, mask.
    """
    return prompts * length * size * (3 * shape.inner + 3 * shape.hidden + shape.queries + length)


def drawing(shape: Shape, rows: int) -> int:
    return rows * shape.vocabulary * DRAWN


def adapter(parameters: int, how: Precision) -> int:
    """The trained parameters in float32, and their copy under autocast."""
    return parameters * (4 + how.copy)
