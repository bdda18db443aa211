"""A poorer annotator: a check whose verdicts on claims are turned around now and then (RLFH,
arXiv 2406.12221, table 3 compares annotators)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from workbench.types import Checked, Claims, Response, Verdict, Verify, WorkbenchError

AROUND = {
    "correct": "wrong",
    "wrong": "correct",
    "hedged_correct": "hedged_wrong",
    "hedged_wrong": "hedged_correct",
}


def flipped(verify: Verify, share: float, seed: int = 0) -> Verify:
    """`verify` with a `share` of its "fact" verdicts turned around: true becomes wrong, wrong
    becomes true, vague stays.

    The same claim in answer to the same question is always judged alike, as by an annotator who
    holds it for true.

    Raises:
        WorkbenchError: `share` is not between 0 and 1.
    """
    if not 0 <= share <= 1:
        raise WorkbenchError(f"flips is {share}: it must lie between 0 and 1")

    def turned(response: Response, claims: Claims, verdict: Verdict) -> Verdict:
        texts = {f"claim:{claim.id}": claim.text for claim in claims.claims}
        drawn = random.Random(
            f"flipped-{seed}-{response.question.id}-{texts.get(verdict.target)}"
        ).random()
        if verdict.aspect != "fact" or verdict.label not in AROUND or drawn >= share:
            return verdict
        p = None if verdict.p is None else 1 - verdict.p
        return replace(verdict, label=AROUND[verdict.label], p=p, by=f"{verdict.by}, flipped")

    def verify_flipped(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        found = verify(batch)
        return [
            replace(
                checked,
                verdicts=tuple(turned(response, claims, verdict) for verdict in checked.verdicts),
            )
            for (response, claims), checked in zip(batch, found, strict=True)
        ]

    return verify_flipped
