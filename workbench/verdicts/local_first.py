"""Check claims with the local verifier first, and some of them with a language model."""

from dataclasses import replace

from workbench.types import (
    SUPPORTED,
    UNPARSED,
    Batch,
    Checked,
    Claims,
    Response,
    Verdict,
    Verify,
)
from workbench.util.failures import unjudged
from workbench.verdicts.informativeness import informativeness

_FOREIGN = ("language", "script")  # why the local verifier, but not the model, cannot read a claim


def local_first(local: Verify, judge: Verify) -> Verify:
    """Return a function that labels claims by `local`, and some of them again by `judge`.

    The verdict of `judge` replaces that of `local` on these claims:

    * claims that `local` labels correct, because it often accepts a wrong relation between the
      right names
    * claims in a language or script that `local` cannot read

    If `judge` fails on a claim, the verdict has an error and no label. The informativeness is
    always rated by the rules of `local`.

    Args:
        local: the check by the local verifier.
        judge: the check by a language model. Both checks return verdicts with `aspect="fact"`.
    """

    def verify(batch: Batch) -> list[Checked]:
        first = local(batch)
        rest = [
            (response, replace(claims, verdicts=(*claims.verdicts, *final)))
            for (response, claims), checked in zip(batch, first, strict=True)
            for final in [[one for one in checked.verdicts if not _needs_judge(one)]]
        ]
        return [
            _merged(*pair, one, other)
            for pair, one, other in zip(batch, first, judge(rest), strict=True)
        ]

    return verify


def _needs_judge(verdict: Verdict) -> bool:
    return verdict.label in SUPPORTED or _is_foreign(verdict)


def _is_foreign(verdict: Verdict) -> bool:
    """Return whether the local verifier could not read a claim because of its language."""
    failed = verdict.error is not None and verdict.error.kind in _FOREIGN
    return failed or unjudged(vars(verdict)).get(UNPARSED) in _FOREIGN


def _merged(response: Response, claims: Claims, first: Checked, second: Checked) -> Checked:
    by_target = {verdict.target: verdict for verdict in second.verdicts}
    question, ratings = response.question, dict[str, int]()
    if any(map(_is_foreign, first.verdicts)):  # the local verifier has not rated these claims
        rated = informativeness(claims.claims, question.text, question.title)
        ratings = {f"claim:{id}": rating for id, rating in rated.items()}
    verdicts = (
        replace(
            by_target[one.target],
            informativeness=ratings[one.target] if _is_foreign(one) else one.informativeness,
        )
        if _needs_judge(one)
        else one
        for one in first.verdicts
    )
    passages = {passage.id: passage for passage in (*first.passages, *second.passages)}
    return Checked(tuple(verdicts), first.cost + second.cost, tuple(passages.values()))
