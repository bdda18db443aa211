"""Rows that bring their verdicts, so that no judge is needed: stored feedback, or claims that
carry their labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from workbench.answers import section_at, sections, sentences
from workbench.credit.attribute import locate
from workbench.score.source import Malformed
from workbench.types import (
    ASPECTS,
    CLAIM_LABELS,
    SECTIONS,
    Claim,
    Cost,
    Event,
    Failure,
    Feedback,
    Response,
    Reward,
    Verdict,
)

# The aspect of a verdict that names none, by its target.
USUAL = {
    "claim": "fact",
    "item": "checklist",
    "outcome": "answer",
    "reasoning": "reasoning",
    "segment": "factuality",
}


def stored(row: Mapping[str, Any], response: Response, split: bool) -> Feedback:
    """A row with `verdicts`: as it was stored, or with no more than it needs."""
    claims = _claims(row)
    verdicts = tuple(_verdict(raw, response) for raw in _list(row, "verdicts"))
    targets = {f"claim:{claim.id}" for claim in claims}
    if stray := next(
        (v.target for v in verdicts if v.target.startswith("claim:") and v.target not in targets),
        None,
    ):
        raise Malformed(f"a verdict is on '{stray}', which is not among the claims")
    _check_one_verdict(verdicts)
    spans, claims = _located(row, response, claims, split)
    return Feedback(
        response,
        spans,
        claims,
        verdicts,
        rewards=rewards(row),
        error=_failure(row.get("error")),
        cost=_cost(row),
    )


def shorthand(row: Mapping[str, Any], response: Response, split: bool) -> Feedback:
    """A row whose claims carry their own labels, as a person or another program may write it."""
    raw_claims = _list(row, "claims")
    for claim in raw_claims:
        if not isinstance(claim, Mapping) or claim.get("label") not in CLAIM_LABELS:
            raise Malformed(f'a claim has no "label" out of {", ".join(CLAIM_LABELS)}')
    spans, claims = _located(row, response, _claims(row), split)
    verdicts = [
        _verdict({**claim, "target": f"claim:{number}", "by": claim.get("by", "given")}, response)
        for number, claim in zip((claim.id for claim in claims), raw_claims, strict=True)
    ]
    for target in ("outcome", "reasoning"):
        if target in row:
            verdicts.append(
                _verdict({"target": target, "label": row[target], "by": "given"}, response)
            )
    return Feedback(response, spans, claims, tuple(verdicts), rewards=rewards(row))


def _check_one_verdict(verdicts: Sequence[Verdict]) -> None:
    """Raise Malformed where two verdicts of one aspect on one target differ: a reward would take
    the first, unseen.
    """
    first: dict[tuple[str, str], Verdict] = {}
    for verdict in verdicts:
        earlier = first.setdefault((verdict.target, verdict.aspect), verdict)
        differ = [
            name
            for name in ("label", "p", "informativeness")
            if getattr(earlier, name) != getattr(verdict, name)
        ]
        if differ:
            values = " and ".join(str(getattr(v, differ[0])) for v in (earlier, verdict))
            raise Malformed(
                f"two verdicts on '{verdict.target}' ({verdict.aspect}) contradict each other:"
                f" {differ[0]} {values}"
            )


def _list(row: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = row.get(name) or ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise Malformed(f'"{name}" is not a list')
    return value


def _claims(row: Mapping[str, Any]) -> tuple[Claim, ...]:
    claims = []
    for number, raw in enumerate(_list(row, "claims")):
        if not isinstance(raw, Mapping) or not isinstance(raw.get("text"), str):
            raise Malformed('a claim is not {"text", …}')
        claims.append(_claim(number, raw))
    if len({claim.id for claim in claims}) < len(claims):
        raise Malformed("two claims have the same id")
    return tuple(claims)


def _claim(number: int, raw: Mapping[str, Any]) -> Claim:
    span, section = raw.get("span"), raw.get("section") or "body"
    integers = {name: raw[name] for name in ("id", "sentence", "end") if raw.get(name) is not None}
    if section not in SECTIONS:
        raise Malformed(f'a claim\'s "section" is none of {", ".join(SECTIONS)}')
    if span is not None and not (
        isinstance(span, Sequence) and len(span) == 2 and all(map(_is_whole, span))
    ):
        raise Malformed('a claim\'s "span" is not a pair of positions')
    if not all(map(_is_whole, integers.values())) or not (
        raw.get("coverage") is None or is_number(raw["coverage"])
    ):
        raise Malformed('a claim has an "id", "sentence", "end" or "coverage" that is no number')
    pair = None if span is None else (span[0], span[1])
    return Claim(
        **{"id": number, **integers},
        text=raw["text"],
        section=section,
        span=pair,
        coverage=raw.get("coverage"),
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _located(
    row: Mapping[str, Any], response: Response, claims: tuple[Claim, ...], split: bool
) -> tuple[tuple[tuple[int, int], ...], tuple[Claim, ...]]:
    """Sentences and claims with their places: the row's own, or found in the response where it
    gives none.
    """
    spans = (
        _spans(row, response)
        if "sentences" in row
        else sentences(response.text, response.prefill)
        if split
        else None
    )
    _check_places(spans, claims, len(response.text))
    if spans is None or "sentences" in row or all(claim.span for claim in claims):
        return spans or (), claims
    parts = sections(response.text, response.prefill)
    located = locate(response.text, spans, claims)
    return spans, tuple(
        (
            replace(claim, section=section_at(parts, claim.span[0]) or "body")
            if claim.span and claim.section == "body"
            else claim
        )
        for claim in located
    )


def _spans(row: Mapping[str, Any], response: Response) -> tuple[tuple[int, int], ...]:
    try:
        return spans_in(row["sentences"], response)
    except (TypeError, ValueError) as error:
        raise Malformed('"sentences" is not a list of spans in the response') from error


def spans_in(given: Any, response: Response) -> tuple[tuple[int, int], ...]:
    """Pairs of positions in the response; raises ValueError or TypeError if they are none."""
    spans = tuple((start, end) for start, end in given)
    if not all(
        _is_whole(start) and _is_whole(end) and 0 <= start <= end <= len(response.text)
        for start, end in spans
    ):
        raise ValueError(given)
    return spans


def _check_places(
    spans: Sequence[tuple[int, int]] | None, claims: Sequence[Claim], size: int
) -> None:
    """Raise Malformed for places that the response has not; `spans` None: its sentences are not
    known yet.
    """
    numbers = [claim.sentence for claim in claims if claim.sentence is not None]
    if spans is None and numbers:
        raise Malformed('a claim names a "sentence", and the row has no "sentences"')
    if spans is not None and any(not 0 <= number < len(spans) for number in numbers):
        raise Malformed("a claim names a sentence that is not there")
    ends = [claim.end for claim in claims if claim.end is not None]
    if any(
        claim.span and not 0 <= claim.span[0] <= claim.span[1] <= size for claim in claims
    ) or any(not 0 <= end <= size for end in ends):
        raise Malformed("a claim has a span outside the response")


def _verdict(raw: Any, response: Response) -> Verdict:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("target"), str):
        raise Malformed('a verdict has no "target"')
    target = raw["target"]
    aspect = str(raw.get("aspect") or USUAL.get(target.partition(":")[0], target))
    label, p, rating = raw.get("label"), raw.get("p"), raw.get("informativeness")
    if (declared := ASPECTS.get(aspect)) and label not in (*declared, None):
        raise Malformed(
            f"'{label}' of '{target}' is no label: it must be one of {', '.join(declared)}"
        )
    if label is not None and not isinstance(label, str):
        raise Malformed(f"the label of '{target}' is not a text")
    if p is not None and not (is_number(p) and 0 <= p <= 1):
        raise Malformed(f"p of '{target}' is not between 0 and 1")
    if rating is not None and not (_is_whole(rating) and 1 <= rating <= 5):
        raise Malformed(f"informativeness of '{target}' is not 1, 2, 3, 4 or 5")
    evidence = tuple(_list(raw, "evidence"))
    if not all(isinstance(item, Mapping) for item in evidence):
        raise Malformed(f"the evidence of '{target}' has an entry that is not an object")
    return Verdict(
        target,
        aspect,
        label,
        p=p,
        informativeness=rating,
        evidence=evidence,
        by=str(raw.get("by") or ""),
        error=_failure(raw.get("error")),
    )


def rewards(row: Mapping[str, Any]) -> dict[str, Reward]:
    """The rewards that were paid before; those of the methods asked for are paid anew."""
    by_method = row.get("rewards") or {}
    if not isinstance(by_method, Mapping) or not all(
        reward is None or isinstance(reward, Mapping) for reward in by_method.values()
    ):
        raise Malformed('"rewards" is not an object of rewards by method')
    try:
        return {name: _reward(reward) for name, reward in by_method.items() if reward is not None}
    except (AttributeError, TypeError, ValueError, LookupError) as error:
        raise Malformed('"rewards" has a reward that is not {value, parts, events, …}') from error


def _reward(row: Mapping[str, Any]) -> Reward:
    events = tuple(Event(**event) for event in _list(row, "events"))
    # as tables fill gaps
    parts = {name: value for name, value in (row.get("parts") or {}).items() if value is not None}
    lists = {name: tuple(_list(row, name)) for name in ("tokens", "unplaced")}
    numbers = [*parts.values(), *lists["tokens"], *(event.value for event in events)]
    if not all(map(is_number, numbers)) or not (row["value"] is None or is_number(row["value"])):
        raise ValueError(numbers)
    return Reward(row["value"], parts, events, **lists, error=_failure(row.get("error")))


def _failure(raw: Any) -> Failure | None:
    if raw is None:
        return None
    failure = _made(Failure, raw, "error")
    if not all(isinstance(value, str) for value in vars(failure).values()):
        raise Malformed('"error" has a field that is not a text')
    return failure


def _cost(row: Mapping[str, Any]) -> Cost:
    cost = _made(Cost, row.get("cost") or {}, "cost")
    if not all(map(is_number, vars(cost).values())):
        raise Malformed('"cost" has a field that is not a number')
    return cost


def _made(kind: type, raw: Any, name: str) -> Any:
    if not isinstance(raw, Mapping):
        raise Malformed(f'"{name}" is not an object')
    try:
        return kind(**{field.name: raw[field.name] for field in fields(kind) if field.name in raw})
    except TypeError as error:
        raise Malformed(f'"{name}" is incomplete') from error
