"""Checks whose labels of claims are from another annotator than the bench's judge.

An annotator is a model that labels claims, such as the local verifier. RLFH (arXiv 2406.12221,
section 4.5, table 3) compares policies that learn from different annotators.
"""

import random
from collections.abc import Mapping
from dataclasses import replace

from workbench.types import Batch, Checked, Claim, Claims, Cost, Passage, Response, Verdict, Verify
from workbench.verdicts.claims import open_claims, searched, unfound
from workbench.verdicts.local import local_facts
from workbench.verifier.verifier import Verifier
from workbench.world.world import World

OPPOSITE = {
    "correct": "wrong",
    "wrong": "correct",
    "hedged_correct": "hedged_wrong",
    "hedged_wrong": "hedged_correct",
}

Key = tuple[str, str]  # (id of the question, text of the claim)


def annotated(verify: Verify, annotator: Verify) -> Verify:
    """Return a check like `verify`, but with the labels that `annotator` gives to claims.

    * The ratings of informativeness are from `verify`. So are the "subject" verdicts, which say
      whether an irrelevant claim is about another subject than the question's.
    * Failed verdicts of `verify` are kept.
    * The annotator reads each claim alone, without its response. It reads claims with the same
      question and words only once.
    * Claims that the extractor has already labelled keep their labels.
    * The annotator's costs and passages are added to those of `verify`.
    """
    known: dict[Key, Checked] = {}

    def run(batch: Batch) -> list[Checked]:
        rows = [
            {
                f"claim:{claim.id}": (response.question.id, claim.text)
                for claim in open_claims(extraction)
            }
            for response, extraction in batch
        ]
        questions = {response.question.id: response.question for response, _ in batch}
        new = [key for key in {key: 1 for row in rows for key in row.values()} if key not in known]
        alone = [
            (Response("", questions[name], text), Claims((), (Claim(0, text),)))
            for name, text in new
        ]
        fresh = dict(zip(new, annotator(alone), strict=True))
        judged = known | fresh  # a failed claim is judged again in the next batch
        known.update((key, one) for key, one in fresh.items() if one.verdicts[0].error is None)
        costs = {key: one.cost for key, one in fresh.items()}
        return [
            _relabelled(checked, keys, judged, costs)
            for checked, keys in zip(verify(batch), rows, strict=True)
        ]

    return run


def _relabelled(
    checked: Checked, keys: Mapping[str, Key], judged: Mapping[Key, Checked], costs: dict[Key, Cost]
) -> Checked:
    """Return `checked` with the annotator's verdicts and passages, and the costs of its claims.

    Args:
        keys: target of a verdict, such as "claim:0" -> key of its claim.
        judged: key of a claim -> the annotator's result.
        costs: key of a claim -> a cost that no row contains yet. Costs that are added here are
            removed from this dict.
    """

    def relabelled(verdict: Verdict) -> Verdict:
        if verdict.aspect != "fact" or verdict.error is not None or verdict.target not in keys:
            return verdict
        other = judged[keys[verdict.target]].verdicts[0]
        rating = verdict.informativeness if other.error is None else None
        return replace(other, target=verdict.target, informativeness=rating)

    cited = {page.id: page for key in keys.values() for page in judged[key].passages}
    return Checked(
        tuple(map(relabelled, checked.verdicts)),
        sum((costs.pop(key, Cost()) for key in keys.values()), checked.cost),
        (*checked.passages, *(page for page in cited.values() if page not in checked.passages)),
    )


def by_verifier(verifier: Verifier, world: World) -> Verify:
    """Return a check by the local verifier, which compares claims with pages of the closed world.

    For the question title "Ana Bo", these are all pages with the title "Ana Bo". A page can exist
    in a current and an outdated edition; both are used. If there is no page, the claim is labelled
    "vague" *(ours)*.
    """
    verify, pages = local_facts(verifier), dict[str, list[Passage]]()
    for page in world.pages:
        pages.setdefault(page.title, []).append(Passage(page.id, page.title, page.text))

    def run(batch: Batch) -> list[Checked]:
        own = [
            tuple(page for title in one.question.titles for page in pages.get(title, ()))
            for one, _ in batch
        ]
        rows = [
            (replace(response, question=replace(response.question, passages=passages)), extraction)
            for (response, extraction), passages in zip(batch, own, strict=True)
        ]
        return [
            replace(
                checked,
                verdicts=tuple(map(_left_open, checked.verdicts)),
                passages=searched(response, [passages]) if checked.verdicts else (),
            )
            for checked, (response, _), passages in zip(verify(rows), batch, own, strict=True)
        ]

    return run


def _left_open(verdict: Verdict) -> Verdict:
    # with a failure instead, people without a page would not be used in training
    missing = verdict.error is not None and verdict.error.kind == "no_passages"
    return unfound(replace(verdict, error=None)) if missing else verdict


def flipped(verify: Verify, share: float) -> Verify:
    """Return a check like `verify`, with a share of its labels of claims inverted.

    This simulates a worse annotator. "correct" and "wrong" are swapped, also in hedged labels, and
    p becomes 1 − p. Equal claims about the same question are treated alike: a hash of the
    question's id and the claim's text selects the claims.

    Args:
        share: expected share of inverted labels, from 0 to 1.
    """

    def inverted(response: Response, claims: Claims, verdict: Verdict) -> Verdict:
        texts = {f"claim:{claim.id}": claim.text for claim in claims.claims}
        # the key has the claim's text, so that equal claims get equal labels in all samples
        key = f"flipped-0-{response.question.id}-{texts.get(verdict.target)}"
        flips = random.Random(key).random() < share
        if verdict.aspect != "fact" or verdict.label not in OPPOSITE or not flips:
            return verdict
        # rewards may read p instead of the label, so it is inverted too
        p = None if verdict.p is None else 1 - verdict.p
        return replace(verdict, label=OPPOSITE[verdict.label], p=p, by=f"{verdict.by}, flipped")

    return lambda batch: [
        replace(one, verdicts=tuple(inverted(*row, verdict) for verdict in one.verdicts))
        for row, one in zip(batch, verify(batch), strict=True)
    ]
