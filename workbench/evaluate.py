"""Policy + questions -> one table: greedy and sampled accuracy, abstention, hallucination and truthfulness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.metrics import RATES, breakdown, table
from workbench.threads import use_threads
from workbench.types import Feedback, Grade, Question, WorkbenchError
from workbench.world.facts import TIERS

if TYPE_CHECKING:
    import pandas as pd


def evaluate_policy(
    policy: str,
    split: str,
    bench: str,
    samples: int = 1,
    seed: int = 0,
    limit: int | None = None,
    kinds: Sequence[str] | None = None,
    threads: int | None = None,
    questions: str | Path | None = None,
    lang: str = "en",
) -> dict[str, Any]:
    """Evaluate a policy on one split of a bench.

    Args:
        policy: a checkpoint folder, a run folder, a hub name, or "sft" / "base" for the bench's own checkpoints.
        split: the split's name ("validation", "test", "ood", …).
        bench: the bench's name.
        samples: sampled responses a question (temperature 1), beside the greedy one; 0 for greedy alone.
        limit: evaluate the first `limit` questions of a reproducible shuffle, so that every tier is met.
        kinds: question kinds to keep; by default all whose questions have gold answers.
        questions: the data set or question file of a bench that has no questions of its own.
        lang: the language to ask in; "l2" is the second one of the tiny bench's world.

    Raises:
        WorkbenchError: unknown policy, bench or split, or no question is left.
    """
    import workbench.bench as benches

    chosen = benches.bench(bench, questions=questions)
    found = chosen.questions(split, kinds, lang)
    asked = select(found if kinds else [question for question in found if question.answers], limit, seed)
    if not asked:
        wanted = f"split '{split}'" + (f" of kinds {list(kinds)}" if kinds else "") + (f" in '{lang}'" if lang != "en" else "")
        raise WorkbenchError(f"no questions in {wanted}: name others")
    with use_threads(threads):
        loaded = chosen.load(policy)
        return evaluate(loaded, asked, chosen.grade(), chosen.max_new_tokens, samples=samples, seed=seed) | {
            "policy": policy,
            "split": split,
        }


def evaluate(
    policy: Any, questions: Sequence[Question], grade: Grade, max_new_tokens: int, *, samples: int = 1, seed: int = 0
) -> dict[str, Any]:
    """Evaluate a loaded `generate.Policy` on `questions`, graded by `grade`; see `report` for the result."""
    from workbench.generate import generate

    greedy = grade(generate(policy, questions, max_new_tokens=max_new_tokens, greedy=True))
    drawn: list[Feedback] = []
    if samples:
        drawn = grade(generate(policy, questions, max_new_tokens=max_new_tokens, samples=samples, seed=seed))
    return report(greedy, drawn, policy=policy.name, seeds=[seed])


def report(
    greedy: Sequence[Feedback],
    sampled: Sequence[Feedback],
    *,
    policy: str = "",
    split: str = "",
    seeds: Sequence[int] = (0,),
    resamples: int = 2000,
) -> dict[str, Any]:
    """`{policy, split, n, seeds, greedy, sampled}`; each of the last two is `metrics.table` with `by_tier`, `by_kind`.

    `n` counts questions; intervals are 95 % bootstraps over questions. Empty input gives null values, never NaN.
    """

    def block(feedbacks: Sequence[Feedback]) -> dict[str, Any]:
        options: dict[str, Any] = {"seed": seeds[0] if seeds else 0, "resamples": resamples}
        return {
            **table(feedbacks, **options),
            "by_tier": breakdown(feedbacks, lambda f: f.response.question.meta.get("tier"), **options),
            "by_kind": breakdown(feedbacks, lambda f: f.response.question.kind, **options),
        }

    tables = {"greedy": block(greedy), "sampled": block(sampled)}
    n = max(part["n"] for part in tables.values())
    return {"policy": policy, "split": split, "n": n, "seeds": list(seeds), **tables}


def compare(reports: Mapping[str, Mapping[str, Any]], mode: str = "greedy") -> pd.DataFrame:
    """Several policies' reports as one table: a row for each tier (first "all", with 95 % intervals) and policy.

    "–" stands for what a report does not have.
    """
    import pandas as pd

    tiers = dict.fromkeys(tier for report in reports.values() for tier in report[mode]["by_tier"])
    rows = []
    for tier in ("all", *(tier for tier in TIERS if tier in tiers)):
        for label, report in reports.items():
            cell = report[mode] if tier == "all" else report[mode]["by_tier"].get(tier, {})
            rows.append({"tier": tier, "policy": label, **{rate: _shown(cell.get(rate), tier == "all") for rate in RATES}})
    return pd.DataFrame(rows)


def _shown(cell: Mapping[str, float | None] | None, interval: bool) -> str:
    if cell is None or cell["value"] is None:
        return "–"
    return f"{cell['value']:.2f}" + (f" [{cell['low']:.2f}, {cell['high']:.2f}]" if interval else "")


def select(questions: Sequence[Question], limit: int | None, seed: int) -> list[Question]:
    """All questions in their order, or `limit` of them drawn with `seed`."""
    import random

    if limit is None or limit >= len(questions):
        return list(questions)
    if limit < 1:
        raise WorkbenchError(f"limit is {limit}: it must be at least 1")
    return random.Random(seed).sample(list(questions), limit)
