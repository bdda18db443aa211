"""Check claims with the local verifier, then those labelled correct with a language model."""

from dataclasses import replace

from workbench.types import SUPPORTED, Batch, Checked, Verify


def local_first(local: Verify, judge: Verify) -> Verify:
    """Return a function that labels claims by `local`, and its correct claims again by `judge`.

    If `local` labels a claim correct, the verdict of `judge` replaces its verdict, because the
    local verifier often accepts a wrong relation between the right names. If `judge` fails on a
    claim, the verdict has an error and no label. The informativeness is always that of `local`.

    Args:
        local: the check by the local verifier.
        judge: the check by a language model. Both checks return verdicts with `aspect="fact"`.
    """

    def verify(batch: Batch) -> list[Checked]:
        first = local(batch)
        rest = [
            (response, replace(claims, verdicts=(*claims.verdicts, *final)))
            for (response, claims), checked in zip(batch, first, strict=True)
            for final in [[one for one in checked.verdicts if one.label not in SUPPORTED]]
        ]
        return [_merged(one, other) for one, other in zip(first, judge(rest), strict=True)]

    return verify


def _merged(first: Checked, second: Checked) -> Checked:
    by_target = {verdict.target: verdict for verdict in second.verdicts}
    verdicts = (
        replace(by_target[one.target], informativeness=one.informativeness)
        if one.label in SUPPORTED
        else one
        for one in first.verdicts
    )
    passages = {passage.id: passage for passage in (*first.passages, *second.passages)}
    return Checked(tuple(verdicts), first.cost + second.cost, tuple(passages.values()))
