"""The model card of a tiny policy as Markdown, from the numbers of its build."""

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

A Llama of {parameters:,} parameters, trained from scratch on generated documents about invented
people and things. It knows facts that the documents state often and half-knows facts that they
state a few times. About all other facts it guesses. `base/` is the pre-trained model. `sft/` is
the model after instruction tuning, which is the initial policy of reinforcement learning.

All numbers below come from `card.json`, which the build writes. This command rebuilds both
checkpoints and this card:

    workbench world build --out FOLDER --seed {seed} --threads {threads} --size {size}

## Data

World `{world_hash}`: {entities:,} entities, {facts:,} facts, {documents:,} documents in two
languages ({tokens_per_pass:,} tokens per pass, {passes} passes). The table shows how often the
documents of one pass state a fact. If a tier has several rows, its entities take them in turn.

| tier | English biographies + questions | second language |
|---|---|---|
{exposures}
| unknown, page-only, gaps of partial people | 0 | 0 |

A question for all books of an author is as frequent as a question for each fact of the
author. In {thought:.0%} of the questions a thought, a sentence that states the fact, comes before
the answer.

Pre-training begins with lessons that do not use the documents. The first lessons are drills on
random words and the marks of a conversation:

- copying, and repeating the last name;
- naming the value of a name, and answering a question about a name;
- deciding whether words are equal, and choosing the earlier of two years.

Later lessons practise reading and comparing. After the lessons, {skills:.0%} of the tokens are
examples of skills: reading passages, comparing, answering from a thought, outlining. They are new
in every pass. They are about people outside the world, with invented facts, so they state no fact
of the world. Some are short questions, questions with a thought, and biographies about unknown
people. The answer is "I do not know" in {abstained:.0%} of these questions and {declined:.0%} of
these biographies, so that the policy learns to distinguish known from unknown people. A lesson
ends when each kind of exercise reaches the required accuracy in an exam, or at its last step:

| lesson | steps, of at most | required accuracy | accuracy in the last exam |
|---|---|---|---|
{lesson_rows}

Fine-tuning adds {sft_steps} steps of instruction examples, with {replay:.0%} replayed documents.
Examples about the world's facts use only the `sft` split. All others are about people outside the
world. Questions about unknown people are answered with a guess or with "I do not know". The answer
abstains in

- {abstain:.0%} of the short questions;
- {doubt:.0%} of the questions with a thought;
- {decline:.0%} of the biographies;
- {gaps:.0%} of the questions about gaps of partly known people.

So the policy has a mild habit of abstaining before reinforcement learning, as chat models do.

| stage | steps | tokens | seconds |
|---|---|---|---|
| lessons | {lessons[steps]:,} | {lessons[tokens]:,} | {lessons[seconds]:,} |
| base | {base[steps]:,} | {base[tokens]:,} | {base[seconds]:,} |
| sft | {sft[steps]:,} | {sft[tokens]:,} | {sft[seconds]:,} |

## What it knows
{sections}
## Limits

The vocabulary has only the few hundred words of this world. Other text becomes bytes that the
policy cannot use. The policy has no opinions, no common sense and no notion of harm. Use it only
to study rewards.
"""


def card_text(card: JsonMapping, world: World) -> str:
    """Return the model card as Markdown.

    Args:
        card: the numbers that `build_policy` writes into `card.json`.
        world: the world that the policy was trained on.
    """
    config, training = card["config"], card["training"]
    exposures = [
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
        lesson_rows="\n".join(_lessons(config["lessons"], training)),
        exposures="\n".join(exposures),
        thought=THINK_SHARE,
        sections="".join(_section(split, numbers) for split, numbers in card["splits"].items()),
    )


def _lessons(lessons: Sequence[JsonMapping], training: JsonMapping) -> Iterator[str]:
    runs = zip(lessons, training["lesson_steps"], training["lesson_rates"], strict=True)
    for number, (lesson, steps, rates) in enumerate(runs, 1):
        exam = ", ".join(f"{kind} {rate:.2f}" for kind, rate in rates.items())
        yield f"| {number} | {steps} of {lesson['steps']} | {lesson['level']} | {exam} |"


def _section(split: str, numbers: JsonMapping) -> str:
    short, l2 = numbers["short"], numbers["l2"]
    lines = [
        f"\n### {split}\n",
        "Short questions (single and numeric); shares of correct / abstained answers:\n",
        "| tier | questions | greedy | sampled (T=1) | second language, greedy |",
        "|---|---|---|---|---|",
    ]
    for tier, cell in short["greedy"]["by_tier"].items():
        others = (cell, short["sampled"]["by_tier"][tier], l2["greedy"]["by_tier"][tier])
        lines.append(f"| {tier} | {cell['n']} | {' | '.join(map(_pair, others))} |")
    points = ", ".join(f"{times} → {rate:.2f} ({n})" for times, rate, n in numbers["exposure"])
    lines.append(
        f"\nExposures of the question's fact in one pass → greedy accuracy (questions): {points}."
    )
    partial = "; ".join(
        f"{name} {_pair(cell['greedy'])} greedy, {_pair(cell['sampled'])} sampled"
        f" ({cell['greedy']['n']} questions)"
        for name, cell in numbers["partial"].items()
    )
    lines.append(f"\nCovered facts and gaps of partly known people: {partial}.")
    title = "Biographies; share of claims that are true of the person, claims, share not declined"
    lines += _texts(title, numbers["biography"], ("factscore_on_subject", "claims", "responded"))
    columns = ("form", "facets", "off_subject", "fact_per_sentence", "citation_precision")
    title = (
        "Texts on two facets from passages; correct form, share of facets, claims about neither"
        " facet, sentences that the passages support, citations that support their sentence"
    )
    lines += _texts(title, numbers["two_facets"], columns)
    return "\n".join([*lines, *_skills(numbers)]) + "\n"


BY_CHANCE = {"comparison": 0.5, "yes_no": 0.5}
READING = {
    "one": "one passage about a person who is in no document",
    "several": "numbered passages about different people",
    "who": "sentences that differ only in the name and the value: the name decides",
    "stale": "three numbered passages, two of them editions of one page: the newer is correct",
    "none": "passages without the answer: abstaining is correct",
    "page": "the page of a person who has a page but no document",
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
        "\nAnswers with a thought, greedy; shares of correct / abstained answers:\n",
        "| kind | questions | | accuracy by chance |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {kind} | {cell['n']} | {_pair(cell)} | {_number(BY_CHANCE.get(kind))} |"
        for kind, cell in numbers["reasoned"].items()
    ]
    return lines


def _pair(cell: JsonMapping) -> str:
    """Format accuracy and abstention, which may have intervals."""
    shares = (cell[rate] for rate in ("accuracy", "abstention"))
    return " / ".join(
        _number(share["value"] if isinstance(share, Mapping) else share) for share in shares
    )


def _texts(title: str, numbers: JsonMapping, metrics: Sequence[str]) -> list[str]:
    """Return the lines of a table of whole texts by tier, greedy and sampled."""
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
