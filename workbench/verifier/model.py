"""The model of the local verifier: a MiniLM cross-encoder with a head for three classes.

The packaged MiniLM weights and a small adapter give its weights. The adapter stores the difference
from the packaged weights in fp16. For a linear layer, the difference is stored as two low-rank
factors (truncated singular value decomposition, Eckart & Young 1936). Small tensors are stored
whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.types import WorkbenchError
from workbench.util.hub import from_disk_or_hub
from workbench.util.minilm import packaged_folder

if TYPE_CHECKING:
    import torch
    from tokenizers import Encoding

HIDDEN = 384  # size of the encoder's states
MAX_LENGTH = 256  # word pieces of a pair, including [CLS] and two [SEP]
Pairs = Sequence[tuple[str, str]]  # premises and claims
Pair = tuple[list[int], list[int]]  # token ids and token types of an encoded pair


def base_folder() -> Path:
    """Return the folder of the packaged MiniLM weights, after checking their SHA-256 digests.

    Raises:
        WorkbenchError: the package is not installed or its files were changed.
    """
    folder = packaged_folder()
    if folder is None:
        raise WorkbenchError(
            "the local verifier needs the packaged MiniLM weights: install the dependencies of"
            " this package (`make demo` does), or choose another judge (--judge world, or --judge"
            " URL --judge-model NAME)"
        )
    return folder


@cache
def in_bfloat16() -> bool:
    """Return whether the encoder computes in bfloat16: True if the CPU supports AVX512-BF16.

    In bfloat16, the encoder is about twice as fast. On 4,669 pairs, probabilities changed by at
    most .013. The environment variable WORKBENCH_DTYPE=float32 switches bfloat16 off.
    """
    import torch

    able = torch.cpu.get_capabilities().get("avx512_bf16", False)
    return able and os.environ.get("WORKBENCH_DTYPE") != "float32"


def new_model() -> torch.nn.ModuleDict:
    """Return the untrained cross-encoder: the packaged encoder with a randomly initialised head.

    The head's weights are drawn from torch's global random state.
    """
    import torch
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel
    from transformers.initialization import no_init_weights

    config = from_disk_or_hub(BertConfig.from_pretrained, str(base_folder()))
    # in float32, the fused attention kernel takes twice as long for short texts
    config._attn_implementation = "sdpa" if in_bfloat16() else "eager"
    # the weights are neither drawn nor copied: both would need memory for a second model
    with no_init_weights():
        encoder = BertModel(config, add_pooling_layer=False)
    weights = load_file(base_folder() / "model.safetensors")
    missing, _ = encoder.load_state_dict(weights, strict=False, assign=True)
    assert not missing, missing  # else these weights would have random memory
    head = torch.nn.Sequential(
        torch.nn.Dropout(0.1),
        torch.nn.Linear(5 * HIDDEN, HIDDEN // 2),
        torch.nn.GELU(),
        torch.nn.Linear(HIDDEN // 2, 3),
    )
    return torch.nn.ModuleDict({"encoder": encoder, "head": head})


def logits(model: torch.nn.ModuleDict, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Return the raw class scores (B, 3) of B encoded pairs, in the order of `LABELS`.

    The head's input joins five vectors of each pair: the hidden state of [CLS], the mean hidden
    states u of the premise and v of the claim, |u − v|, and the elementwise product u · v. MiniLM
    was trained on such mean states (Reimers & Gurevych, arXiv 1908.10084).

    Args:
        model: the cross-encoder, from `new_model` or `expand`.
        batch: the encoded pairs, from `collate`.
    """
    import torch

    with torch.autocast("cpu", torch.bfloat16, enabled=in_bfloat16() and not model.training):
        hidden_BTD = model["encoder"](**batch).last_hidden_state  # T tokens, D = HIDDEN
    state_BTD = hidden_BTD.float()
    mask_BT1 = batch["attention_mask"].unsqueeze(-1).to(state_BTD.dtype)
    claim_BT1 = batch["token_type_ids"].unsqueeze(-1) * mask_BT1
    premise_BT1 = mask_BT1 - claim_BT1
    u_BD, v_BD = (
        (state_BTD * side_BT1).sum(1) / side_BT1.sum(1).clamp(min=1)
        for side_BT1 in (premise_BT1, claim_BT1)
    )
    return model["head"](
        torch.cat([state_BTD[:, 0], u_BD, v_BD, (u_BD - v_BD).abs(), u_BD * v_BD], dim=-1)
    )


class Encoder:
    """Encode pairs as `[CLS] premise [SEP] claim [SEP]`, cut to `max_length` word pieces."""

    def __init__(self, max_length: int = MAX_LENGTH) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(base_folder() / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.max_length = max_length
        self.cls, self.sep = (
            self.tokenizer.encode(mark, add_special_tokens=False).ids[0]
            for mark in ("[CLS]", "[SEP]")
        )

    def texts(self, texts: Sequence[str]) -> list[Encoding]:
        """Return the word pieces (`ids`, `offsets`) of each whole text, without special tokens."""
        return self.tokenizer.encode_batch(list(texts), add_special_tokens=False)

    def pairs(self, pairs: Pairs) -> list[Pair]:
        """Return token ids and token types (0 premise, 1 claim) of each (premise, claim) pair."""
        pieces = self.texts([text for pair in pairs for text in pair])
        return [self.join(pieces[i].ids, pieces[i + 1].ids) for i in range(0, len(pieces), 2)]

    def join(self, premise: list[int], claim: list[int]) -> Pair:
        """Join the token ids of a premise and a claim; return token ids and token types.

        The type is 0 for the premise and 1 for the claim. A claim is cut to about half of
        `max_length`, and a premise to the remaining length.
        """
        claim = claim[: self.max_length // 2 - 2]
        premise = premise[: self.max_length - 3 - len(claim)]
        ids = [self.cls, *premise, self.sep, *claim, self.sep]
        return ids, [0] * (len(premise) + 2) + [1] * (len(claim) + 1)


def collate(encoded: Sequence[Pair]) -> dict[str, torch.Tensor]:
    """Pad B encoded pairs to the longest one, with T tokens; return the inputs of the encoder.

    Each input has the shape (B, T). The keys are `input_ids`, `token_type_ids` and
    `attention_mask`.
    """
    import torch
    from torch.nn.utils.rnn import pad_sequence

    columns = {
        "input_ids": [ids for ids, _ in encoded],
        "token_type_ids": [types for _, types in encoded],
        "attention_mask": [[1] * len(ids) for ids, _ in encoded],
    }
    return {
        name: pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
        for name, rows in columns.items()
    }


def expand(small: Mapping[str, torch.Tensor]) -> torch.nn.ModuleDict:
    """Return the cross-encoder for inference: the packaged weights with an adapter added.

    Args:
        small: the tensors of the adapter. The product `NAME.up` (out, rank) @ `NAME.down` (rank,
            in) is added to the linear layer NAME. A tensor NAME is added to any other tensor. The
            head is not packaged, so the adapter has its weights.

    Raises:
        WorkbenchError: the tensors do not fit this version of the model.
    """
    model = new_model()
    state = model.state_dict()
    names = {name.removesuffix(".down").removesuffix(".up") for name in small}
    head = {name for name in state if name.startswith("head.")}
    if not names <= set(state) or not head <= set(small):
        raise WorkbenchError(
            "the verifier's weights do not fit this version of the workbench: use weights that this"
            " version has made, or leave out --verifier"
        )
    for name in names:
        if name.startswith("head."):
            state[name] = small[name].float()
        elif name in small:
            state[name] += small[name].float()
        else:
            state[name] += small[f"{name}.up"].float() @ small[f"{name}.down"].float()
    model.load_state_dict(state)
    return model.eval().requires_grad_(False)


def for_inference(model: torch.nn.ModuleDict) -> torch.nn.ModuleDict:
    """Convert the encoder's linear layers to bfloat16 if it computes in it, to save memory.

    Otherwise, each batch would convert them, with the same result.
    """
    import torch

    if in_bfloat16():
        for module in model["encoder"].modules():
            if isinstance(module, torch.nn.Linear):
                module.to(torch.bfloat16)
    return model
