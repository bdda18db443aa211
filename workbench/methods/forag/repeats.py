"""The option `repeats="once"` *(ours)*: sentences that repeat what the answer stated before."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence

from workbench.methods.lookup import Table, find, on_claim, probability, supported
from workbench.text.repeats import gist, wording
from workbench.types import SUBJECTS, Claim, Feedback


def repeated_sentences(
    feedback: Feedback,
    verdicts: Table,
    groups: Mapping[int | None, Sequence[Claim]],
    modelled: Collection[int],
    threshold: float,
) -> set[int | None]:
    """Return the answer's repeated sentences; None stands for the claims without a sentence.

    A sentence is repeated if it, or each of its claims, matches an earlier sentence or claim of the
    same truth value. True statements match if they differ only in word order and fillers (`gist`),
    or if the judge finds the repetition; a true statement in other words counts again. False
    statements match only in the same words (`wording`), so that one is ignored only if the same
    one has been penalised before.

    Args:
        groups: the answer's claims by sentence.
        modelled: indices of the sentences that have a reward model's score.
        threshold: the score from which all claims of such a sentence count as true.
    """
    seen, repeated = set[Hashable](), set[int | None]()
    for number in sorted({*groups, *modelled}, key=lambda number: (number is None, number or 0)):
        own = groups.get(number, ())
        if number in modelled:
            score = probability(find(verdicts, f"segment:{number}", "factuality"))
            true = [score >= threshold] * max(1, len(own))
        else:
            true = [bool(supported(on_claim(verdicts, claim, "fact"))) for claim in own]
        # a modelled sentence without claims has a truth value and no claim
        pairs = list(zip(own, true, strict=False))
        statements = [_statement(claim.text, [is_true]) for claim, is_true in pairs]
        known = [
            statement in seen or (is_true and _judged_repeated(verdicts, claim))
            for statement, (claim, is_true) in zip(statements, pairs, strict=True)
        ]
        whole = set[Hashable]()
        if number is not None:
            start, end = feedback.sentences[number]
            whole = {_statement(feedback.response.text[start:end], true)}
        if whole & seen or (known and all(known)):
            repeated.add(number)
        seen |= {*statements, *whole}
    return repeated


def _statement(text: str, true: Sequence[bool]) -> Hashable:
    """Return a key that two texts share if they make the same, equally true statement."""
    return gist(text) if all(true) else (tuple(true), wording(text))


def _judged_repeated(verdicts: Table, claim: Claim) -> bool:
    """Whether the judge calls a claim useless although it is about the subject of the question."""
    verdict = verdicts.get((f"claim:{claim.id}", "subject"))
    return verdict is not None and verdict.error is None and verdict.label == SUBJECTS[0]
