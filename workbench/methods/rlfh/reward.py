"""RLFH's reward: terms for the truth of claims and the informativeness of sentences.

Source: arXiv 2406.12221, section 3.2.
"""

from collections.abc import Mapping, Sequence
from math import fsum, log1p

from workbench.credit.attribute import is_placed
from workbench.methods.lookup import (
    Table,
    by_sentence,
    check_not_failed,
    claims,
    find,
    label,
    on_claim,
    scored,
    sums,
    total,
    unscored,
)
from workbench.methods.rlfh.config import (
    RLFH,
    factors,
    label_values,
    warn_of_rewarded_mistakes,
)
from workbench.types import (
    SUBJECTS,
    Claim,
    Event,
    Feedback,
    Reward,
    RewardFn,
    Verdict,
    WorkbenchError,
)
from workbench.util.config import check_values
from workbench.util.failures import is_off_subject

SUPPLEMENTARY = 2  # the informativeness of a supplementary claim
Bounds = tuple[int | None, int | None]  # (start, end) in characters; end None: the response's end


def reward(config: RLFH) -> RewardFn:
    """Return the reward function: a sum of terms for claims and for sentences (equations 1 and 2).

    * Each claim adds α·f(label)·|g(info)|.
    * Each sentence with claims adds β·log(1 + max(ε, Σ g(info))), where Σ is the sum over its
      claims.

    `info` is a claim's informativeness, 1 to 5. α, β and ε are settings. f is `label_values`, and g
    is `factors`.

    * Claims in the thinking do not count *(ours)*.
    * All claims whose sentence is not known count together as one sentence *(ours)*.
    * Without claims, as in a refusal, the reward is 0.
    * With `off_subject="wrong"`, a claim about another subject than the question's adds
      α·f("wrong")·|g(2)|, even if the claim is true *(ours)*.

    The setting `granularity` selects where the terms are assigned. "statement": at the ends of
    claims and of sentences. "sentence": at the ends of sentences. "paragraph": at the end of the
    response.

    The reward is None if a verdict or an informativeness rating that it needs failed or is missing.

    Raises:
        WorkbenchError: invalid settings.
    """
    check_values(config)
    if config.epsilon <= -1:
        raise WorkbenchError(
            f"rlfh.epsilon must be > -1 (got {config.epsilon}): the logarithm is undefined"
        )
    warn_of_rewarded_mistakes(config)
    f, g = label_values(config), factors(config)

    def of_sentence(
        feedback: Feedback, verdicts: Table, number: int | None, own: Sequence[Claim]
    ) -> list[Event]:
        whole: Bounds = (0, None)  # the response; below, the sentence if it gets its own rewards
        if number is not None and config.granularity != "paragraph":
            whole = feedback.sentences[number]
        events, weights = list[Event](), list[float]()
        for claim in own:
            verdict = on_claim(verdicts, claim, "fact")
            weight = g[_informativeness(verdicts, verdict, g)]
            truth = f[label(verdict, f)] * abs(weight)  # equation 1
            if config.off_subject == "wrong" and _is_about_another(verdicts, verdict):
                truth = f["wrong"] * abs(g[SUPPLEMENTARY])
            bounds = whole
            if config.granularity == "statement" and is_placed(claim):
                bounds = (claim.span[0] if claim.span else None, claim.end)
            events.append(event("truth", config.alpha * truth, bounds, claim.id))
            weights.append(weight)
        info = log1p(max(config.epsilon, fsum(weights)))  # equation 2
        return [*events, event("info", config.beta * info, whole)]

    def event(part: str, value: float, bounds: Bounds, claim: int | None = None) -> Event:
        # with `spread`, all tokens from `start` to `end` share the reward *(ours)*
        start, end = bounds
        return Event(part, value, end, claim=claim, start=start if config.spread else None)

    @scored
    def rlfh(feedback: Feedback, verdicts: Table) -> Reward:
        answer = claims(feedback, lambda claim: claim.section != "think")
        events = list[Event]()
        for number, own in by_sentence(answer).items():
            events += of_sentence(feedback, verdicts, number, own)
        unplaced = tuple(claim.id for claim in answer if not is_placed(claim))
        parts = sums(events, "truth", "info")
        return Reward(total(events), parts, tuple(events), unplaced=unplaced)

    return rlfh


def _informativeness(verdicts: Table, verdict: Verdict, g: Mapping[int, float]) -> int:
    rating = verdict.informativeness
    if rating is None or rating not in g:
        # one call rates all claims; if it failed, there is a failed verdict on the response
        check_not_failed(verdicts, "response", "informativeness")
        raise unscored(
            "no_informativeness",
            f"the informativeness of {verdict.target} is {rating}, not one of"
            f" {', '.join(map(str, sorted(g)))}: grade with a judge that rates informativeness",
        )
    return rating


def _is_about_another(verdicts: Table, verdict: Verdict) -> bool:
    """Return whether the claim of `verdict` is about another subject than the question's.

    The claim's "subject" verdict decides. Without one, the result is False if the informativeness
    is above 1, or if the judge could not parse the claim.

    Raises:
        Unscored: the "subject" verdict failed, or it is missing although the claim has
            informativeness 1 (useless).
    """
    if (verdict.target, "subject") in verdicts:
        return label(find(verdicts, verdict.target, "subject"), SUBJECTS) == "other"
    if not is_off_subject(vars(verdict), {}):
        return False
    raise unscored(
        "no_verdict",
        f"no 'subject' verdict says whether {verdict.target} is about the question's subject: grade"
        " with a judge that gives such verdicts, or leave rlfh.off_subject out",
    )
