"""Rows that bring their verdicts, so that no judge is needed: stored feedback, or claims that
carry their labels.
"""

from __future__ import annotations

import sys
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
    spans, claims = _located(row, response, split)
    verdicts = tuple(_verdict(raw) for raw in _list(row, "verdicts"))
    targets = {f"claim:{claim.id}" for claim in claims}
    for verdict in verdicts:
        if verdict.target.startswith("claim:") and verdict.target not in targets:
            raise Malformed(f"a verdict is on '{verdict.target}', which is not among the claims")
    _check_one_verdict(verdicts)
    cost = _made(Cost, row.get("cost") or {}, "cost")
    if not all(map(is_number, vars(cost).values())):
        raise Malformed('"cost" has a field that is not a number')
    error = _failure(row.get("error"))
    return Feedback(response, spans, claims, verdicts, rewards=rewards(row), error=error, cost=cost)


def shorthand(row: Mapping[str, Any], response: Response, split: bool) -> Feedback:
    """A row whose claims carry their own labels, as a person or another program may write it."""
    raw_claims = _list(row, "claims")
    for claim in raw_claims:
        if not isinstance(claim, Mapping) or claim.get("label") not in CLAIM_LABELS:
            raise Malformed(f'a claim has no "label" out of {", ".join(CLAIM_LABELS)}')
    spans, claims = _located(row, response, split)
    given = [
        {**raw, "target": f"claim:{claim.id}", "by": raw.get("by", "given")}
        for claim, raw in zip(claims, raw_claims, strict=True)
    ]
    for target in ("outcome", "reasoning"):
        if target in row:
            given.append({"target": target, "label": row[target], "by": "given"})
    return Feedback(response, spans, claims, tuple(map(_verdict, given)), rewards=rewards(row))


def _check_one_verdict(verdicts: Sequence[Verdict]) -> None:
    """Raise Malformed where two verdicts of one aspect on one target differ: a reward would take
    the first.
    """
    first: dict[tuple[str, str], Verdict] = {}
    for verdict in verdicts:
        earlier = first.setdefault((verdict.target, verdict.aspect), verdict)
        for name in ("label", "p", "informativeness"):
            before, value = getattr(earlier, name), getattr(verdict, name)
            if before != value:
                raise Malformed(
                    f"two verdicts on '{verdict.target}' ({verdict.aspect}) contradict each other:"
                    f" {name} {before} and {value}"
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
        span, section, coverage = raw.get("span"), raw.get("section") or "body", raw.get("coverage")
        integers = {n: raw[n] for n in ("id", "sentence", "end") if raw.get(n) is not None}
        if section not in SECTIONS:
            raise Malformed(f'a claim\'s "section" is none of {", ".join(SECTIONS)}')
        pair = isinstance(span, Sequence) and len(span) == 2 and all(map(_is_whole, span))
        if span is not None and not pair:
            raise Malformed('a claim\'s "span" is not a pair of positions')
        if not all(map(_is_whole, integers.values())) or not (
            coverage is None or is_number(coverage)
        ):
            raise Malformed(
                'a claim has an "id", "sentence", "end" or "coverage" that is no number'
            )
        claims.append(
            Claim(
                **{"id": number, **integers},
                text=raw["text"],
                section=section,
                span=(span[0], span[1]) if span is not None else None,
                coverage=coverage,
            )
        )
    if len({claim.id for claim in claims}) < len(claims):
        raise Malformed("two claims have the same id")
    return tuple(claims)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max  # False for NaN, and for huge integers


def _located(
    row: Mapping[str, Any], response: Response, split: bool
) -> tuple[tuple[tuple[int, int], ...], tuple[Claim, ...]]:
    """Sentences and claims with their places: the row's own, or found in the response."""
    claims, size, given = _claims(row), len(response.text), "sentences" in row
    spans: tuple[tuple[int, int], ...] | None = None
    if given:
        try:
            spans = spans_in(row["sentences"], response)
        except (TypeError, ValueError) as error:
            raise Malformed('"sentences" is not a list of spans in the response') from error
    elif split:
        spans = sentences(response.text, response.prefill)
    for claim in claims:
        if claim.sentence is not None and spans is None:
            raise Malformed('a claim names a "sentence", and the row has no "sentences"')
        if claim.sentence is not None and not 0 <= claim.sentence < len(spans or ()):
            raise Malformed("a claim names a sentence that is not there")
        start, stop = claim.span or (0, 0)
        if not (0 <= start <= stop <= size and 0 <= (claim.end or 0) <= size):
            raise Malformed("a claim has a span outside the response")
    if spans is None or given or all(claim.span for claim in claims):
        return spans or (), claims
    parts, located = sections(response.text, response.prefill), []
    for claim in locate(response.text, spans, claims):
        if claim.span and claim.section == "body":
            claim = replace(claim, section=section_at(parts, claim.span[0]) or "body")
        located.append(claim)
    return spans, tuple(located)


def spans_in(given: Any, response: Response) -> tuple[tuple[int, int], ...]:
    """Pairs of positions in the response; raises ValueError or TypeError for anything else."""
    spans = tuple((start, end) for start, end in given)
    for start, end in spans:
        if not (_is_whole(start) and _is_whole(end) and 0 <= start <= end <= len(response.text)):
            raise ValueError(given)
    return spans


def _verdict(raw: Any) -> Verdict:
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
    """The stored rewards; those of the methods asked for are computed anew."""
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


def _made(kind: type, raw: Any, name: str) -> Any:
    if not isinstance(raw, Mapping):
        raise Malformed(f'"{name}" is not an object')
    try:
        return kind(**{field.name: raw[field.name] for field in fields(kind) if field.name in raw})
    except TypeError as error:
        raise Malformed(f'"{name}" is incomplete') from error
