"""The terms of KLCF's reward (arXiv 2509.23765, section 2.3): checklist, truthfulness, length."""

from math import fsum

from workbench.methods.lookup import Table, claims, find, label, on_claim, probability, unscored
from workbench.text import in_answer, is_abstention
from workbench.types import ITEM_LABELS, Feedback, Response


def checklist(feedback: Feedback, verdicts: Table, b: float) -> dict[str, float]:
    """Compare an answer with its checklist (equations 6 to 8).

    Of C consistent, X contradictory and M missing items, recall is C/(C+X+M) and precision
    C/(C+X). The part "check" is their F-measure, in which recall counts `b` times as much.

    Raises:
        Unscored: the question has no checklist, or an item has no verdict.
    """
    items = len(feedback.response.question.checklist)
    if not items:  # a row that was stored without its question
        items = sum(
            aspect == "checklist" and target.startswith("item:") for target, aspect in verdicts
        )
    if not items:
        raise unscored(
            "no_checklist",
            "no checklist to compare with: give the question one, or set klcf.w_check=0",
        )
    labels = [label(find(verdicts, f"item:{n}", "checklist"), ITEM_LABELS) for n in range(items)]
    consistent, contradictory, missing = (float(labels.count(name)) for name in ITEM_LABELS)
    recall = consistent / items
    stated = consistent + contradictory
    precision = consistent / stated if stated else 0.0
    below = b * b * precision + recall
    return {
        "recall": recall,
        "precision": precision,
        "check": (1 + b * b) * precision * recall / below if below else 0.0,
        "consistent": consistent,
        "contradictory": contradictory,
        "missing": missing,
    }


def truthfulness(
    feedback: Feedback, verdicts: Table, only_missing: bool, abstain: float
) -> tuple[float | None, int]:
    """Return the mean P(true) of the answer's claims, and how many used a "fact" verdict.

    An answer without claims gets `abstain` if it abstains, else 0. With `only_missing`, only
    claims missing from the checklist count; the mean is None if there is none.

    Raises:
        Unscored: a claim has no verdict.
    """
    response = feedback.response
    answer_claims = claims(feedback, in_answer(response))
    if not answer_claims:
        return (abstain if is_abstention(response.text, prefill=response.prefill) else 0.0), 0
    if only_missing:
        answer_claims = [
            claim
            for claim in answer_claims
            if label(on_claim(verdicts, claim, "checklist"), ITEM_LABELS) == "missing"
        ]
    judged = [on_claim(verdicts, claim, "truth", "fact") for claim in answer_claims]
    stood_in = sum(verdict.aspect == "fact" for verdict in judged)
    return (fsum(map(probability, judged)) / len(judged) if judged else None), stood_in


def overlong(tokens: int, l_max: int, l_cache: int) -> float:
    """Return DAPO's soft overlong penalty: 0 up to `l_max - l_cache` tokens, then falling
    linearly to -1 at `l_max`.
    """
    return 0.0 - min(1.0, max(0.0, (tokens - (l_max - l_cache)) / l_cache))


def count_tokens(response: Response) -> int:
    """Return the number of tokens; raise `Unscored` if a text has none."""
    count = len(response.token_ids) or len(response.offsets)
    if response.text and not count:
        raise unscored(
            "no_tokens", "the response has no tokens to count: give them, or set klcf.l_max=none"
        )
    return count
