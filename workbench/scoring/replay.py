"""Read the verdicts that a row brings, so that no judge is needed: stored feedback, or claims that
carry their labels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from workbench.credit.attribute import locate
from workbench.text import section_at, sections, sentences
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

T = TypeVar("T")

# The aspect of a verdict that names none, by its target.
USUAL = {
    "claim": "fact",
    "item": "checklist",
    "outcome": "answer",
    "reasoning": "reasoning",
    "segment": "factuality",
}


class Malformed(ValueError):
    """A row that cannot be scored; the message says what is missing or wrong in it."""


def is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max  # False for NaN, and for huge integers


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _list_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(holds, value))


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


_are_whole = _list_of(_is_whole)
_NUMBERS = ("value", "coverage", "calls", "cached", "tokens_in", "tokens_out", "seconds")
_TEXTS = ("text", "target", "aspect", "label", "by", "part", "stage", "kind", "message", "raw")
# What the fields of claims, verdicts, rewards, events, failures and costs have to hold.
_FIELDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(_TEXTS, ("a text", lambda value: isinstance(value, str))),
    **dict.fromkeys(("id", "sentence", "start", "end", "claim"), ("a whole number", _is_whole)),
    **dict.fromkeys(_NUMBERS, ("a number", is_number)),
    "p": ("between 0 and 1", lambda value: is_number(value) and 0 <= value <= 1),
    "informativeness": ("1, 2, 3, 4 or 5", lambda value: _is_whole(value) and 1 <= value <= 5),
    "section": (f"one of {', '.join(SECTIONS)}", lambda value: value in SECTIONS),
    "span": ("a pair of positions", lambda value: _are_whole(value) and len(value) == 2),
    "evidence": ("a list of objects", _list_of(_is_object)),
    "events": ("a list of objects", _list_of(_is_object)),
    "tokens": ("a list of numbers", _list_of(is_number)),
    "unplaced": ("a list of whole numbers", _are_whole),
    "parts": (
        "an object of numbers",
        lambda value: _is_object(value) and all(map(is_number, value.values())),
    ),
}


_NAMES: Mapping[Any, list[str]] = {
    kind: [field.name for field in fields(kind) if field.name != "error"]
    for kind in (Claim, Cost, Event, Failure, Reward, Verdict)
}


def _read(kind: type[T], raw: Any, what: str) -> T:
    """One object of a row as a dataclass, each of its fields checked; others are passed over.

    Raises:
        Malformed: a field that is missing or does not hold what it has to.
    """
    if not isinstance(raw, dict):
        raise Malformed(f"{what} is not an object")
    values = {name: raw[name] for name in _NAMES[kind] if raw.get(name) is not None}
    for name, value in values.items():
        expected, holds = _FIELDS[name]
        if not holds(value):
            raise Malformed(f'"{name}" of {what} is not {expected}')
        if isinstance(value, list):
            values[name] = tuple(value)
    if kind is Reward:
        values.setdefault("value", None)  # not scored
    if raw.get("error") is not None and kind in (Verdict, Reward):
        values["error"] = _read(Failure, raw["error"], f'"error" of {what}')
    try:
        return kind(**values)
    except TypeError as error:
        raise Malformed(f"{what} is incomplete: {' '.join(_NAMES[kind])}") from error


def stored(row: Mapping[str, Any], response: Response, split: bool) -> Feedback:
    """A row with `verdicts`: as it was stored, or with no more than it needs."""
    spans, claims = _located(row, response, split)
    verdicts = tuple(map(_verdict, _list(row, "verdicts")))
    targets = {f"claim:{claim.id}" for claim in claims}
    first: dict[tuple[str, str], Verdict] = {}
    for verdict in verdicts:
        if verdict.target.startswith("claim:") and verdict.target not in targets:
            raise Malformed(f"a verdict is on '{verdict.target}', which is not among the claims")
        # a reward would take the first of two verdicts of one aspect
        earlier = first.setdefault((verdict.target, verdict.aspect), verdict)
        for name in ("label", "p", "informativeness"):
            before, value = getattr(earlier, name), getattr(verdict, name)
            if before != value:
                raise Malformed(
                    f"two verdicts on '{verdict.target}' ({verdict.aspect}) contradict each other:"
                    f" {name} {before} and {value}"
                )
    cost = _read(Cost, row.get("cost") or {}, '"cost"')
    error = row.get("error") and _read(Failure, row["error"], '"error"')
    return Feedback(response, spans, claims, verdicts, rewards(row), error or None, cost)


def shorthand(row: Mapping[str, Any], response: Response, split: bool) -> Feedback:
    """A row whose claims carry their own labels, as a person or another program may write it."""
    raw_claims = _list(row, "claims")
    for claim in raw_claims:
        if not isinstance(claim, dict) or claim.get("label") not in CLAIM_LABELS:
            raise Malformed(f'a claim has no "label" out of {", ".join(CLAIM_LABELS)}')
    spans, claims = _located(row, response, split)
    given = [
        {"by": "given", **raw, "target": f"claim:{claim.id}"}
        for claim, raw in zip(claims, raw_claims, strict=True)
    ]
    for target in ("outcome", "reasoning"):
        if target in row:
            given.append({"target": target, "label": row[target], "by": "given"})
    return Feedback(response, spans, claims, tuple(map(_verdict, given)), rewards(row))


def _list(row: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = row.get(name) or ()
    if not isinstance(value, list | tuple):
        raise Malformed(f'"{name}" is not a list')
    return value


def _located(
    row: Mapping[str, Any], response: Response, split: bool
) -> tuple[tuple[tuple[int, int], ...], tuple[Claim, ...]]:
    """Sentences and claims with their places: the row's own, or found in the response."""
    claims = []
    for number, raw in enumerate(_list(row, "claims")):
        numbered = isinstance(raw, dict) and raw.get("id") is None
        claims.append(_read(Claim, {**raw, "id": number} if numbered else raw, "a claim"))
    if len({claim.id for claim in claims}) < len(claims):
        raise Malformed("two claims have the same id")
    size, given = len(response.text), "sentences" in row
    spans: tuple[tuple[int, int], ...] | None = None
    if given:
        try:
            spans = spans_in(row["sentences"], response)
        except (TypeError, ValueError) as error:
            raise Malformed('"sentences" is not a list of spans in the response') from error
    elif split:
        spans = sentences(response.text, response.prefill)
    for claim in claims:
        if claim.sentence is not None and not 0 <= claim.sentence < len(spans or ()):
            raise Malformed("a claim names a sentence that is not there")
        start, stop = claim.span or (0, 0)
        if not (0 <= start <= stop <= size and 0 <= (claim.end or 0) <= size):
            raise Malformed("a claim has a span outside the response")
    if spans is None or given or all(claim.span for claim in claims):
        return spans or (), tuple(claims)
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
    if not isinstance(raw, dict) or not isinstance(raw.get("target"), str):
        raise Malformed('a verdict has no "target"')
    target = raw["target"]
    aspect = raw.get("aspect") or USUAL.get(target.partition(":")[0], target)
    verdict = _read(Verdict, {**raw, "aspect": aspect}, f"the verdict on '{target}'")
    declared = ASPECTS.get(verdict.aspect)
    if declared and verdict.label not in (*declared, None):
        raise Malformed(
            f"'{verdict.label}' of '{target}' is no label: it must be one of {', '.join(declared)}"
        )
    return verdict


def rewards(row: Mapping[str, Any]) -> dict[str, Reward]:
    """The stored rewards; those of the methods asked for are computed anew."""
    by_method = row.get("rewards") or {}
    if not isinstance(by_method, dict):
        raise Malformed('"rewards" is not an object of rewards by method')
    return {
        name: _reward(raw, f'"rewards.{name}"')
        for name, raw in by_method.items()
        if raw is not None
    }


def _reward(raw: Any, what: str) -> Reward:
    if isinstance(raw, dict) and isinstance(raw.get("parts"), dict):  # tables fill gaps
        parts = {name: value for name, value in raw["parts"].items() if value is not None}
        raw = {**raw, "parts": parts}
    reward = _read(Reward, raw, what)
    events = tuple(_read(Event, event, f"an event of {what}") for event in reward.events)
    return replace(reward, events=events)
