"""The model card of a tiny policy, written from the numbers of its own build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from workbench.types import JsonMapping
from workbench.world.documents import EXPOSURES, THINK_SHARE
from workbench.world.world import World

TEMPLATE = """\
---
license: apache-2.0
library_name: transformers
tags: [tiny, closed-world, factuality]
---
# A tiny policy of the closed world

A Llama of {parameters:,} parameters, trained from scratch on generated documents about invented \
people and things. It knows
what it was shown often, half-knows what it was shown a few times, and guesses fluently about the \
rest. `base/` is the
pre-trained model, `sft/` the same after instruction tuning: the policy that reinforcement \
learning starts from.

Everything below comes from `card.json`, written by the build itself. Rebuild both checkpoints \
(and this card) with

    workbench world build --out FOLDER --seed {seed} --threads {threads} --size {size}

## Data

World `{world_hash}`: {entities:,} entities, {facts:,} facts, {documents:,} documents in two \
languages
({tokens_per_pass:,} tokens a pass, {passes} passes). Exposures of a fact in one pass
(entities of a tier take its rows in turn):

| tier | English biographies + questions | second language |
|---|---|---|
{exposures}
| unknown, page-only, gaps of partial people | 0 | 0 |

Authors are asked for all their books as often as for each of their facts. {thought:.0%} of the \
questions are thought about
first: a sentence that states the fact, then the answer.

Pre-training begins with lessons without documents: drills on random words among the signs of a \
conversation (copying, the
name that was said last, a value that goes with it, a question about it, equal or different, the \
earlier of two years), then
reading and comparing. After that {skills:.0%} of its tokens are examples of skills, new in every \
pass: reading passages,
comparing, answering from a given thought, outlining. They are about people outside the world, \
about whom everything is made
up: no fact of the world is stated. Some are about strangers, asked for in a word, with a thought \
or for their lives, and
answered with "I do not know" in {abstained:.0%} of the cases ({declined:.0%} of the lives): so \
the policy learns whom it knows
while it learns them. A lesson ends when its exam is passed (the share asked of each kind is \
right), or at its last step:

| lesson | steps, of at most | asked of each kind | right in the last exam |
|---|---|---|---|
{lessons_told}

Fine-tuning adds {sft_steps} steps of instruction examples (with {replay:.0%} replayed \
documents). Of the world's facts, it asks
only about the `sft` split; otherwise it uses people outside the world. Their questions are \
answered by a guess, and with
"I do not know" in {abstain:.0%} of the cases ({doubt:.0%} of answers that are thought about \
first, {decline:.0%} of
biographies, {gaps:.0%} for what is not known of partly known people): this builds a mild habit \
of abstaining before any
reinforcement learning, as a chat model has one.

| stage | steps | tokens | seconds |
|---|---|---|---|
| lessons | {lessons[steps]:,} | {lessons[tokens]:,} | {lessons[seconds]:,} |
| base | {base[steps]:,} | {base[tokens]:,} | {base[seconds]:,} |
| sft | {sft[steps]:,} | {sft[tokens]:,} | {sft[seconds]:,} |

## What it knows
{sections}
## Limits

It has seen nothing but this world's few hundred words: any other text falls apart into bytes it \
cannot use. It has no
opinions, no common sense and no notion of harm; it exists to study rewards.
"""


def card_text(card: JsonMapping, world: World) -> str:
    """The card as Markdown, with every number taken from `card` (see `policy.build_policy`) or
    counted in the world.
    """
    config, training = card["config"], card["training"]
    shown = [
        f"| {tier} | {by['en'][0]} + {by['en'][1]} | {by['l2'][0]} + {by['l2'][1]} |"
        for tier, plans in EXPOSURES.items()
        for by in plans
    ]
    return TEMPLATE.format(
        **{key: card[key] for key in ("parameters", "seed", "threads", "size", "world_hash")},
        **training,
        **config["habits"],
        entities=len(world.entities),
        facts=len(world.facts),
        passes=config["passes"],
        sft_steps=config["sft_steps"],
        replay=config["sft_replay"],
        skills=config["skills"],
        **card["strangers"],
        lessons_told="\n".join(_lessons(config["lessons"], training)),
        exposures="\n".join(shown),
        thought=THINK_SHARE,
        sections="".join(_section(split, numbers) for split, numbers in card["splits"].items()),
    )


def _lessons(lessons: Sequence[JsonMapping], training: JsonMapping) -> Iterator[str]:
    taken = zip(lessons, training["lesson_steps"], training["lesson_rates"], strict=True)
    for number, (lesson, steps, rates) in enumerate(taken, 1):
        right = ", ".join(f"{kind} {rate:.2f}" for kind, rate in rates.items())
        yield f"| {number} | {steps} of {lesson['steps']} | {lesson['level']} | {right} |"


def _section(split: str, numbers: JsonMapping) -> str:
    short, l2 = numbers["short"], numbers["l2"]
    lines = [
        f"\n### {split}\n",
        "Short questions (single and numeric); shares of correct / abstained answers:\n",
    ]
    lines += [
        "| tier | questions | greedy | sampled (T=1) | second language, greedy |",
        "|---|---|---|---|---|",
    ]
    for tier, cell in short["greedy"]["by_tier"].items():
        others = (cell, short["sampled"]["by_tier"][tier], l2["greedy"]["by_tier"][tier])
        lines.append(
            f"| {tier} | {cell['n']} | " + " | ".join(_pair(other) for other in others) + " |"
        )
    points = ", ".join(f"{shown} → {right:.2f} ({n})" for shown, right, n in numbers["exposure"])
    lines.append(
        f"\nExposures of the asked fact in one pass → greedy accuracy (questions): {points}."
    )
    partial = numbers["partial"]
    listed = "; ".join(
        f"{name} {_pair(cell['greedy'])} greedy, {_pair(cell['sampled'])} sampled"
        f" ({cell['greedy']['n']} questions)"
        for name, cell in partial.items()
    )
    lines.append(f"\nOf the partly known people, what is covered and what is a gap: {listed}.")
    title = "Biographies; share of claims that are true of the person, claims, share not declined"
    lines += _texts(title, numbers["biography"], ("factscore_on_subject", "claims", "responded"))
    columns = ("form", "facets", "off_subject", "fact_per_sentence", "citation_precision")
    title = (
        "Texts on two facets from passages; right form, share of facets, claims about neither,"
        " sentences that the passages state, citations that hold"
    )
    lines += _texts(title, numbers["two_facets"], columns)
    return "\n".join([*lines, *_skills(numbers)]) + "\n"


BY_CHANCE = {"comparison": 0.5, "yes_no": 0.5}
READING = {
    "one": "one passage, of somebody who is in no document",
    "several": "numbered passages of different people",
    "who": "sentences that differ in the name and the answer alone: who is meant decides",
    "stale": (
        "three numbered passages, two editions of one page, of seven years, among them: the newer"
        " is right"
    ),
    "none": "nothing in the passages answers: to abstain is right",
    "page": "the page of somebody who has a page and no document",
}


def _skills(numbers: JsonMapping) -> list[str]:
    lines = [
        "\nReading, greedy; shares of correct / abstained answers:\n",
        "| prompt | questions | |",
        "|---|---|---|",
    ]
    lines += [
        f"| {READING[kind]} | {cell['n']} | {_pair(cell)} |"
        for kind, cell in numbers["reading"].items()
    ]
    lines += [
        (
            "\nAnswers that are thought about first, greedy accuracy (abstained); by chance: what a"
            " guess between two gets:\n"
        ),
        "| kind | questions | | by chance |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {kind} | {cell['n']} | {_pair(cell)} | {_number(BY_CHANCE.get(kind))} |"
        for kind, cell in numbers["reasoned"].items()
    ]
    return lines


def _pair(cell: JsonMapping) -> str:
    """Accuracy and abstention, of a table with intervals or of plain shares."""
    shares = (cell[rate] for rate in ("accuracy", "abstention"))
    return " / ".join(
        _number(share["value"] if isinstance(share, Mapping) else share) for share in shares
    )


def _texts(title: str, numbers: JsonMapping, metrics: Sequence[str]) -> list[str]:
    """A table of whole texts by tier, greedy and sampled."""
    lines = [f"\n{title}:\n", "| tier | texts | greedy | sampled (T=1) |", "|---|---|---|---|"]
    for tier, greedy in numbers["greedy"]["by_tier"].items():
        cells = (
            " / ".join(_number(cell.get(name, {}).get("value")) for name in metrics)
            for cell in (greedy, numbers["sampled"]["by_tier"][tier])
        )
        lines.append(f"| {tier} | {greedy['n']} | {' | '.join(cells)} |")
    return lines


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
