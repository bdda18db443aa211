"""RLFH (arXiv 2406.12221, section 3.2): every claim is paid for its truth, every sentence for
what it tells.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum, log1p
from typing import Literal

from workbench.credit.attribute import THRESHOLD, is_placed, place
from workbench.credit.tokens import words
from workbench.methods.lookup import (
    Table,
    by_sentence,
    check_not_failed,
    claims,
    label,
    on_claim,
    scored,
    sums,
    total,
    unscored,
)
from workbench.types import (
    SUBJECTS,
    UNPARSED,
    USELESS,
    Claim,
    Event,
    Feedback,
    Response,
    Reward,
    RewardFn,
    Verdict,
)

Granularity = Literal["statement", "sentence", "paragraph"]

# table 9
PAPER_F = {
    "correct": 1.0,
    "hedged_correct": 0.5,
    "vague": -1.0,
    "hedged_wrong": -1.5,
    "wrong": -2.0,
}
# (code)
LAUNCH_SCRIPT_F = {
    "correct": 0.3,
    "hedged_correct": 0.1,
    "vague": -0.8,
    "hedged_wrong": -0.9,
    "wrong": -1.2,
}
PAPER_G = {5: 1.3, 4: 1.2, 3: 1.1, 2: 1.0, 1: -0.1}  # table 9
MISTAKES = ("vague", "hedged_wrong", "wrong")
SUPPLEMENTARY = 2  # informativeness


def rlfh(
    f: Mapping[str, float] = PAPER_F,
    g: Mapping[int, float] = PAPER_G,
    alpha: float = 1.0,
    beta: float = 1.0,
    epsilon: float = -0.9,
    granularity: Granularity = "statement",
    spread: bool = False,
    clip: float | None = None,
    no_eos: float = 0.0,
    min_coverage: float = THRESHOLD,
    off_subject: Literal["useless", "wrong"] = "useless",
) -> RewardFn:
    """The sum over claims of α·f(label)·|g(info)| and over sentences of β·log(1 + max(ε, Σ
    g(info))) (equations 1 and 2).

    Claims of the thinking are left out *(ours)*. Claims without a sentence share one more
    sentence, at the response's end
    *(ours)*. No claims, as in a refusal, is a reward of 0 with no events.

    Args:
        granularity: a claim is paid at its last matched character and a sentence at its end
        ("statement"), both at the end of
            the sentence, or all at the end of the response ("paragraph"). The total is the same.
        spread: pay a claim, sentence or response over its whole length instead of at its end
        *(ours)*.
        clip: bound of what one token is paid, either way: of all events on it together *(code:
        10)*. What is above or below is
            taken back by an event "clip" on that token, so the events still sum to the value,
            and the tokens to the same.
            A response without tokens is clipped by its words.
        no_eos: what a response pays that was cut off before its end token *(code: -1)*.
        min_coverage: a claim of which less was found is unplaced: it is listed, and paid with
        its sentence.
        off_subject: a claim about another subject than the one asked for is worth what its
        verdict says, "useless", or
            α·f(wrong)·|g(2)|, true or not *(ours)*. The paper's rating lets a policy that is
            asked about somebody it does not
            know tell the life of somebody else, nearly for nothing.
    """

    def of_sentence(
        feedback: Feedback, verdicts: Table, number: int | None, sentence_claims: list[Claim]
    ) -> list[Event]:
        end, start = _whole(feedback, number, granularity)
        events, rated = [], []
        for claim in sentence_claims:
            verdict = on_claim(verdicts, claim, "fact")
            weight = g[_informativeness(verdicts, verdict, g)]
            truth = f[label(verdict, f)] * abs(weight)
            if off_subject == "wrong" and _is_about_another(verdicts, verdict):
                truth = f["wrong"] * abs(g[SUPPLEMENTARY])
            alone = granularity == "statement" and is_placed(claim, min_coverage)
            since = (claim.span[0] if claim.span else None) if alone else start
            at = claim.end if alone else end
            events.append(
                Event("truth", alpha * truth, at, claim=claim.id, start=since if spread else None)
            )
            rated.append(weight)
        return [
            *events,
            Event(
                "info",
                beta * log1p(max(epsilon, fsum(rated))),
                end,
                start=start if spread else None,
            ),
        ]

    @scored
    def reward(feedback: Feedback, verdicts: Table) -> Reward:
        answer_claims = claims(feedback, lambda claim: claim.section != "think")
        events: list[Event] = []
        for number, together in by_sentence(answer_claims).items():
            events += of_sentence(feedback, verdicts, number, together)
        if no_eos and feedback.response.finish == "length":
            events.append(Event("no_eos", no_eos))
        if clip is not None:
            events += _excess(feedback.response, events, clip)
        unplaced = tuple(claim.id for claim in answer_claims if not is_placed(claim, min_coverage))
        return Reward(
            total(events), sums(events, "truth", "info"), tuple(events), unplaced=unplaced
        )

    return reward


def paid_mistakes(
    f: Mapping[str, float], g: Mapping[int, float], alpha: float, beta: float, epsilon: float
) -> dict[str, dict[int, float]]:
    """What a vague or wrong claim adds to the reward, by label and informativeness, where that
    is more than nothing.

    It is the most that the claim adds against leaving it out: in a sentence of its own, α·f·|g|
    + β·log(1 + max(ε, g)), or joined to a sentence with Σg ≥ 0, where the logarithm's change
    goes from the same to 0 as Σg grows (for β ≥ 0).

    The paper's maps pay no such claim, and neither does the launch script's f. Both do where it
    joins a sentence of useless claims, since the logarithm is steep there. With table 9 a vague
    claim is paid from five of them on (Σg = −.5: −1 + log(1.5/.5) = +.10), a hedged wrong one
    from eight and a wrong one from nine; with the launch script's f from two, four and six. No
    warning is given of this.
    """
    paid: dict[str, dict[int, float]] = {}
    for name in MISTAKES:
        for rating, weight in sorted(g.items(), reverse=True):
            gain = alpha * f[name] * abs(weight) + max(beta * log1p(max(epsilon, weight)), 0.0)
            if gain > 0:
                paid.setdefault(name, {})[rating] = gain
    return paid


def warn_of_paid_mistakes(
    f: Mapping[str, float], g: Mapping[int, float], alpha: float, beta: float, epsilon: float
) -> None:
    """Warn where `paid_mistakes` finds one; `warnings` shows the same settings' line once."""
    cases = []
    for name, gains in paid_mistakes(f, g, alpha=alpha, beta=beta, epsilon=epsilon).items():
        at = ", ".join(f"g_{rating}={g[rating]:g}" for rating in gains)
        cases.append(f"f_{name}={f[name]:g} (up to {max(gains.values()):+.2g}, at {at})")
    if cases:
        what = f"{' and '.join(cases)} with alpha={alpha:g} and beta={beta:g}"
        warnings.warn(
            f"rlfh pays more for a bad claim than for none by {what}: lower rlfh.f_… or rlfh.beta",
            stacklevel=3,
        )


def _whole(
    feedback: Feedback, sentence: int | None, granularity: Granularity
) -> tuple[int | None, int]:
    """End and start of a sentence; of the response where that is what is paid or no sentence is
    known.
    """
    if sentence is None or granularity == "paragraph":
        return None, 0
    start, end = feedback.sentences[sentence]
    return end, start


def _informativeness(verdicts: Table, verdict: Verdict, g: Mapping[int, float]) -> int:
    rating = verdict.informativeness
    if rating is None or rating not in g:
        # all claims are rated in one call
        check_not_failed(verdicts, "response", "informativeness")
        message = (
            f"informativeness {rating} of the {verdict.target} is none of"
            f" {', '.join(map(str, sorted(g)))}"
        )
        raise unscored("no_informativeness", f"{message}: grade with a verifier that rates it")
    return rating


def _is_about_another(verdicts: Table, verdict: Verdict) -> bool:
    """Whether a claim that is of no use is about another subject, and does not repeat what was
    said before.
    """
    subject = verdicts.get((verdict.target, "subject"))
    if subject is not None:
        return label(subject, SUBJECTS) == "other"
    if verdict.informativeness != USELESS or any(UNPARSED in item for item in verdict.evidence):
        return False
    raise unscored(
        "no_verdict",
        f"no 'subject' verdict on the {verdict.target}: grade with a judge that gives one",
    )


def _excess(response: Response, events: Sequence[Event], clip: float) -> list[Event]:
    """What must be added on each token so that no more than ±clip is paid to it."""
    offsets = response.offsets or words(response.text) or ((0, 0),)
    paid = place(replace(response, offsets=offsets), events)
    ends = [end for _, end in offsets[:-1]] + [None]  # of the response, for the last token
    return [
        Event("clip", max(-clip, min(clip, value)) - value, end)
        for value, end in zip(paid, ends, strict=True)
        if abs(value) > clip
    ]
