"""Every metric of one feedback file, and of two with paired tests: what `workbench metrics`
prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.metrics.bootstrap import Sums, collect, intervals, paired
from workbench.metrics.claims import (
    CLAIM_METRICS,
    ON_SUBJECT,
    Options,
    Term,
    claim_terms,
    median_claims,
)
from workbench.metrics.confidence import ranked, restrict, risk_coverage
from workbench.metrics.outcomes import RATES, RESAMPLES, WEIGHTS
from workbench.metrics.pairs import judge_pairs, pair_files
from workbench.metrics.preferences import read_preferences, win_rate
from workbench.metrics.rows import STATES, Row, file_of, read_rows
from workbench.types import OUTCOMES, Judge, WorkbenchError

IN_EVALUATIONS = ("factscore", "correct", "incorrect", "responded", "claims", *ON_SUBJECT)


@dataclass(frozen=True)
class Settings:
    """What a report is computed with; `options` are those of the claim metrics."""

    options: Options = field(default_factory=Options)
    weights: Sequence[float] = WEIGHTS
    seed: int = 0
    resamples: int = RESAMPLES
    # questions that the reference policy answers correctly; None without a reference policy
    right_before: frozenset[str] | None = None


def report_file(feedback: Path | str, **settings: Any) -> dict[str, Any]:
    """`compare_files` for one file."""
    return compare_files(feedback, None, **settings)


def compare_files(
    feedback: Path | str,
    other: Path | str | None = None,
    *,
    reference: Path | str | None = None,
    base: Path | str | None = None,
    preferences: Path | str | None = None,
    judge: Judge | None = None,
    k: int = 32,
    gamma: int = 10,
    vague: str = "incorrect",
    sections: Sequence[str] = (),
    confidence: str = "tokens",
    weights: Sequence[float] = WEIGHTS,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> dict[str, Any]:
    """Every metric of `feedback`; with `other`, the same of that file and paired differences,
    `feedback` minus `other`.

    Args:
        feedback, other: JSONL files of feedback rows, or folders of runs.
        reference: the file whose median number of claims is VeriScore's K (by default that of
        all responses compared, so that
            both files have one K, whichever is named first). Name one and adding another model
            to a comparison changes nothing.
        base: feedback of the policy whose right answers over-refusal is measured on (by default
        `other`).
        preferences: a judge's preferences between the two files, each pair in both orders (see
        `preferences`).
        judge: says which of two answers is better, in both orders (see `pairs`), once all else
        is done; needs `other`.
        k: K of recall@K and F1@K.
        gamma: the number of claims below which FactScore's penalty sets in.
        vague: "incorrect" counts vague claims in precision's denominator, "excluded" does not.
        sections: count only claims of these sections of a response.
        confidence: "tokens", or the aspect of verdicts whose `p` is the confidence.
        weights: of accuracy, abstention and hallucination in truthfulness (TruthRL, arXiv
        2509.25760, section 2.1).

    Raises:
        WorkbenchError: a file is missing or is not feedback, the two have no question in common,
        or a setting is out of range.
    """
    if k < 1 or gamma < 0 or vague not in ("incorrect", "excluded"):
        raise WorkbenchError(
            f"k={k}, gamma={gamma}, vague={vague}: k is at least 1, gamma at least 0, vague"
            " incorrect or excluded"
        )

    if judge is not None and other is None:
        raise WorkbenchError(
            "a judge says which of two files' answers are better: name other, the file to compare"
            " with"
        )

    def read(path: Path | str) -> list[Row]:
        loaded = read_rows(path, sections, confidence)
        if preferences is None and judge is None:  # which need no verdicts
            _check_judged(path, loaded)
        return loaded

    pairs = None if judge is None or other is None else pair_files(feedback, other)
    rows = read(feedback)
    others = read(other) if other is not None else None
    baseline = read(base) if base is not None else others
    known = read(reference) if reference is not None else [*rows, *(others or ())]
    if reference is not None and median_claims(known) is None:
        raise WorkbenchError(
            f"{reference}: no response in it has claims, so it gives no K for VeriScore: name"
            " another reference"
        )
    options = Options(k, gamma, vague, veriscore_k=median_claims(known))
    right_before = None if baseline is None else right_questions(baseline)
    settings = Settings(options, tuple(weights), seed, resamples, right_before=right_before)
    compared = [path for path in (feedback, other) if path is not None]
    result = summarise(rows, settings)
    result["reference"] = str(reference or " + ".join(map(str, compared)))
    if preferences is not None:
        result |= win_rate(read_preferences(preferences), seed, resamples)
    if others is not None:
        _check_common(feedback, str(other), rows, others)
        result["other"] = summarise(others, settings)
        result |= compare(rows, others, settings)
    if judge is not None and pairs is not None:
        preferred, result["judge"] = judge_pairs(judge, pairs.pairs)
        result |= win_rate(preferred, seed, resamples)
        result["pairs"] |= pairs.left_out
    return result


def _check_judged(path: Path | str, rows: Sequence[Row]) -> None:
    """Raise a WorkbenchError for a file with rows of which not one was judged: every number
    would be about nothing.
    """
    if rows and all(row.state == "not_judged" for row in rows):
        lacking = sum(row.no_gold for row in rows)
        why = f" ({lacking} have no gold answer to be compared with)" if lacking else ""
        raise WorkbenchError(
            f"{path}: none of its {len(rows)} rows was judged{why}: `workbench score --in"
            f" {file_of(path)} --out NEW.jsonl` reads them for claims and judges them"
        )


def _check_common(
    first: Path | str, second: Path | str, rows: Sequence[Row], others: Sequence[Row]
) -> None:
    """Raise a WorkbenchError for two files without a question in common: there is no difference
    to tell.
    """
    if empty := [path for path, read in ((first, rows), (second, others)) if not read]:
        raise WorkbenchError(
            f"{empty[0]} has no rows yet, so there is nothing to compare: name another file, or"
            " give only one"
        )
    if not {row.question_id for row in rows} & {row.question_id for row in others}:
        raise WorkbenchError(
            f"no question is in both files ('{rows[0].question_id}' and others in {first},"
            f" '{others[0].question_id}' and others in {second}): give two files about the same"
            " questions, or one"
        )


def summarise(rows: Sequence[Row], settings: Settings | None = None) -> dict[str, Any]:
    """`{n, questions, excluded, <metric>: {value, low, high, n}, …}` of one file's rows.

    `n` counts responses (that of a metric: the questions that define it), and so do `excluded`
    (those that the claim metrics leave out, by `Row.state`) and `failed` (those that a failure
    is recorded on); `duplicate_ids` says how many of them have an id that came before (they
    count, too). Intervals are 95 % bootstraps over questions. A metric that is undefined has
    null values and a `reason`.
    """
    settings = settings or Settings()
    if settings.options.veriscore_k is None:
        options = replace(settings.options, veriscore_k=median_claims(rows))
        settings = replace(settings, options=options)
    sums, answers = _sums(rows, settings), ranked(rows)
    states = [row.state for row in rows]
    named = [row.id for row in rows if row.id]
    result: dict[str, Any] = {
        "n": len(rows),
        "questions": len(sums.questions),
        "duplicate_ids": len(named) - len(set(named)),
        "failed": sum(row.failed for row in rows),
        "excluded": {state: states.count(state) for state in STATES if state != "scored"},
        "outcomes": {
            "scored": sum(row.outcome is not None for row in rows),
            "failed": sum(row.outcome_failed for row in rows),
            "no_gold": sum(row.no_gold for row in rows),
        },
    }
    for name, cell in intervals(sums, answers, settings.resamples, settings.seed).items():
        undefined = {"reason": _reason(name, rows, settings)} if cell["value"] is None else {}
        result[name] = {**cell, **undefined}
    for name in ("k", "gamma", "veriscore_k"):
        result[name] = getattr(settings.options, name)
    return result | {"risk_coverage": risk_coverage(answers)}


def claim_table(
    rows: Sequence[Row], *, k: int = 32, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """The claim metrics of graded responses, `{metric: {value, low, high}}`; nothing where none
    was read for claims.
    """
    if not any(row.extracted for row in rows):
        return {}
    settings = Settings(Options(k), seed=seed, resamples=resamples)
    cells = intervals(_sums(rows, settings), ranked(()), resamples, seed)
    return {name: cells[name] for name in (*IN_EVALUATIONS, f"recall@{k}", f"f1@{k}")}


def compare(rows: Sequence[Row], others: Sequence[Row], settings: Settings) -> dict[str, Any]:
    """`{common, paired: {metric: {diff, low, high, p, n}}}`: each metric on the n questions that
    define it in both files, so that a row that failed or abstained on one side does not count on
    the other."""
    common = {row.question_id for row in rows} & {row.question_id for row in others}
    sides = []
    for side in (rows, others):
        kept = [row for row in side if row.question_id in common]
        sides.append((_sums(kept, settings, common), restrict(ranked(side), common)))
    cells: dict[str, dict[str, Any]] = {}
    for name, cell in paired(sides[0], sides[1], settings.resamples, settings.seed).items():
        reason = "undefined in one of the files on their common questions"
        cells[name] = cell if cell["diff"] is not None else {**cell, "reason": reason}
    return {"common": len(common), "paired": cells}


def right_questions(rows: Sequence[Row]) -> frozenset[str]:
    """The questions that at least half of a policy's scored responses answer right."""
    counts: dict[str, list[bool]] = {}
    for row in rows:
        if row.outcome is not None:
            counts.setdefault(row.question_id, []).append(row.outcome == "correct")
    return frozenset(question for question, right in counts.items() if 2 * sum(right) >= len(right))


def _sums(rows: Sequence[Row], settings: Settings, questions: set[str] | None = None) -> Sums:
    k = settings.options.k
    names = (*CLAIM_METRICS, f"recall@{k}", f"f1@{k}", "veriscore", *RATES, "over_refusal")
    # Rows that only have outcomes were never read for claims, so "no claims" says nothing of them.
    states = {row.state for row in rows} - {"failed", "not_judged"}
    extracted = (
        states == {"abstained"}  # an abstention makes no claim
        or any(row.extracted for row in rows)
        or not any(row.outcome or row.outcome_failed for row in rows)
    )
    terms = [(row.question_id, _terms(row, settings, extracted)) for row in rows]
    return collect([*terms, *((question, {}) for question in questions or ())], names)


def _terms(row: Row, settings: Settings, extracted: bool) -> dict[str, Term]:
    terms = dict(claim_terms(row, settings.options)) if extracted else {}
    terms |= outcome_terms(row, settings.weights)
    # Over-refusal counts abstentions (ours) on questions that the reference policy answers
    # correctly or, without one, on questions that their data set calls answerable.
    right = settings.right_before
    expected = row.answerable if right is None else row.question_id in right
    if expected and row.state not in ("failed", "not_judged"):
        terms["over_refusal"] = (float(row.state == "abstained"), 1.0)
    return terms


def outcome_terms(row: Row, weights: Sequence[float] = WEIGHTS) -> dict[str, Term]:
    """What one response adds to each outcome rate; nothing where its outcome is not known."""
    if row.outcome is None:
        return {}
    shares = [float(row.outcome == label) for label in OUTCOMES]
    w1, w2, w3 = weights
    truthfulness = w1 * shares[0] + w2 * shares[1] - w3 * shares[2]
    return {name: (value, 1.0) for name, value in zip(RATES, [*shares, truthfulness], strict=True)}


def _reason(name: str, rows: Sequence[Row], settings: Settings) -> str:
    """Why a metric is undefined."""
    states = {row.state for row in rows}
    if not rows:
        return "the file has no rows"
    if name in RATES and all(row.no_gold for row in rows):
        return "no question has a gold answer"
    if name in RATES:
        return "no response has an outcome"
    if name == "over_refusal" and settings.right_before is not None:
        return "the reference policy answers none of the questions right"
    if name == "over_refusal":
        return "no reference policy, and no question is marked answerable"
    if name == "aurc":
        return "no judged answer has a confidence"
    if name == "auroc":
        return "needs a right and a wrong answer with confidences"
    if states == {"not_judged"}:
        return "no row was judged"
    if states == {"failed"}:
        return "every row failed"
    if states <= {"failed", "not_judged"}:
        return "every row that was judged failed"
    if "unverified" in states and "scored" not in states:
        return "no claim has a verdict on its truth"
    if name in ON_SUBJECT and "scored" in states:
        return "no response has a rating of each of its claims"
    return "no response has claims"
