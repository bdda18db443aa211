"""The constants of a method's config as controls: what each sets, what it may be, and how it is drawn."""

from __future__ import annotations

import typing
from dataclasses import fields
from typing import Any, Literal

# The range of each control: by field, by the beginning of its name, or this.
RANGES = {
    "alpha": (0, 3, 0.05), "beta": (0, 3, 0.05), "epsilon": (-0.99, 1, 0.01), "f_": (-3, 2, 0.05), "g_": (-1, 2, 0.05),
    "w_": (0, 2, 0.05), "b": (0.1, 4, 0.1), "l_max": (8, 4096, 8), "l_cache": (1, 1024, 1), "clip": (0.1, 20, 0.1),
    "no_eos": (-3, 0, 0.1), "min_coverage": (0, 1, 0.05), "reasoning_weight": (0, 2, 0.05),
}  # fmt: skip
USUAL = (-3, 3, 0.1)

# What each control sets, by method and field; fields that begin alike may share their words.
HELP = {
    "rlfh": {
        "granularity": "where claims and sentences are paid: at the ends of claims, of their sentences, or of the answer",
        "spread": "pay over the whole claim or sentence instead of at its last token",
        "reward_map": "f: the paper's table 9, or the released launch script's",
        "f_": "f: what a claim with this verdict is worth",
        "g_": "g: factor of a claim with this informativeness, 1 (useless) to 5 (answers the question)",
        "alpha": "α: weight of the truthfulness of the claims",
        "beta": "β: weight of the informativeness of the sentences",
        "epsilon": "ε: least informativeness of a sentence that the logarithm takes; above −1",
        "clip": "most that one token is paid, either way",
        "no_eos": "paid by an answer that was cut off before its end token",
        "min_coverage": "share of a claim's words that must be found in the answer to pay it there",
    },
    "truthrl": {
        "reward": "ternary: an abstention is paid apart; binary: like a wrong answer",
        "correct": "paid for a correct answer",
        "abstain": "paid for an abstention",
        "wrong": "paid for a wrong answer",
        "knowledge": "pay for abstentions where the model cannot know; needs out-of-knowledge verdicts",
        "reasoning": "how the quality of the reasoning changes the outcome's reward",
        "reasoning_weight": "λ: weight of the reasoning, where it is additive",
    },
    "forag": {
        "evaluation": "what is scored: the whole answer, its sentences, or the claims of each sentence",
        "aggregate": "how the claims of a sentence become its factuality",
        "baseline": "subtract the factuality of the reference's own answer; none: where the row has it",
    },
    "klcf": {
        "w_check": "weight of the checklist's F-measure; weights count relative to their sum",
        "w_truth": "weight of the mean P(true) of the claims",
        "w_general": "weight of a preference model's score; needs such verdicts",
        "b": "recall counts b times as much as precision",
        "truth": "all claims, or only those that the checklist is silent about",
        "form": "expect think and answer tags",
        "l_max": "tokens at which the length penalty reaches −1",
        "l_cache": "tokens before that at which the penalty begins",
    },
    "knowrl": {
        "form": "plus this where the think and answer tags are right, minus this where not",
        "correct": "paid for a correct answer",
        "refusal": "paid for a refusal",
        "wrong": "paid for a wrong answer",
        "facts": "pay for facts in the thinking always, or only where the answer is wrong",
        "length_penalty": "pay less for facts where the thinking states ten or fewer: times exp(1 − 10/number)",
        "answer_tag": "pay an answer without its tag like a wrong one, refusals too",
        "no_abstaining": "pay nothing for facts where the thinking only abstains",
    },
}  # fmt: skip
# Heads over the fields that begin with these.
HEADS = {
    "f_correct": "f: what a claim is worth, by its verdict",
    "g_5": "g: its factor, by informativeness",
    "alpha": "Weights and bounds",
}


def controls(config: Any) -> list[dict[str, Any]]:
    """A control for each constant of the reward in `config`: those of training, which `GRPO` has, are left out."""
    from workbench.train.grpo import GRPO

    kinds = typing.get_type_hints(type(config))
    training = {field.name for field in fields(GRPO)} if isinstance(config, GRPO) else set()
    left_out = {"kinds", "mode"}  # what is trained on, and how claims are asked for: neither changes what a row pays
    names = [
        field.name for field in fields(config) if field.name not in training | left_out and not field.name.startswith("eval_")
    ]
    found = (control(name, kinds[name], getattr(config, name), config) for name in names)
    return [one for one in found if one]


def control(name: str, kind: Any, value: Any, config: Any) -> dict[str, Any] | None:
    """What the page needs to draw one field: a choice, a flag or a number; None for anything else, such as text."""
    options = typing.get_args(kind)
    plain = [option for option in options if option is not type(None)]
    said = HELP.get(type(config).__name__.lower(), {})
    shown: dict[str, Any] = {"name": name, "label": _worded(name), "value": value, "head": HEADS.get(name)}
    shown |= {"help": said.get(name) or said.get(name[:2], "")}
    if typing.get_origin(kind) is Literal:
        return shown | {"kind": "choice", "options": [str(option) for option in options]}
    if kind is bool:
        return shown | {"kind": "flag"}
    if plain == [bool]:
        words = {None: "none", True: "true", False: "false"}
        return shown | {"kind": "choice", "options": list(words.values()), "value": words[value]}
    if kind in (int, float) or plain in ([int], [float]):
        low, high, step = _range(name)
        if value is None and name.startswith("f_"):  # follows the reward map until it is set
            return shown | {"kind": "number", "min": low, "max": high, "step": step, "value": _mapped(config, name)}
        optional = type(None) in options and not name.startswith("f_")
        return shown | {"kind": "number", "min": low, "max": high, "step": step, "optional": optional}
    return None


def _worded(name: str) -> str:
    """`f_hedged_wrong` is f of a label and `g_5` g of a rating, as the paper writes them."""
    function, _, argument = name.partition("_")
    return f"{function}({argument.replace('_', ' ')})" if function in ("f", "g") and argument else name.replace("_", " ")


def _mapped(config: Any, name: str) -> float | None:
    from workbench.recipes.rlfh import label_values

    return label_values(config).get(name.removeprefix("f_"))


def _range(name: str) -> tuple[float, float, float]:
    return RANGES.get(name) or next(
        (found for start, found in RANGES.items() if start.endswith("_") and name.startswith(start)), USUAL
    )
