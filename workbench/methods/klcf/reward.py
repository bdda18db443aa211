"""KLCF (arXiv 2509.23765, section 2.3): agreement with a checklist, truthfulness, and how the
response is written.
"""

from __future__ import annotations

from math import fsum
from typing import Literal

from workbench.methods.lookup import (
    Table,
    Unscored,
    check_not_failed,
    claims,
    find,
    label,
    on_claim,
    probability,
    scored,
    total,
    unscored,
)
from workbench.text import in_answer, is_abstention, well_formed
from workbench.types import ITEM_LABELS, Claim, Event, Feedback, Response, Reward, RewardFn


def klcf(
    w_check: float = 1.0,
    w_truth: float = 1.0,
    w_general: float = 0.0,
    b: float = 1.0,
    truth: Literal["all", "missing"] = "all",
    form: bool = True,
    l_max: int | None = 2048,
    l_cache: int = 512,
    *,
    abstain: float = 0.0,
) -> RewardFn:
    """Weighted mean of checklist, truthfulness and general reward, plus format and length
    (equations 5 to 11).

    A response that breaks the form is paid format + length alone, and its part "format" is −1
    instead of 0. A term of weight 0 is not in use and asks for no verdict; the others' weights
    are divided by their sum. A term in use whose verdict is missing leaves a response in the
    form unscored, and one whose verdict failed any response.

    Args:
        b: weight of recall against precision in the checklist reward.
        truth: average p over all claims of the response, or only over those that the checklist
        is silent about.
        form: expect `<think>…</think><answer>…</answer>`; False for a policy that does not think.
        l_max: tokens of a response from which on the penalty is −1, None for no penalty; it
        begins `l_cache` tokens before.
        abstain: the truthfulness reward of a refusal *(ours)*; what claims nothing otherwise, as
        an empty text, has 0. At 0 any
            guess pays more than a refusal.
    """

    @scored
    def reward(feedback: Feedback, verdicts: Table) -> Reward:
        _check_asked(
            feedback,
            verdicts,
            items=w_check > 0,
            facts=w_truth > 0,
            compared=truth == "missing",
            general=w_general > 0,
        )
        length = overlong(_tokens(feedback.response), l_max, l_cache) if l_max is not None else 0.0
        if form and not well_formed(feedback.response.text, feedback.response.prefill):
            return Reward(
                length - 1.0,
                {"format": -1.0, "length": length},
                (Event("format", -1.0), Event("length", length)),
            )
        terms: dict[str, tuple[float, float]] = {}  # name -> weight, value
        parts: dict[str, float] = {}
        if w_check:
            parts |= _checklist(feedback, verdicts, b)
            terms["check"] = w_check, parts["check"]
        if w_truth:
            value, stood_in = _truthfulness(
                feedback, verdicts, only_missing=truth == "missing", abstain=abstain
            )
            parts |= {"stood_in": float(stood_in)}
            if value is not None:
                terms["truth"] = w_truth, value
        if w_general:
            terms["general"] = w_general, probability(find(verdicts, "response", "general"))
        if not terms:
            raise unscored(
                "no_terms",
                "no term of the reward applies to this response: set klcf.w_check above 0",
            )
        parts |= {name: value for name, (_, value) in terms.items()}
        whole = fsum(weight for weight, _ in terms.values())
        events = [Event(name, weight / whole * value) for name, (weight, value) in terms.items()]
        events += [Event("format", 0.0)] * form + [Event("length", length)]
        return Reward(
            total(events),
            {**parts, **({"format": 0.0} if form else {}), "length": length},
            tuple(events),
        )

    return reward


def _check_asked(
    feedback: Feedback, verdicts: Table, items: bool, facts: bool, compared: bool, general: bool
) -> None:
    """Raise what failed of all that the terms in use asked for: the extraction of claims, or a
    check of claims (of their truth, and `compared` with the checklist), of items or of the
    whole."""
    if facts and feedback.error is not None:
        raise Unscored(feedback.error)
    for claim in feedback.claims if facts else ():
        if claim.section != "think":
            for aspects in (("truth", "fact"), *([("checklist",)] if compared else [])):
                check_not_failed(verdicts, f"claim:{claim.id}", *aspects)
    for target, aspect in verdicts if items else ():
        if aspect == "checklist" and target.startswith("item:"):
            check_not_failed(verdicts, target, aspect)
    if general:
        check_not_failed(verdicts, "response", "general")


def overlong(tokens: int, l_max: int, l_cache: int) -> float:
    """DAPO's soft overlong punishment: 0 up to l_max − l_cache, from there linearly to −1 at
    l_max, −1 beyond.
    """
    free = l_max - l_cache
    if tokens <= free:
        return 0.0
    return -1.0 if tokens >= l_max else (free - tokens) / l_cache


def _tokens(response: Response) -> int:
    count = len(response.token_ids) or len(response.offsets)
    if response.text and not count:
        raise unscored(
            "no_tokens", "the response has no tokens to count: give them, or set klcf.l_max=none"
        )
    return count


def _checklist(feedback: Feedback, verdicts: Table, b: float) -> dict[str, float]:
    """Recall C/(C+X+M), precision C/(C+X), and their weighted harmonic mean with recall b times
    as important.
    """
    items = len(feedback.response.question.checklist)
    if not items:  # as in a row that was stored without its question
        items = sum(
            aspect == "checklist" and target.startswith("item:") for target, aspect in verdicts
        )
    if not items:
        raise unscored(
            "no_checklist",
            "no checklist to compare with: give the question one, or set klcf.w_check=0",
        )
    labels = [
        label(find(verdicts, f"item:{item}", "checklist"), ITEM_LABELS) for item in range(items)
    ]
    consistent, contradictory, missing = (labels.count(name) for name in ITEM_LABELS)
    recall = consistent / items
    precision = consistent / (consistent + contradictory) if consistent + contradictory else 0.0
    below = b * b * precision + recall
    check = (1 + b * b) * precision * recall / below if below else 0.0
    counts = {"consistent": consistent, "contradictory": contradictory, "missing": missing}
    return {"recall": recall, "precision": precision, "check": check} | {
        name: float(count) for name, count in counts.items()
    }


def _truthfulness(
    feedback: Feedback, verdicts: Table, only_missing: bool, abstain: float
) -> tuple[float | None, int]:
    """Mean p over the claims, without any `abstain` of a refusal and else 0; and for how many a
    "fact" verdict stood in.

    With `only_missing`, over the claims that the checklist is silent about; None if it has
    something to say about each.
    """
    answer_claims = claims(feedback, in_answer(feedback.response))
    if not answer_claims:
        return (
            abstain
            if is_abstention(feedback.response.text, prefill=feedback.response.prefill)
            else 0.0
        ), 0
    if only_missing:
        answer_claims = [claim for claim in answer_claims if _is_missing(verdicts, claim)]
    judged = [on_claim(verdicts, claim, "truth", "fact") for claim in answer_claims]
    stood_in = sum(verdict.aspect == "fact" for verdict in judged)
    return (fsum(map(probability, judged)) / len(judged) if judged else None), stood_in


def _is_missing(verdicts: Table, claim: Claim) -> bool:
    return label(on_claim(verdicts, claim, "checklist"), ITEM_LABELS) == "missing"
