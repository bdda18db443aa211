"""KLCF's reward (arXiv 2509.23765, section 2.3) and its terms: checklist, truthfulness, length."""

from itertools import starmap
from math import fsum
from statistics import fmean

from workbench.methods.klcf.config import KLCF
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
from workbench.types import (
    ITEM_LABELS,
    UNPARSED,
    Claim,
    Event,
    Feedback,
    Response,
    Reward,
    RewardFn,
    WorkbenchError,
)
from workbench.util.config import check_values
from workbench.util.failures import unjudged


def reward(config: KLCF) -> RewardFn:
    """Return the reward function: mean of three terms + format + length (equations 3 to 11).

    The mean is weighted (`w_check`, `w_truth`, `w_general`). The last token gets the whole reward.
    The three terms are:

    * "check": F-measure of recall and precision on the checklist, from "checklist" verdicts
    * "truth": mean P(true) of the claims, from "truth" verdicts or, without them, "fact" verdicts
    * "general": score of the whole answer, which is the `p` of the "general" verdict

    "format" is 0, or −1 if the required think and answer tags are missing. If they are missing, the
    three terms are left out. "length" is a penalty from 0 to −1; see `overlong`.

    The reward is None if a term needs a verdict that failed or is missing. A term of weight 0 needs
    no verdict.

    Raises:
        WorkbenchError: a setting has an invalid value.
    """
    check_values(config)
    weights = {"check": config.w_check, "truth": config.w_truth, "general": config.w_general}
    if min(weights.values()) < 0 or not any(weights.values()):
        raise WorkbenchError(
            f"the weights of klcf are {weights}: klcf.w_check, klcf.w_truth and klcf.w_general must"
            " be at least 0, and at least one above 0"
        )
    if config.abstain and not config.w_truth:
        raise WorkbenchError(
            f"klcf.abstain is {config.abstain}, but has no effect because klcf.w_truth is 0: leave"
            " klcf.abstain out, or set klcf.w_truth above 0"
        )
    if config.unreadable == "zero" and not config.w_truth:
        raise WorkbenchError(
            "klcf.unreadable is zero, but has no effect because klcf.w_truth is 0: leave"
            " klcf.unreadable out, or set klcf.w_truth above 0"
        )
    if config.l_max is not None and not 0 < config.l_cache <= config.l_max:
        raise WorkbenchError(
            f"klcf.l_cache is {config.l_cache}: it must be above 0 and at most"
            f" klcf.l_max, {config.l_max}"
        )
    only_missing = config.truth == "missing"

    @scored
    def klcf(feedback: Feedback, verdicts: Table) -> Reward:
        # checked before the format: a wrong format must not hide that the judge failed
        if config.w_truth:
            _check_claims(feedback, verdicts, only_missing)
        if config.w_check:
            for target, aspect in verdicts:
                if aspect == "checklist" and target.startswith("item:"):
                    check_not_failed(verdicts, target, aspect)
        if config.w_general:
            check_not_failed(verdicts, "response", "general")
        response = feedback.response
        length = (
            0.0
            if config.l_max is None
            else overlong(count_tokens(response), config.l_max, config.l_cache)
        )
        if config.form and not well_formed(response.text, response.prefill):
            # the terms are not computed, so their verdicts may be missing
            outer = {"format": -1.0, "length": length}
            return Reward(length - 1.0, outer, tuple(starmap(Event, outer.items())))
        terms: dict[str, float] = {}
        parts: dict[str, float] = {}
        if config.w_check:
            parts |= checklist(feedback, verdicts, config.b)
            terms["check"] = parts["check"]
        if config.w_truth:
            value, stood_in = truthfulness(feedback, verdicts, config)
            parts["stood_in"] = float(stood_in)
            if value is not None:
                terms["truth"] = value
        if config.w_general:
            terms["general"] = probability(find(verdicts, "response", "general"))
        if not terms:
            raise unscored(
                "no_terms",
                "no term of the reward applies to this response: set klcf.w_check above 0",
            )
        # a term that does not apply to this response is left out of the weighted mean
        whole = fsum(weights[name] for name in terms)
        events = [Event(name, weights[name] / whole * value) for name, value in terms.items()]
        outer = {**({"format": 0.0} if config.form else {}), "length": length}
        events += starmap(Event, outer.items())
        return Reward(total(events), {**parts, **terms, **outer}, tuple(events))

    return klcf


def _check_claims(feedback: Feedback, verdicts: Table, compared: bool) -> None:
    """Raise `Unscored` if claims could not be extracted, or a verdict on a claim's truth failed.

    Claims in the thinking are ignored.

    Args:
        compared: if True, a failed comparison of a claim with the checklist raises, too.
    """
    if feedback.error is not None:
        raise Unscored(feedback.error)
    for claim in feedback.claims:
        if claim.section != "think":
            check_not_failed(verdicts, f"claim:{claim.id}", "truth", "fact")
            if compared:
                check_not_failed(verdicts, f"claim:{claim.id}", "checklist")


def checks(config: KLCF, truth: str = "fact") -> tuple[str, ...]:
    """Return the names of the checks that the reward needs. A term of weight 0 needs no check.

    Args:
        truth: the check that gives P(true): "fact" (by the judge), or "truth" (by a truthfulness
            model or the base model's confidence).
    """
    compared = ("claim_checklist",) if config.truth == "missing" else ()
    read = ("fact",) if config.unreadable == "zero" and truth != "fact" else ()
    return (
        *((truth, *compared, *read) if config.w_truth else ()),
        *(("checklist",) if config.w_check else ()),
        *(("general",) if config.w_general else ()),
    )


def checklist(feedback: Feedback, verdicts: Table, b: float) -> dict[str, float]:
    """Return how well an answer matches its checklist, as scores by name (equations 3 to 5).

    * "consistent", "contradictory", "missing": number of items that the answer states (C),
      contradicts (X) or does not mention (M)
    * "recall": C / (C + X + M)
    * "precision": C / (C + X), or 0 if the answer states and contradicts no item
    * "check": F-measure of both, in which recall counts `b` times as much as precision

    Raises:
        Unscored: the question has no checklist, or a verdict on an item failed or is missing.
    """
    items = len(feedback.response.question.checklist)
    if not items:  # if the row was stored without its question, count its verdicts on items
        items = sum(
            aspect == "checklist" and target.startswith("item:") for target, aspect in verdicts
        )
    if not items:
        raise unscored(
            "no_checklist",
            "the question has no checklist: add one, or set klcf.w_check=0",
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


def truthfulness(feedback: Feedback, verdicts: Table, config: KLCF) -> tuple[float | None, int]:
    """Return the mean P(true) of an answer's claims, and the number of "fact" verdicts used.

    P(true) of a claim is from its "truth" verdict or, if it has none, from its "fact" verdict. If
    the answer has no claims, the mean is `config.abstain` for an abstention, and 0 for any other
    answer.

    * With `truth="missing"`, only claims that the checklist neither states nor contradicts count.
      If there are no such claims, the mean is None.
    * With `unreadable="zero"`, P(true) is 0 if the "fact" verdict says that the claim's form could
      not be read *(ours)*. A truthfulness model is trained on whole claims; on a fragment
      ("1940."), its P(true) can be high.

    Raises:
        Unscored: a verdict on a claim failed or is missing.
    """
    response = feedback.response
    answer_claims = claims(feedback, in_answer(response))
    if not answer_claims:
        refused = is_abstention(response.text, prefill=response.prefill)
        return (config.abstain if refused else 0.0), 0
    if config.truth == "missing":
        answer_claims = [
            claim
            for claim in answer_claims
            if label(on_claim(verdicts, claim, "checklist"), ITEM_LABELS) == "missing"
        ]
    judged = [on_claim(verdicts, claim, "truth", "fact") for claim in answer_claims]
    stood_in = sum(verdict.aspect == "fact" for verdict in judged)
    values = [
        0.0 if config.unreadable == "zero" and is_unreadable(verdicts, claim) else probability(one)
        for claim, one in zip(answer_claims, judged, strict=True)
    ]
    return (fmean(values) if values else None), stood_in


def is_unreadable(verdicts: Table, claim: Claim) -> bool:
    """Return whether the claim's "fact" verdict says that its form could not be read.

    The verdict then has the label "vague" and `{"unparsed": …}` in its evidence. A claim with an
    unknown name or value has the label "wrong", so the result is False.
    """
    verdict = verdicts.get((f"claim:{claim.id}", "fact"))
    return (
        verdict is not None
        and verdict.label == "vague"
        and UNPARSED in unjudged({"evidence": verdict.evidence})
    )


def overlong(tokens: int, l_max: int, l_cache: int) -> float:
    """Return DAPO's soft overlong penalty for a response of `tokens` tokens.

    It is 0 up to `l_max - l_cache` tokens, then falls linearly to -1 at `l_max`.
    """
    return 0.0 - min(1.0, max(0.0, (tokens - (l_max - l_cache)) / l_cache))


def count_tokens(response: Response) -> int:
    """Return the number of tokens of a response.

    Raises:
        Unscored: the response has text, but its tokens are not known.
    """
    count = len(response.token_ids) or len(response.offsets)
    if response.text and not count:
        raise unscored(
            "no_tokens",
            "the response has no token_ids or offsets to count: add them, or set klcf.l_max=none",
        )
    return count
