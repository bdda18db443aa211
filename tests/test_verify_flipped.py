"""A poorer annotator turns around as many verdicts as it is told, always the same ones, and
nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from workbench.types import Checked, Claim, Claims, Question, Response, Verdict, WorkbenchError
from workbench.verify.annotators import OPPOSITE, flipped

LABELS = ("correct", "wrong", "hedged_correct", "hedged_wrong", "vague")
CLAIMS = Claims((), tuple(Claim(number, f"claim {number}", "body") for number in range(500)))
RESPONSE = Response("r", Question("q", "?"), "…")


def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
    facts = [Verdict(f"claim:{n}", "fact", LABELS[n % 5], p=0.25, by="exact") for n in range(500)]
    return [
        Checked(
            (
                *facts,
                Verdict("claim:0", "subject", "other"),
                Verdict("outcome", "answer", "correct"),
            )
        )
        for _ in batch
    ]


def test_a_share_of_the_facts_is_turned_around() -> None:
    [before], [after] = verify([(RESPONSE, CLAIMS)]), flipped(verify, 0.3)([(RESPONSE, CLAIMS)])
    turned = [(b, a) for b, a in zip(before.verdicts, after.verdicts, strict=True) if a != b]
    assert 0.2 < len(turned) / 400 < 0.4  # of those that are not vague
    for b, a in turned:
        assert (
            a.label == OPPOSITE[str(b.label)]
            and a.p == 0.75
            and a.by == "exact, flipped"
            and b.aspect == "fact"
        )
    assert flipped(verify, 0.3)([(RESPONSE, CLAIMS)])[0] == after
    assert flipped(verify, 0.3, seed=1)([(RESPONSE, CLAIMS)])[0] != after


def test_nothing_or_all_and_no_other_share() -> None:
    [before], [none], [every] = (
        check([(RESPONSE, CLAIMS)])
        for check in (verify, flipped(verify, 0.0), flipped(verify, 1.0))
    )
    assert (
        none == before
        and sum(a != b for a, b in zip(every.verdicts, before.verdicts, strict=True)) == 400
    )
    with pytest.raises(WorkbenchError, match="flips is"):
        flipped(verify, 1.5)
