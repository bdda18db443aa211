"""All metrics of one feedback file, or of two files with paired tests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.metrics.bootstrap import Sums, collect, intervals, paired
from workbench.metrics.claims import CLAIM_METRICS, ON_SUBJECT, K, claim_terms, median_claims
from workbench.metrics.confidence import NO_ANSWERS, ranked, risk_coverage
from workbench.metrics.marks import mark_prompts, marks
from workbench.metrics.outcomes import RATES, RESAMPLES, SIMPLEQA, outcome_terms
from workbench.metrics.pairs import judge_pairs, pair_files, win_rate
from workbench.metrics.rows import STATES, Row, check_one_policy, file_of, read_rows
from workbench.types import JsonObject, Judge, WorkbenchError

IN_EVALUATIONS = ("factscore", "correct", "incorrect", "responded", "claims", *ON_SUBJECT)


@dataclass(frozen=True)
class Settings:
    """Settings for `summarise`, `compare`, `paired_runs` and `over_runs`.

    Attributes:
        k: K of recall@K and F1@K.
        veriscore_k: K of VeriScore. None: `summarise` uses the median number of claims of a
            response; the other functions leave VeriScore undefined.
        seed: seed of the bootstrap.
        resamples: number of resamples of the bootstrap.
    """

    k: int = K  # of recall@K and F1@K
    veriscore_k: int | None = None  # VeriScore's K; by default the median number of claims
    seed: int = 0
    resamples: int = RESAMPLES


def compare_files(
    feedback: Path | str,
    other: Path | str | None = None,
    *,
    judge: Judge | None = None,
    k: int = K,
    sections: Sequence[str] = (),
    seed: int = 0,
    resamples: int = RESAMPLES,
    several_steps: bool = False,
) -> JsonObject:
    """Return all metrics of `feedback` and, with `other`, the differences of the two files.

    The result has the entries of `summarise(feedback)`. With `other`, it also has the entries of
    `compare`, whose differences are `feedback` minus `other`.

    Args:
        feedback, other: files of feedback rows, or folders of runs. For a folder, the evaluation
            after training is read or, without one, the training rollouts.
        judge: adds metrics. With `other`, it compares the two answers to each question (win rate).
            Without `other`, it rates coherence and helpfulness of each answer from 1 to 5. None:
            these metrics are left out.
        k: K of recall@K and F1@K. VeriScore has another K: the median number of claims of the
            responses with claims, in both files together.
        sections: count only claims in these sections of the response ("think", "answer", "body");
            empty for all.
        seed: seed of the bootstrap.
        resamples: number of resamples of the bootstrap.
        several_steps: accept files with rollouts of several training steps.

    Raises:
        WorkbenchError: a file is missing, not feedback or not judged; the files have no common
            question; or one of two files has answers of several training steps.
    """

    def read(path: Path | str) -> list[Row]:
        loaded = read_rows(path, sections)
        # win rates and marks need no stored verdicts
        if judge is None and loaded and all(row.state == "not_judged" for row in loaded):
            lacking = sum(row.no_gold for row in loaded)
            why = f" ({lacking} have no gold answer to be compared with)" if lacking else ""
            raise WorkbenchError(
                f"{path}: 0 of {len(loaded)} rows are judged{why}: run `workbench score --in"
                f" {file_of(path)} --out NEW.jsonl` to judge them"
            )
        if other is not None and not several_steps:
            check_one_policy(path, (row.step for row in loaded))
        return loaded

    pairs = pair_files(feedback, other) if judge and other is not None else None
    prompts = mark_prompts(feedback) if judge and other is None else ()
    rows = read(feedback)
    others = read(other) if other is not None else None
    # one K for both files, or VeriScore could not be compared
    settings = Settings(k, median_claims([*rows, *(others or ())]), seed, resamples)
    result = {"file": str(file_of(feedback)), **summarise(rows, settings)}
    if other is not None and others is not None:
        if not _common([rows, others]):
            raise WorkbenchError(
                f"no question is in both files ({feedback} has {len(rows)} rows, {other}"
                f" {len(others)}): give two files about the same questions, or one file"
            )
        result["other"] = {"file": str(file_of(other)), **summarise(others, settings)}
        result |= compare(rows, others, settings)
    if judge is not None and pairs is not None:
        duels, result["judge"] = judge_pairs(judge, pairs.pairs)
        result |= win_rate(duels, len(pairs.pairs) - len(duels), seed, resamples)
        result["pairs"] |= pairs.left_out
    elif judge is not None:
        result |= marks(judge, prompts, seed, resamples)
    return result


def summarise(rows: Sequence[Row], settings: Settings | None = None) -> JsonObject:
    """Return all metrics of one file's rows: `{n, questions, …, <metric>: {value, low, high, n}}`.

    A metric is for example "factscore" or "accuracy". The other entries include:

    * `n`: number of responses. Inside a metric, `n` is the number of questions that have a value.
    * `steps`: number of distinct training steps, each with another policy; 0 if rows have no step.
    * `excluded`: state, such as "failed" -> number of responses in this state (see `Row`). The
      state "scored" is left out.
    * `failed`: number of responses with a recorded failure.
    * `duplicate_ids`: number of responses with the id of an earlier response; `n` includes them.

    `low` and `high` are the 95 % bootstrap interval over questions. If a metric is undefined, its
    `value` is None and its `reason` says why. `settings` is by default `Settings()`.
    """
    settings = settings or Settings()
    if settings.veriscore_k is None:
        settings = replace(settings, veriscore_k=median_claims(rows))
    sums, answers = _sums(rows, settings), ranked(rows)
    states = [row.state for row in rows]
    ids = [row.id for row in rows if row.id]
    result: JsonObject = {
        "n": len(rows),
        "questions": len(sums.questions),
        "steps": len({row.step for row in rows} - {None}),
        "duplicate_ids": len(ids) - len(set(ids)),
        "failed": sum(row.failed for row in rows),
        "excluded": {state: states.count(state) for state in STATES if state != "scored"},
        "outcomes": {
            "scored": sum(row.outcome is not None for row in rows),
            "failed": sum(row.outcome_failed for row in rows),
            "no_gold": sum(row.no_gold for row in rows),
        },
    }
    cells = intervals(sums, settings.resamples, settings.seed, answers=answers)
    for name, cell in cells.items():
        undefined = {"reason": _reason(name, rows)} if cell["value"] is None else {}
        result[name] = {**cell, **undefined}
    return result | {
        "k": settings.k,
        "veriscore_k": settings.veriscore_k,
        "risk_coverage": risk_coverage(answers),
    }


def claim_table(rows: Sequence[Row], *, seed: int = 0, resamples: int = RESAMPLES) -> JsonObject:
    """Return the claim metrics that evaluations report: `{metric: {value, low, high, n}}`.

    The metrics are "recall@32", "f1@32" and those in `IN_EVALUATIONS`, such as "factscore" and
    "claims". `low` and `high` are the 95 % bootstrap interval over n questions. The dict is empty
    if claims were not extracted from any response.
    """
    if not any(row.extracted for row in rows):
        return {}
    settings = Settings(seed=seed, resamples=resamples)
    cells = intervals(_sums(rows, settings), resamples, seed)
    return {name: cells[name] for name in (*IN_EVALUATIONS, f"recall@{K}", f"f1@{K}")}


def compare(rows: Sequence[Row], others: Sequence[Row], settings: Settings) -> JsonObject:
    """Compare the rows of two files: return `{common, paired}`.

    * `common`: number of questions that are in both files.
    * `paired`: metric -> `{value, other, diff, low, high, p, n}`. `value` is the metric of `rows`,
      `other` that of `others`. `diff` is `value` − `other`, with the 95 % bootstrap interval from
      `low` to `high` and the two-sided p-value `p`. Only the `n` questions for which both files
      define the metric count. If the metric is undefined, its `reason` says why.
    """
    cells: dict[str, JsonObject] = {}
    for name, cell in paired_runs([rows], [others], settings).items():
        reason = "undefined in one of the files on their common questions"
        cells[name] = cell if cell["diff"] is not None else {**cell, "reason": reason}
    return {"common": len(_common([rows, others])), "paired": cells}


def paired_runs(
    runs: Sequence[Sequence[Row]], others: Sequence[Sequence[Row]], settings: Settings
) -> dict[str, JsonObject]:
    """Compare two policies that were trained with the same seeds.

    Return `{metric: {value, other, diff, low, high, p, n}}`:

    * `value`, `other`: the metric of the first and of the second policy, over all seeds.
    * `diff`, `low`, `high`: `value` − `other`, with its 95 % bootstrap interval.
    * `p`: two-sided bootstrap p-value.
    * `n`: number of questions for which both policies define the metric.

    The bootstrap resamples questions and seeds. With several seeds, the metrics of confidences,
    "aurc" and "auroc", are not computed, and their values are None.

    Args:
        runs: for each seed, the evaluated rows of the first policy.
        others: for each of the same seeds, the evaluated rows of the second policy.
    """
    common = _common([*runs, *others])
    answers = other_answers = NO_ANSWERS
    if len(runs) == 1:
        judged = {*ranked(runs[0]).questions} & {*ranked(others[0]).questions}
        answers, other_answers = (
            ranked([row for row in rows if row.question_id in judged])
            for rows in (runs[0], others[0])
        )
    return paired(
        (_stacked(runs, settings, common), answers),
        (_stacked(others, settings, common), other_answers),
        settings.resamples,
        settings.seed,
        len(runs),
    )


def over_runs(runs: Sequence[Sequence[Row]], settings: Settings) -> dict[str, JsonObject]:
    """Return the metrics of a policy that was trained with several seeds.

    The result is `{metric: {value, low, high, n}}`, with the 95 % bootstrap interval from `low` to
    `high` and the number n of questions that have a value. The bootstrap resamples questions and
    seeds. The metrics of confidences, "aurc" and "auroc", are not computed, and their values are
    None.

    Args:
        runs: for each seed, the evaluated rows of the policy.
    """
    sums = _stacked(runs, settings, _common(runs))
    return intervals(sums, settings.resamples, settings.seed, len(runs))


def _common(files: Sequence[Sequence[Row]]) -> set[str]:
    """Return the ids of the questions that occur in every file."""
    return set.intersection(*({row.question_id for row in rows} for rows in files))


def _stacked(files: Sequence[Sequence[Row]], settings: Settings, questions: set[str]) -> Sums:
    """Return the `Sums` of several files for the same questions, one file after another."""
    import numpy as np

    parts = [
        _sums([row for row in rows if row.question_id in questions], settings, questions)
        for rows in files
    ]
    return Sums(
        tuple(question for part in parts for question in part.questions),
        parts[0].names,
        np.concatenate([part.top_QM for part in parts]),
        np.concatenate([part.bottom_QM for part in parts]),
    )


def _sums(rows: Sequence[Row], settings: Settings, questions: set[str] | None = None) -> Sums:
    k = settings.k
    names = (*CLAIM_METRICS, f"recall@{k}", f"f1@{k}", "veriscore", *RATES, *SIMPLEQA)
    # If claims were not extracted, the claim metrics are undefined. They are not 0.
    states = {row.state for row in rows} - {"failed", "not_judged"}
    extracted = (
        states == {"abstained"}  # an abstention makes no claim
        or any(row.extracted for row in rows)
        or not any(row.outcome or row.outcome_failed for row in rows)
    )
    terms = [
        (
            row.question_id,
            (claim_terms(row, k, settings.veriscore_k) if extracted else {})
            | outcome_terms(row.outcome),
        )
        for row in rows
    ]
    return collect([*terms, *((question, {}) for question in questions or ())], names)


def _reason(name: str, rows: Sequence[Row]) -> str:
    """Return a text that says why a metric is undefined for these rows."""
    states = {row.state for row in rows}
    if not rows:
        return "the file has no rows"
    if name in (*RATES, *SIMPLEQA):
        if any(row.outcome for row in rows):
            return "every response is an abstention"
        no_gold = all(row.no_gold for row in rows)
        return "no question has a gold answer" if no_gold else "no response has an outcome"
    if name in ("aurc", "auroc"):
        return "needs judged answers with confidences; auroc needs right and wrong answers"
    if states == {"not_judged"}:
        return "no row was judged"
    if states <= {"failed", "not_judged"}:
        return "every row that was judged failed"
    if "unverified" in states and "scored" not in states:
        return "no claim has a verdict on its truth"
    if name in ON_SUBJECT and "scored" in states:
        return "no response has a rating of each of its claims"
    return "no response has claims"
