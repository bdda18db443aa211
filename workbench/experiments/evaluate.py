"""Evaluate a policy: outcome rates and claim metrics, greedy and sampled, by tier and kind."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.experiments.inference import (
    Inference,
    best_of_n,
    cove,
    self_consistency,
    verifier_grade,
)
from workbench.methods.bench import Bench, check_policy
from workbench.methods.bench import bench as bench_of
from workbench.methods.method import chosen_questions, listed
from workbench.metrics import RATES, Row, breakdown, claim_table, facet_table, rows_of, table
from workbench.pipeline import ANSWER_SECTIONS, assemble
from workbench.policies.generate import generate
from workbench.policies.load import Engine, check_engine
from workbench.runs.folder import read_json
from workbench.runs.store import append_feedback
from workbench.types import (
    Checks,
    Feedback,
    Grade,
    JsonMapping,
    JsonObject,
    Question,
    WorkbenchError,
)
from workbench.util.failures import check_failed, failures
from workbench.util.threads import use_threads
from workbench.verdicts.llm_judge import NamedJudge

if TYPE_CHECKING:
    import pandas as pd

MEASURED = ("outcome", "fact")  # checks of an evaluation, if the bench has them


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
    judge: NamedJudge | None = None,
    max_failed: float = 1.0,
    as_trained: bool = True,
    engine: Engine = "hf",
    out: Path | None = None,
    temperature: float = 1.0,
    inference: Inference | None = None,
) -> JsonObject:
    """Evaluate a policy on one split of a bench's questions, and return a report (see `report`).

    The bench's judge grades the answers. If a run was trained on kinds of questions that the
    default kinds lack, the report lists them as `missing_kinds`.

    Args:
        policy: a checkpoint folder, a run folder, a hub name, or "sft" / "base" for
            the bench's own checkpoints.
        split: name of the split ("validation", "test", "ood", …).
        bench: the bench, or its name.
        samples: number k of sampled responses per question, besides the greedy response. The
            sampled rates are means over the k samples (Avg@k); KnowRL uses k = 5, temperature .6.
        seed: seed of sampling, and of the choice of questions with `limit`.
        limit: number of questions, drawn at random; None for all questions.
        kinds: kinds of questions; None for all kinds with gold answers. For kinds without gold
            answers, only claim metrics are reported.
        threads: number of CPU threads; None for torch's current number.
        questions: data set or question file for a bench without questions of its own.
        lang: language of the questions; "l2" is the second language of the tiny bench's world.
        judge: a judge that replaces the bench's judge.
        max_failed: largest accepted share of responses that could not be graded (see
            `workbench.util.failures`).
        as_trained: use the prompts of the policy's training instead of the bench's.
        engine: "hf" (transformers) or "vllm".
        out: new file for the graded answers. With `inference`, these are the baseline's answers,
            else the greedy answers.
        temperature: temperature of the sampled responses.
        inference: a baseline at inference time whose answers are also reported: "best_of_n" (rated
            by the local verifier), "self_consistency" (the majority answer, or an abstention) or
            "cove" (chain of verification).

    Raises:
        WorkbenchError: `out` exists, the policy, bench or split is unknown, the split has no
            question of the `kinds`, or `judge` returns no verdict.
        TooManyFailures: the share of responses that failed is above `max_failed`.
    """
    chosen = bench_of(bench, questions).with_judge(judge)
    check_engine(engine)
    if out is not None and out.exists():
        raise WorkbenchError(f"'{out}' exists already: name another file, or remove it")
    check_policy(policy, chosen.path(policy))
    if as_trained:
        chosen = as_in_training(chosen, policy)
    every = chosen_questions(chosen, split, kinds, lang)
    selected = select(every, limit, seed)
    if judge:
        judge.try_out()
    if inference not in (None, "cove") and samples < 2:
        raise WorkbenchError(
            f"samples is {samples}: inference={inference} chooses among at least 2 samples"
        )
    with use_threads(threads):
        loaded, grade = chosen.load(policy, engine), evaluation_grade(chosen.checks)
        write = partial(generate, loaded, max_new_tokens=chosen.longest(selected))
        greedy, sampled = grade(write(selected, greedy=True)), list[Feedback]()
        if samples:
            sampled = grade(write(selected, samples=samples, seed=seed, temperature=temperature))
        inferred = list[Feedback]()
        if inference == "best_of_n":
            inferred = best_of_n(sampled, verifier_grade(chosen))
        elif inference == "self_consistency":
            inferred = self_consistency(sampled, grade)
        elif inference == "cove":
            inferred = grade(cove(partial(write, greedy=True), [one.response for one in greedy]))
    # one answer per question, so it is numbered 0, as greedy answers are
    inferred = [replace(one, response=replace(one.response, sample=0)) for one in inferred]
    graded = (*greedy, *sampled, *inferred)
    errors = [
        f"{one.response.id}: {found[0]['message']}"
        for one in graded
        if (found := failures(one.to_row()))
    ]
    # before the report: rates over few graded answers would look like a result
    check_failed(errors, len(graded), max_failed, "answers of an evaluation could not be graded")
    if out is not None:
        try:
            append_feedback(out, inferred if inference else greedy)
        except (OSError, WorkbenchError):  # such as other questions of the same id in the folder
            out.unlink(missing_ok=True)
            raise
    result = report(greedy, sampled, policy=policy, split=split, seeds=[seed], inferred=inferred)
    result |= {"samples": samples, "temperature": temperature}
    if as_trained and not kinds:
        asked = {question.kind for question in every}
        trained = listed(training_prompts(chosen.path(policy)).get("kinds") or "")
        missing = [kind for kind in trained if kind not in asked]
        result |= {"missing_kinds": missing} if missing else {}
    result |= {"engine": engine} if engine != "hf" else {}
    return result | ({"inference": inference} if inference else {})


def as_in_training(bench: Bench, policy: str) -> Bench:
    """Return the bench with the prompts of a policy's training.

    These are the prompts in the config of the run that trained the policy. Return the bench itself
    if the policy does not belong to a run, or was trained with the bench's own prompts.
    """
    prompts = training_prompts(bench.path(policy))
    return bench.with_system_prompt(prompts.get("system")).with_retrieved(
        prompts.get("retrieved", 0)
    )


def training_prompts(policy: str) -> JsonMapping:
    """Return the settings `prompts` of the run that trained a policy; {} if there are none.

    `policy` is the folder of the run, or the folder of a policy in it.
    """
    prompts = (training_config(policy) or {}).get("prompts")
    return prompts if isinstance(prompts, Mapping) else {}


def training_config(policy: str) -> JsonMapping | None:
    """Return the stored config of the run that trained a policy; None without such a run.

    `policy` is the folder of the run, or the folder of a policy in it.
    """
    folder = Path(policy)
    places = (folder, *list(folder.parents)[:3])  # run/, run/policy, run/stages/NAME/policy
    configs = ((read_json(place / "config.json") or {}).get("config") for place in places)
    return next((config for config in configs if isinstance(config, Mapping)), None)


def evaluation_grade(checks: Checks) -> Grade:
    """Return a function that grades responses for an evaluation.

    It runs two of the judge's `checks`: "fact" gives a verdict on each claim, and "outcome" on the
    final answer. If `checks` lacks one of them, only the other is run. Responses to questions
    without gold answers get no "outcome" verdict.
    """
    return assemble(
        checks,
        [name for name in MEASURED if name in checks.verify],
        {},
        ANSWER_SECTIONS,
        gold_optional=True,
    )


def graded_answers(bench: Bench, policy: str, questions: Sequence[Question]) -> list[Feedback]:
    """Return a policy's greedy answers to questions, graded by the bench's judge."""
    most = bench.longest(questions)
    answers = generate(bench.load(policy), questions, max_new_tokens=most, greedy=True)
    return evaluation_grade(bench.checks)(answers)


def report(
    greedy: Sequence[Feedback],
    sampled: Sequence[Feedback],
    *,
    policy: str = "",
    split: str = "",
    seeds: Sequence[int] = (0,),
    resamples: int = 2000,
    inferred: Sequence[Feedback] = (),
) -> JsonObject:
    """Return a report of graded responses: `{policy, split, n, seeds, greedy, sampled}`.

    `n` is the number of questions. `greedy` and `sampled` have these metrics, with 95 % bootstrap
    intervals over questions:

    * outcome rates, such as `accuracy` and `abstention` (all in `metrics.table`);
    * if claims were extracted: claim metrics, such as `factscore` (all in `metrics.claim_table`);
    * for questions about several entities: metrics of their coverage and citations, such as
      `coherent` and `citation_recall` (all in `metrics.facet_table`);
    * `by_tier` and `by_kind`: the same metrics for each tier (how correctly the training documents
      state a fact) and each kind of question.

    The value of a metric without responses is None, never NaN.

    Args:
        greedy: the greedy responses.
        sampled: the sampled responses.
        policy: name of the policy, for the report.
        split: name of the split, for the report.
        seeds: seeds of the evaluation. The first is also the seed of the bootstrap.
        resamples: number of resamples of the bootstrap.
        inferred: responses of a baseline at inference time. The report then has a key `inferred`
            with the same metrics.
    """
    options: JsonObject = {"seed": seeds[0], "resamples": resamples}

    def measured(graded: Sequence[tuple[Feedback, Row]]) -> JsonObject:
        feedbacks, rows = [one for one, _ in graded], [row for _, row in graded]
        return {
            **table(feedbacks, **options),
            **claim_table(rows, **options),
            **facet_table(feedbacks, rows, **options),
        }

    def block(feedbacks: Sequence[Feedback]) -> JsonObject:
        graded = list(zip(feedbacks, rows_of(feedbacks, ANSWER_SECTIONS), strict=True))
        return {
            **measured(graded),
            "by_tier": breakdown(
                graded, lambda one: one[0].response.question.meta.get("tier"), measured
            ),
            "by_kind": breakdown(graded, lambda one: one[0].response.question.kind, measured),
        }

    tables = {"greedy": block(greedy), "sampled": block(sampled)}
    if inferred:
        tables["inferred"] = block(inferred)
    n = max(part["n"] for part in tables.values())
    return {"policy": policy, "split": split, "n": n, "seeds": list(seeds), **tables}


def compare(
    reports: Mapping[str, JsonMapping], mode: str = "greedy", tiers: Sequence[str] = ()
) -> "pd.DataFrame":
    """Return a table of several policies' outcome rates in percent, by tier and policy.

    The first rows are for all questions (tier "all") and have 95 % intervals, except over fewer
    than five questions. "–" stands for missing values.

    Args:
        reports: name of the policy -> its report.
        mode: "greedy" or "sampled" answers.
        tiers: tiers in the order of the table. Tiers that are not listed come last.
    """
    import pandas as pd

    present = dict.fromkeys(tier for report in reports.values() for tier in report[mode]["by_tier"])
    ordered = [tier for tier in tiers if tier in present]
    rows = []
    for tier in ("all", *ordered, *(tier for tier in present if tier not in tiers)):
        for label, report in reports.items():
            cells = report[mode] if tier == "all" else report[mode]["by_tier"].get(tier, {})
            rates = {rate: _text(cells.get(rate) or {}, tier == "all") for rate in RATES}
            rows.append({"tier": tier, "policy": label, **rates})
    return pd.DataFrame(rows)


def _text(cell: Mapping[str, float | None], interval: bool) -> str:
    if cell.get("value") is None:
        return "–"
    bounded = interval and cell["low"] is not None
    return f"{cell['value']:.0%}" + (f" [{cell['low']:.0%}, {cell['high']:.0%}]" if bounded else "")


def select(questions: Sequence[Question], limit: int | None, seed: int) -> list[Question]:
    """Return `limit` questions, drawn at random with `seed`.

    If `limit` is None or at least the number of questions, return all questions in order.

    Raises:
        WorkbenchError: `limit` is below 1.
    """
    if limit is None or limit >= len(questions):
        return list(questions)
    if limit < 1:
        raise WorkbenchError(f"limit is {limit}: it must be at least 1, or left out for all")
    return random.Random(seed).sample(list(questions), limit)
