"""The baselines as methods, and their settings at the tiny bench."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from workbench.methods.baselines.config import GoldSFT, PairDPO, SampleSFT
from workbench.methods.baselines.stages import (
    factscore,
    on_fact_pairs,
    on_gold,
    on_pairs,
    on_samples,
)
from workbench.methods.method import AT_ONCE, Method, Prompts, Training, scaled
from workbench.methods.truthrl.method import PARTS
from workbench.methods.truthrl.reward import ternary
from workbench.pipeline import ANSWER_SECTIONS
from workbench.training.settings import Samples, Sampling
from workbench.training.stage import Stage

# *(ours)*, for 1M parameters on two CPU cores, and not tuned.
ADAPTER = {**AT_ONCE, "save_every": 10}
FEW = {"questions": 512, "samples": 16, "temperature": 1.0, "top_p": 1.0, "max_new_tokens": 12}
TUNED = {**ADAPTER, "batch": 64, "learning_rate": 2e-4}
PREFERRED = {**ADAPTER, "batch": 32, "learning_rate": 1e-4}
FACTS = {"facts": ("FActScore", "share of the claims that the evidence supports")}
LONG_PROMPTS = Prompts(system="")  # the question alone: an answer in prose
# FactTune-FS (arXiv 2311.08401, section 4): 10 samples at temperature 1
TEN = Samples(samples=10, sampling=Sampling(max_new_tokens=512))
ROUND = Samples(sampling=Sampling(max_new_tokens=256))


def _baseline(
    name: str,
    title: str,
    config: Callable[..., Any],
    stages: Callable[..., Sequence[Stage]],
    **tiny: Any,
) -> Method:
    long = stages is on_fact_pairs
    method = Method(
        name,
        title,
        config,
        lambda config: factscore() if long else ternary(),
        lambda config: ("fact",) if long else ("outcome",),
        lambda config: ANSWER_SECTIONS if long else frozenset(),
        lambda config, bench: stages(config, bench, method),
        FACTS if long else {"outcome": PARTS["outcome"]},
        {"tiny": scaled(config(), **tiny)},
        lambda config: Training("dpo" if hasattr(config, "dpo") else "sft"),
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
        partial(PairDPO, rounds=5, drawn=ROUND),  # DPO, then 4 rounds from its checkpoint
        on_pairs,
        drawn=FEW,
        dpo=PREFERRED,
    ),
    _baseline(
        "fact_tune",
        "FactTune-FS",
        partial(PairDPO, prompts=LONG_PROMPTS, drawn=TEN),
        on_fact_pairs,
        prompts={"kinds": "biography", "eval_kinds": "biography"},
        drawn={**FEW, "samples": 8, "max_new_tokens": 64},
        dpo=PREFERRED,
    ),
)
BASELINES = {method.name: method for method in _EACH}
