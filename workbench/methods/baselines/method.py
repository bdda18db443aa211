"""The baselines as methods, and their settings at the tiny bench."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from workbench.methods.baselines.config import GoldSFT, PairDPO, SampleSFT
from workbench.methods.baselines.stages import on_gold, on_pairs, on_samples
from workbench.methods.method import AT_ONCE, Method, Training, scaled
from workbench.methods.truthrl.method import PARTS
from workbench.methods.truthrl.reward import ternary
from workbench.training.settings import Samples, Sampling
from workbench.training.stage import Stage

# *(ours)*, for 1M parameters on two CPU cores, and not tuned.
ADAPTER = {**AT_ONCE, "save_every": 10}
FEW = {"questions": 512, "samples": 16, "temperature": 1.0, "top_p": 1.0, "max_new_tokens": 12}
TUNED = {**ADAPTER, "batch": 64, "learning_rate": 2e-4}
PREFERRED = {**ADAPTER, "batch": 32, "learning_rate": 1e-4}
ROUND = Samples(sampling=Sampling(max_new_tokens=256))


def _baseline(
    name: str,
    title: str,
    config: Callable[..., Any],
    stages: Callable[..., Sequence[Stage]],
    **tiny: Any,
) -> Method:
    method = Method(
        name,
        title,
        config,
        lambda config: ternary(),
        lambda config: ("outcome",),
        lambda config: frozenset(),
        lambda config, bench: stages(config, bench, method),
        {"outcome": PARTS["outcome"]},
        {"tiny": scaled(config(), **tiny)},
        lambda config: Training("dpo" if stages is on_pairs else "sft"),
    )
    return method


_EACH = (
    _baseline("sft_gold", "SFT on gold answers", GoldSFT, on_gold, sft=TUNED),
    _baseline("r_tuning", "R-Tuning", SampleSFT, on_samples, drawn=FEW, sft=TUNED),
    _baseline("rft", "RFT", SampleSFT, on_samples, drawn=FEW, sft=TUNED),
    _baseline("dpo", "DPO", PairDPO, on_pairs, drawn=FEW, dpo=PREFERRED),
    _baseline(
        "iterative_dpo",
        "Iterative DPO",
        partial(PairDPO, rounds=4, drawn=ROUND),
        on_pairs,
        drawn=FEW,
        dpo=PREFERRED,
    ),
)
BASELINES = {method.name: method for method in _EACH}
