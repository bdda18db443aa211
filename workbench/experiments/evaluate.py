"""Policy + questions -> one table: outcome rates and claim metrics, greedy and sampled, by tier
and kind.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.methods.bench import Bench, check_policy
from workbench.methods.bench import bench as bench_of
from workbench.methods.method import chosen_questions
from workbench.metrics import RATES, Row, breakdown, claim_table, facet_table, rows_of, table
from workbench.pipeline import SAID, assemble
from workbench.policies.generate import Policy, generate
from workbench.policies.load import Engine, check_engine
from workbench.runs.folder import read_json
from workbench.runs.store import append_feedback
from workbench.types import Checks, Feedback, Grade, Question, WorkbenchError
from workbench.util.failures import check_failed, failures
from workbench.util.threads import use_threads
from workbench.verdicts.llm_judge import LLMJudge

if TYPE_CHECKING:
    import pandas as pd

MEASURED = ("outcome", "fact")  # the checks that an evaluation asks for, where there are any


def evaluate_policy(
    policy: str,
    split: str,
    bench: str | Bench,
    samples: int = 1,
    seed: int = 0,
    limit: int | None = None,
    kinds: Sequence[str] | None = None,
    threads: int | None = None,
    questions: str | Path | None = None,
    lang: str = "en",
    judge: LLMJudge | None = None,
    max_failed: float = 1.0,
    as_trained: bool = True,
    engine: Engine = "hf",
    out: Path | None = None,
) -> dict[str, Any]:
    """Evaluate a policy on one split of a bench, by the bench's own checks.

    Args:
        policy: a checkpoint folder, a run folder, a hub name, or "sft" / "base" for the bench's
        own checkpoints.
        split: the split's name ("validation", "test", "ood", …).
        bench: the bench, or its name.
        samples: sampled responses a question (temperature 1), beside the greedy one; 0 for
        greedy alone.
        limit: evaluate the first `limit` questions of a reproducible shuffle, so that every tier
        is met.
        kinds: question kinds to keep, those without gold answers too, which claim metrics are
        reported for; by default all
            whose questions have gold answers.
        questions: the data set or question file of a bench, given by name, that has no questions
        of its own.
        lang: the language to ask in; "l2" is the second one of the tiny bench's world.
        judge: the language model that judges in the place of the bench's own checks.
        max_failed: the share of failed responses, as `workbench.util.failures` has it, above which
        there is no report.
        as_trained: a run's policy is told what it was told in training; False for a bench that
        tells what is wanted.
        engine: what generates, transformers (hf) or vllm; the report names it, unless it is hf.
        out: a new file for the graded greedy answers, which may then be compared with another
        policy's (`metrics.pairs`).

    Raises:
        WorkbenchError: `out` is there already, the policy, bench or split is unknown, no
        question is left, or `judge` gives no
            verdict.
        TooManyFailures: more than `max_failed` of the responses failed.
    """
    chosen = bench_of(bench, questions=questions) if isinstance(bench, str) else bench
    chosen = chosen.with_judge(judge)
    check_engine(engine)
    if out is not None and out.exists():
        raise WorkbenchError(f"{out} is there already: name another file, or remove it")
    check_policy(policy, chosen.path(policy))
    if as_trained:
        chosen = chosen.with_system_prompt(told(chosen.path(policy)))
    selected = select(chosen_questions(chosen, split, kinds, lang), limit, seed)
    if judge:
        judge.try_out()
    with use_threads(threads):
        loaded = chosen.load(policy, engine)
        grade, most = evaluation_grade(chosen.checks), chosen.longest(selected)
        result = evaluate(
            loaded,
            selected,
            grade,
            most,
            samples=samples,
            seed=seed,
            max_failed=max_failed,
            out=out,
        )
    return (
        result | {"policy": policy, "split": split} | ({"engine": engine} if engine != "hf" else {})
    )


def told(policy: str) -> str | None:
    """What a run's policy, or one that a stage of it has left, was told before each question;
    None where that is what its bench tells it."""
    prompts = (trained_with(policy) or {}).get("prompts")
    return prompts.get("system") if isinstance(prompts, Mapping) else None


def trained_with(policy: str) -> Mapping[str, Any] | None:
    """The stored config of the run that a policy is of, by the run's folder or by that of any
    policy in it; None where it is no run's."""
    folder = Path(policy)
    places = (folder, *list(folder.parents)[:3])  # the run, its policy/, that of one of its stages/
    configs = ((read_json(place / "config.json") or {}).get("config") for place in places)
    return next((config for config in configs if isinstance(config, Mapping)), None)


def evaluation_grade(checks: Checks) -> Grade:
    """Outcomes, where there are gold answers, and the facts of what a response says, as far as
    these checks give them.
    """
    return assemble(
        checks, [name for name in MEASURED if name in checks.verify], {}, SAID, where_given=True
    )


def evaluate(
    policy: Policy,
    questions: Sequence[Question],
    grade: Grade,
    max_new_tokens: int,
    *,
    samples: int = 1,
    seed: int = 0,
    max_failed: float = 1.0,
    out: Path | None = None,
) -> dict[str, Any]:
    """Evaluate a loaded policy on `questions`, graded by `grade`; see `report` for the result.
    `out` keeps the greedy answers.

    Raises:
        TooManyFailures: more than `max_failed` of the responses failed.
    """
    greedy = grade(generate(policy, questions, max_new_tokens=max_new_tokens, greedy=True))
    drawn: list[Feedback] = []
    if samples:
        drawn = grade(
            generate(policy, questions, max_new_tokens=max_new_tokens, samples=samples, seed=seed)
        )
    graded = [*greedy, *drawn]
    errors = [found[0]["message"] for one in graded if (found := failures(one.to_row()))]
    check_failed(errors, len(graded), max_failed, "answers of an evaluation could not be graded")
    if out is not None:
        append_feedback(out, greedy)
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
    """`{policy, split, n, seeds, greedy, sampled}`; each of the last two has the outcome rates
    of `metrics.table` and, where responses were read for claims, those of `metrics.claim_table`,
    of two facets also those of `metrics.facet_table`; and the same again `by_tier` and
    `by_kind`.

    `n` counts questions; intervals are 95 % bootstraps over questions. Empty input gives null
    values, never NaN.
    """
    options: dict[str, Any] = {"seed": seeds[0] if seeds else 0, "resamples": resamples}

    def measured(graded: Sequence[tuple[Feedback, Row]]) -> dict[str, Any]:
        feedbacks, rows = [one for one, _ in graded], [row for _, row in graded]
        return {
            **table(feedbacks, **options),
            **claim_table(rows, **options),
            **facet_table(feedbacks, rows, **options),
        }

    def block(feedbacks: Sequence[Feedback]) -> dict[str, Any]:
        graded = list(zip(feedbacks, rows_of(feedbacks, tuple(SAID)), strict=True))
        return {
            **measured(graded),
            "by_tier": breakdown(
                graded, lambda one: one[0].response.question.meta.get("tier"), measured
            ),
            "by_kind": breakdown(graded, lambda one: one[0].response.question.kind, measured),
        }

    tables = {"greedy": block(greedy), "sampled": block(sampled)}
    n = max(part["n"] for part in tables.values())
    return {"policy": policy, "split": split, "n": n, "seeds": list(seeds), **tables}


def compare(
    reports: Mapping[str, Mapping[str, Any]], mode: str = "greedy", tiers: Sequence[str] = ()
) -> pd.DataFrame:
    """Several policies' reports as one table: a row for each tier (first "all", with 95 %
    intervals) and policy.

    Tiers come in the order of `tiers`, those that it does not name after them. "–" stands for
    what a report does not have.
    """
    import pandas as pd

    there = dict.fromkeys(tier for report in reports.values() for tier in report[mode]["by_tier"])
    ordered = [tier for tier in tiers if tier in there]
    rows = []
    for tier in ("all", *ordered, *(tier for tier in there if tier not in tiers)):
        for label, report in reports.items():
            cells = report[mode] if tier == "all" else report[mode]["by_tier"].get(tier, {})
            rates = {rate: _text(cells.get(rate), tier == "all") for rate in RATES}
            rows.append({"tier": tier, "policy": label, **rates})
    return pd.DataFrame(rows)


def _text(cell: Mapping[str, float | None] | None, interval: bool) -> str:
    if cell is None or cell["value"] is None:
        return "–"
    bounds = f" [{cell['low']:.2f}, {cell['high']:.2f}]" if interval else ""
    return f"{cell['value']:.2f}{bounds}"


def select(questions: Sequence[Question], limit: int | None, seed: int) -> list[Question]:
    """All questions in their order, or `limit` of them drawn with `seed`."""
    if limit is None or limit >= len(questions):
        return list(questions)
    if limit < 1:
        raise WorkbenchError(f"limit is {limit}: it must be at least 1")
    return random.Random(seed).sample(list(questions), limit)
