"""Check claims against passages with the local verifier, without a language model."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

from workbench.retrieval import Search
from workbench.retrieval.evidence import Evidence
from workbench.types import (
    OBJECTION,
    THRESHOLD,
    UNFOUND,
    Batch,
    Checked,
    Claim,
    Cost,
    Failure,
    JsonMapping,
    Passage,
    Response,
    Verdict,
    Verify,
)
from workbench.util.failures import unjudged, unparsed
from workbench.verdicts.claims import (
    HEDGED,
    cite,
    is_hedged,
    nearest_sentences,
    open_claims,
    retrieve,
    searched,
)
from workbench.verdicts.informativeness import informativeness, is_part
from workbench.verifier.reading import joined_values
from workbench.verifier.verifier import OBJECTION_CAP, Entailment, Verifier

LIMITS = (
    "The local verifier compares words, numbers and names. It does not see relations: a claim that"
    ' reuses words of its evidence in another relation ("Paraguay is in Argentina" where the'
    " evidence says that it borders Argentina) is often called correct."
)
_ENGLISH_ONLY = (
    "the local verifier reads English only: name another judge (--judge URL --judge-model NAME)"
)


_LOCAL = WeakValueDictionary[int, Verify]()  # id -> check by the local verifier


def mark_local(check: Verify) -> Verify:
    """Mark a check as one by the local verifier, without a language model, and return it.

    A function that wraps such a check must mark its result too, as `by_table` does.
    """
    _LOCAL[id(check)] = check  # by identity, since a check of the user may have no hash
    return check


def is_local(check: Verify | None) -> bool:
    """Return whether a check was marked by `mark_local`, as those from `local_facts` are."""
    return check is not None and _LOCAL.get(id(check)) is check


def warn_of_training() -> None:
    """Warn that a policy trained against the local verifier learns to exploit its errors."""
    warnings.warn(
        f"training against the local verifier, without a language model: {LIMITS} Trained policies"
        " find such claims within a few steps: use a language model as the judge, or read the"
        " rollouts (docs/trust.md)",
        stacklevel=2,
    )


def local_facts(
    verifier: Verifier, search: Search | None = None, k: int = 5, alone: bool = True
) -> Verify:
    """Return a function that labels claims by the local verifier, a small entailment model.

    A claim is compared with all passages of its question or, if there are none, with the `k` best
    passages that `search` finds. The verdicts have `aspect="fact"`, a label, P(true), evidence, and
    an informativeness rated by rules (RLFH uses a model). Claims that the extractor has already
    labelled are skipped.

    * If the retrieval of passages fails, the verdict has an error (`stage="retrieve"`).
    * A claim that the verifier cannot read, such as a French claim or "China.", is labelled vague.
      The evidence has the reason, such as "language".
    * If both claim and question are in a script other than Latin, the verdict has an error.
    * If the passages lack a number or name of the claim, its label is wrong and its P(true) is low.
    * If the claim or its sentence is hedged, "correct" becomes "hedged_correct" and "wrong" becomes
      "hedged_wrong".
    * A claim may join two values, as in "won the prize in Physics in 1911", and contain another
      claim of its sentence ("won the prize in 1911"). The longer claim is labelled correct only if
      a single sentence of the passages supports it; if only several together do, it is vague.

    Args:
        verifier: the local verifier.
        search: finds passages for questions without passages. None: the retrieval fails for the
            claims of these questions.
        k: number of passages that `search` returns for a claim.
        alone: if True, warn once if some claims are not in English. If False, another judge checks
            these claims.
    """

    warned = not alone

    def verify(batch: Batch) -> list[Checked]:
        nonlocal warned
        start = time.perf_counter()
        numbered_claims = [
            (number, claim)
            for number, (_, extraction) in enumerate(batch)
            for claim in open_claims(extraction)
        ]
        responses = [batch[number][0] for number, _ in numbered_claims]
        claims = [claim for _, claim in numbered_claims]
        passages = retrieve(list(zip(responses, claims, strict=True)), search, k, narrow=False)
        preset = list(map(_preset, responses, claims, passages))
        pairs = [
            (claim.text, retrieved)
            for claim, retrieved, verdict in zip(claims, passages, preset, strict=True)
            if verdict is None and not isinstance(retrieved, Failure)
        ]
        # all claims in one batch, because the verifier sorts the pairs by length
        checks = iter(verifier.check_all(pairs))
        ratings = [
            informativeness(extraction.claims, response.question.text, response.question.title)
            for response, extraction in batch
        ]
        rows: list[list[Verdict]] = [[] for _ in batch]
        lists: list[list[Evidence]] = [[] for _ in batch]
        for (number, claim), retrieved, verdict in zip(
            numbered_claims, passages, preset, strict=True
        ):
            if verdict is None:
                assert not isinstance(retrieved, Failure)  # else the verdict is preset
                verdict = _verdict(verifier, claim, retrieved, next(checks))
                # the second check takes time, and can only lower a label
                if verdict.label == "correct" and _is_joint(claim, batch[number][1].claims):
                    verdict = _check_joint(verifier, claim, retrieved, verdict)
                if is_hedged(*batch[number], claim):
                    label = str(verdict.label)
                    verdict = replace(verdict, label=HEDGED.get(label, label))
                if verdict.informativeness is None:
                    verdict = replace(verdict, informativeness=ratings[number][claim.id])
            rows[number].append(verdict)
            lists[number].append(retrieved)
        reasons = [unjudged(vars(verdict)) for verdicts in rows for verdict in verdicts]
        if not warned and any({"language", "script"} & {*one.values()} for one in reasons):
            warned = True
            warnings.warn(
                f"some claims are not in English, and are labelled vague: {_ENGLISH_ONLY}",
                stacklevel=2,
            )
        # the batch is checked at once, so each response gets an equal share of the time
        cost = Cost(seconds=(time.perf_counter() - start) / max(1, len(batch)))
        return [
            Checked(tuple(verdicts), cost, searched(response, retrieved))
            for (response, _), verdicts, retrieved in zip(batch, rows, lists, strict=True)
        ]

    return mark_local(verify)


def _is_joint(claim: Claim, claims: Sequence[Claim]) -> bool:
    """Return whether a claim joins several values, and contains another claim of its sentence.

    Example: "won the prize in Physics in 1911" contains "won the prize in 1911".
    """
    return len(joined_values(claim.text)) > 1 and any(
        other.sentence == claim.sentence and is_part(other.text, claim.text)
        for other in claims
        if claim.sentence is not None
    )


def _check_joint(
    verifier: Verifier, claim: Claim, passages: Sequence[Passage], verdict: Verdict
) -> Verdict:
    """Return `verdict` if a single sentence of the passages supports the claim, else "vague".

    Only the three sentences that share most words with the claim are compared with it.
    """
    units = nearest_sentences(claim.text, passages)
    checks = verifier.check_all([(claim.text, [unit]) for unit in units])
    if any(verifier.label(check) == "correct" for check in checks):
        return verdict
    remark = {OBJECTION: "together", "text": ", ".join(joined_values(claim.text))}
    p = min(verdict.p or 0.0, OBJECTION_CAP * verifier.settings.split)
    return replace(verdict, label="vague", p=p, evidence=(*verdict.evidence, remark))


def _preset(response: Response, claim: Claim, passages: Evidence) -> Verdict | None:
    """Return the verdict on a claim that the verifier cannot check; None if it can check it."""
    target, foreign = f"claim:{claim.id}", _is_foreign(claim.text)
    if foreign and not _is_foreign(response.question.text):
        return unparsed(target, "script", "local")
    failure = Failure("verify", "language", _ENGLISH_ONLY) if foreign else passages
    if isinstance(failure, Failure):
        return Verdict(target, "fact", by="local", error=failure)
    return None


def _is_foreign(text: str) -> bool:
    """Return whether most letters are not Latin. A French text, for example, is not foreign."""
    letters = [letter for letter in text if letter.isalpha()]
    return 2 * sum(letter < "\u0250" for letter in letters) < len(letters)


def _verdict(
    verifier: Verifier,
    claim: Claim,
    passages: Sequence[Passage],
    check: Entailment,
) -> Verdict:
    if check.unread:
        return unparsed(f"claim:{claim.id}", check.unread, "local")
    remarks: list[JsonMapping] = [
        {OBJECTION: kind, "text": text} for kind, text in check.objections
    ]
    # a missing number or name explains the label better than a P(true) close to the threshold
    if not remarks and verifier.is_close(check):
        remarks = [{THRESHOLD: verifier.settings.support}]
    return Verdict(
        f"claim:{claim.id}",
        "fact",
        verifier.label(check),
        p=check.support,
        evidence=(*_evidence(claim, passages, check), *remarks),
        by="local",
    )


def _evidence(
    claim: Claim, passages: Sequence[Passage], check: Entailment
) -> tuple[JsonMapping, ...]:
    """Return the evidence of a verdict: the sentence that decided, as a passage id and a span.

    The verifier's result comes from one window, a part of one passage. The sentence is the one in
    the window that shares most words with the claim. If no sentence shares a word, the span is that
    of the window.
    """
    if check.passage is None or check.span is None:
        return () if passages else ({UNFOUND: "words"},)
    passage, (start, end) = passages[check.passage], check.span
    (citation,) = cite(claim.text, [replace(passage, text=passage.text[start:end])])
    first, last = citation["span"] or (0, end - start)
    return ({"passage": passage.id, "span": (start + first, start + last)},)
