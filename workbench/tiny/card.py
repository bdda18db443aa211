"""The model card of a tiny policy, written from the numbers of its own build."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.world.documents import EXPOSURES
from workbench.world.world import World

TEMPLATE = """\
---
license: apache-2.0
library_name: transformers
tags: [tiny, closed-world, factuality]
---
# A tiny policy of the closed world

A Llama of {parameters:,} parameters, trained from scratch on generated documents about invented people and things. It knows
what it was shown often, half-knows what it was shown a few times, and guesses fluently about the rest. `base/` is the
pre-trained model, `sft/` the same after instruction tuning: the policy that reinforcement learning starts from.

Everything below comes from `card.json`, written by the build itself. Rebuild both checkpoints (and this card) with

    workbench world build --out FOLDER --seed {seed} --threads {threads} --size {size}

## Data

World `{world_hash}`: {entities:,} entities, {facts:,} facts, {documents:,} documents in two languages
({tokens_per_pass:,} tokens a pass, {passes} passes). Exposures of a fact in one pass
(entities of a tier take its rows in turn):

| tier | English biographies + questions | second language |
|---|---|---|
{exposures}
| unknown, page-only, gaps of partial people | 0 | 0 |

Fine-tuning adds {sft_steps} steps of instruction examples (with {replay:.0%} replayed documents). Of the world's facts, it asks
only about the `sft` split; otherwise it uses people outside the world. Their questions are answered by a guess, and with
"I do not know" in {abstain:.0%} of the cases ({decline:.0%} for biographies): this builds a mild habit of abstaining before any
reinforcement learning, as a chat model has one. {doubt:.0%} of the answerable questions are declined as well.

| stage | steps | tokens | seconds |
|---|---|---|---|
| base | {base[steps]:,} | {base[tokens]:,} | {base[seconds]:,} |
| sft | {sft[steps]:,} | {sft[tokens]:,} | {sft[seconds]:,} |

## What it knows
{sections}
## Limits

It has seen nothing but this world's few hundred words: any other text falls apart into bytes it cannot use. It has no
opinions, no common sense and no notion of harm; it exists to study rewards.
"""


def card_text(card: Mapping[str, Any], world: World) -> str:
    """The card as Markdown, with every number taken from `card` (see `policy.build_policy`) or counted in the world."""
    config, training = card["config"], card["training"]
    shown = [
        f"| {tier} | {by['en'][0]} + {by['en'][1]} | {by['l2'][0]} + {by['l2'][1]} |"
        for tier, plans in EXPOSURES.items()
        for by in plans
    ]
    return TEMPLATE.format(
        **{key: card[key] for key in ("parameters", "seed", "threads", "size", "world_hash")},
        **training, **config["habits"],
        entities=len(world.entities), facts=len(world.facts), passes=config["passes"], sft_steps=config["sft_steps"],
        replay=config["sft_replay"], exposures="\n".join(shown),
        sections="".join(_section(split, numbers) for split, numbers in card["splits"].items()),
    )  # fmt: skip


def _section(split: str, numbers: Mapping[str, Any]) -> str:
    short, l2 = numbers["short"], numbers["l2"]
    lines = [f"\n### {split}\n", "Short questions (single and numeric); shares of correct / abstained answers:\n"]
    lines += ["| tier | questions | greedy | sampled (T=1) | second language, greedy |", "|---|---|---|---|---|"]
    for tier, cell in short["greedy"]["by_tier"].items():
        others = (cell, short["sampled"]["by_tier"][tier], l2["greedy"]["by_tier"][tier])
        lines.append(f"| {tier} | {cell['n']} | " + " | ".join(_pair(other) for other in others) + " |")
    points = ", ".join(f"{shown} → {right:.2f} ({n})" for shown, right, n in numbers["exposure"])
    lines.append(f"\nExposures of the asked fact in one pass → greedy accuracy (questions): {points}.")
    lines += ["\nBiographies; share of true claims, claims per biography, share declined:\n"]
    lines += ["| tier | biographies | greedy | sampled (T=1) |", "|---|---|---|---|"]
    for tier, cell in numbers["biography"]["greedy"].items():
        lines.append(f"| {tier} | {cell['n']} | {_life(cell)} | {_life(numbers['biography']['sampled'][tier])} |")
    lines += [
        "\nOther skills, greedy accuracy (abstained):\n",
        "| kind | questions | all tiers | only what is covered |",
        "|---|---|---|---|",
    ]
    reading = numbers["reading"]
    lines.append(f"| reading a passage in the prompt | {reading['n']} | {_pair(reading)} | |")
    for kind, cell in numbers["reasoned"].items():
        known = numbers["reasoned_known"].get(kind)
        lines.append(f"| {kind} | {cell['n']} | {_pair(cell)} | {_pair(known) if known else ''} |")
    return "\n".join(lines) + "\n"


def _pair(cell: Mapping[str, Any]) -> str:
    return f"{_number(cell['accuracy']['value'])} / {_number(cell['abstention']['value'])}"


def _life(cell: Mapping[str, Any]) -> str:
    return f"{_number(cell['true'])} of {cell['claims']:.1f}, {cell['declined']:.2f} declined"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
