"""Read the claims, labels and verdicts that an input row already contains.

`workbench.scoring.rows` decides which function reads a row.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from workbench.claims.given import located
from workbench.text import sentences
from workbench.types import (
    ASPECTS,
    CLAIM_LABELS,
    SECTIONS,
    Claim,
    Cost,
    Event,
    Failure,
    Feedback,
    JsonMapping,
    JsonObject,
    Response,
    Reward,
    Spans,
    Verdict,
)
from workbench.util.jsonl import finite

T = TypeVar("T")

# The default aspect of a verdict, by the kind of its target.
DEFAULT_ASPECTS = {"claim": "fact", "item": "checklist", "outcome": "answer"}
DEFAULT_ASPECTS |= {"reasoning": "reasoning", "segment": "factuality"}


class Malformed(ValueError):
    """A row that cannot be scored. The message names the field and what is wrong with it."""


def _is_number(value: Any) -> bool:
    return finite(value) is not None


def are_numbers(values: Collection[Any]) -> bool:
    # one sum instead of a call per token: it is finite only if every float is
    floats = set(map(type, values)) == {float}
    return (floats and math.isfinite(sum(values))) or all(map(_is_number, values))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


_OBJECTS = ("a list of objects", lambda value: _is_list(value) and all(map(_is_object, value)))
# Field of a claim, verdict, reward, event, failure or cost -> a description of its values, and the
# function that checks them.
_FIELDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(
        "text target aspect label by part stage kind message raw".split(),
        ("a text", lambda value: isinstance(value, str)),
    ),
    **dict.fromkeys(("id", "sentence", "start", "end", "claim"), ("a whole number", _is_whole)),
    **dict.fromkeys(
        "value coverage calls cached tokens_in tokens_out seconds".split(), ("a number", _is_number)
    ),
    "p": ("between 0 and 1", lambda value: _is_number(value) and 0 <= value <= 1),
    "informativeness": ("1, 2, 3, 4 or 5", lambda value: _is_whole(value) and 1 <= value <= 5),
    "section": (f"one of {', '.join(SECTIONS)}", lambda value: value in SECTIONS),
    "span": (
        "a pair of positions",
        lambda value: _is_list(value) and len(value) == 2 and all(map(_is_whole, value)),
    ),
    "evidence": _OBJECTS,
    "events": _OBJECTS,
    "tokens": ("a list of numbers", lambda value: _is_list(value) and are_numbers(value)),
    "unplaced": (
        "a list of whole numbers",
        lambda value: _is_list(value) and all(map(_is_whole, value)),
    ),
    "parts": ("an object of numbers", lambda one: _is_object(one) and are_numbers(one.values())),
}
_CHECKS: dict[type, list[tuple[str, str, Callable[[Any], bool]]]] = {
    kind: [(field.name, *_FIELDS[field.name]) for field in fields(kind) if field.name != "error"]
    for kind in (Claim, Cost, Event, Failure, Reward, Verdict)
}


def _read(kind: type[T], raw: Any, what: str) -> T:
    """Convert a JSON object to the dataclass `kind`, after checking its fields.

    Unknown fields are ignored. `what` names the object in error messages.

    Raises:
        Malformed: a field is missing or has a value of another type.
    """
    if not _is_object(raw):
        raise Malformed(f"{what} must be a JSON object (got {raw!r:.80})")
    values: JsonObject = {}
    for name, expected, is_valid in _CHECKS[kind]:
        if (value := raw.get(name)) is not None:
            if not is_valid(value):
                raise Malformed(f'"{name}" of {what} must be {expected} (got {value!r:.80})')
            values[name] = tuple(value) if isinstance(value, list) else value
    if kind is Reward:
        values.setdefault("value", None)  # not scored
    if raw.get("error") is not None and kind in (Verdict, Reward):
        values["error"] = _read(Failure, raw["error"], f'"error" of {what}')
    try:
        return kind(**values)
    except TypeError as error:
        missing = str(error).partition(": ")[2]  # "missing 1 required positional argument: 'id'"
        raise Malformed(f"{what} lacks {missing} (required)") from error


def stored(row: JsonMapping, response: Response, split: bool) -> Feedback:
    """Convert an input row that has `verdicts` to feedback.

    Args:
        row: the input row.
        response: the response of the row.
        split: whether to split the response into sentences if the row has none.

    Raises:
        Malformed: a field has a wrong value, or verdicts contradict each other.
    """
    spans, claims = _spans_and_claims(row, response, split)
    if split and "sentences" not in row:
        claims = located(response, spans, claims)
    verdicts = tuple(map(_verdict, _list(row, "verdicts")))
    targets = {f"claim:{claim.id}" for claim in claims}
    first: dict[tuple[str, str], Verdict] = {}
    for verdict in verdicts:
        if verdict.target.startswith("claim:") and verdict.target not in targets:
            raise Malformed(
                f"a verdict has the target '{verdict.target}', but there is no such claim"
            )
        earlier = first.setdefault((verdict.target, verdict.aspect), verdict)
        if earlier is verdict:
            continue
        # a reward would silently use the first of two verdicts on one aspect
        for name in ("label", "p", "informativeness"):
            before, value = getattr(earlier, name), getattr(verdict, name)
            if before != value:
                raise Malformed(
                    f"two verdicts on '{verdict.target}' (aspect {verdict.aspect}) differ: {name}"
                    f" {before} and {value}; remove one of the verdicts"
                )
    cost = _read(Cost, row.get("cost") or {}, '"cost"')
    error = row.get("error") and _read(Failure, row["error"], '"error"')
    return Feedback(response, spans, claims, verdicts, rewards_of(row), error or None, cost)


# names of the fields with a claim's text, and with a sentence's claims, in files of VeriScore, SAFE
# and FActScore
CLAIM_TEXTS = ("text", "claim", "self_contained_atomic_fact", "atomic_fact", "atom")
SENTENCE_CLAIMS = ("human-atomic-facts", "model-atomic-facts", "atomic_facts")


def given_claims(row: JsonMapping, response: Response) -> tuple[Claim, ...] | None:
    """Return the claims of an input row without labels; these claims are still to be verified.

    Return None if the row has no claims, or if at least one claim has a label.

    Raises:
        Malformed: a claim has no text, or a span outside the response.
    """
    raw = list(_flat_claims(_list(row, "claims")))
    if not raw or any(claim.get("label") for claim in raw):
        return None
    texts = [{"text": claim["text"], "span": claim.get("span")} for claim in raw]
    _, claims = _spans_and_claims({"claims": texts}, response, split=False)
    return tuple(replace(claim, end=claim.span and claim.span[1]) for claim in claims)


def _flat_claims(value: Any) -> Iterator[JsonObject]:
    """Yield the claims in nested lists and objects, as VeriScore, SAFE and FActScore write them."""
    if _is_list(value):
        for item in value:
            yield from _flat_claims(item)
    elif value is not None:
        claim = value if _is_object(value) else {"text": value}
        inner = [claim[name] for name in SENTENCE_CLAIMS if claim.get(name) is not None]
        texts = [text for name in CLAIM_TEXTS if isinstance(text := claim.get(name), str)]
        if inner:
            yield from ({**one, "label": None} for one in _flat_claims(inner[0]))
        elif texts and texts[0].strip():
            yield {**claim, "text": texts[0]}
        else:
            raise Malformed(f'a claim has no "text" ({value!r:.80}): add it, or remove the claim')


def labelled(row: JsonMapping, response: Response, split: bool) -> Feedback:
    """Convert an input row whose claims have labels to feedback. The labels become verdicts.

    Args:
        row: the input row.
        response: the response of the row.
        split: whether to split the response into sentences if the row has none.

    Raises:
        Malformed: a claim has no label or an unknown label, or a field has a wrong value.
    """
    raw_claims = list(_flat_claims(_list(row, "claims")))
    for claim in raw_claims:
        if (label := claim.get("label")) not in CLAIM_LABELS:
            raise Malformed(
                f'"label" of a claim is {repr(label) if label else "missing"}: give every claim'
                f" one of {', '.join(CLAIM_LABELS)}, or leave out all labels"
            )
    spans, claims = _spans_and_claims({**row, "claims": raw_claims}, response, split)
    if split or "sentences" in row:
        claims = located(response, spans, claims)
    raw_verdicts = [
        {"by": "given", **raw, "target": f"claim:{claim.id}"}
        for claim, raw in zip(claims, raw_claims, strict=True)
    ]
    for target in ("outcome", "reasoning"):
        if target in row:
            raw_verdicts.append({"target": target, "label": row[target], "by": "given"})
    return Feedback(response, spans, claims, tuple(map(_verdict, raw_verdicts)), rewards_of(row))


def _list(row: JsonMapping, name: str) -> Sequence[Any]:
    value = row.get(name) or ()
    if not _is_list(value):
        raise Malformed(f'"{name}" must be a list (got {value!r:.80})')
    return value


def _spans_and_claims(
    row: JsonMapping, response: Response, split: bool
) -> tuple[Spans, tuple[Claim, ...]]:
    """Return the spans of a row's sentences, and its claims with the positions that it gives."""
    claims = []
    for number, raw in enumerate(_list(row, "claims")):
        numbered = _is_object(raw) and raw.get("id") is None
        claims.append(_read(Claim, {**raw, "id": number} if numbered else raw, "a claim"))
    for number, count in Counter(claim.id for claim in claims).most_common(1):
        if count > 1:
            raise Malformed(f"{count} claims have the id {number}: give each claim its own id")
    size = len(response.text)
    spans: Spans = ()
    if "sentences" in row:
        try:
            spans = spans_of(row["sentences"], response)
        except (TypeError, ValueError) as error:
            raise Malformed(
                '"sentences" must be a list of [start, end] positions in the response'
            ) from error
    elif split:
        spans = sentences(response.text, response.prefill)
    for claim in claims:
        if claim.sentence is not None and not 0 <= claim.sentence < len(spans):
            raise Malformed(
                f"claim {claim.id} has sentence {claim.sentence}, but the number of sentences is"
                f" {len(spans)} (the first is 0)"
            )
        start, stop = claim.span or (0, 0)
        if not (0 <= start <= stop <= size and 0 <= (claim.end or 0) <= size):
            raise Malformed(
                f"claim {claim.id} has span {claim.span} and end {claim.end}: write a span"
                f" [start, end] and an end within the {size} characters of the response"
            )
    return spans, tuple(claims)


def spans_of(value: Any, response: Response) -> Spans:
    """Convert a list of [start, end] character positions in the response to spans.

    Raises ValueError or TypeError if `value` has another form or a position is outside the text.
    """
    spans, size = tuple((start, end) for start, end in value), len(response.text)
    for start, end in spans:
        if not (type(start) is type(end) is int and 0 <= start <= end <= size):
            raise ValueError(value)
    return spans


def _verdict(raw: Any) -> Verdict:
    if not _is_object(raw) or not isinstance(raw.get("target"), str):
        raise Malformed('a verdict has no "target": add one, such as "claim:0" or "outcome"')
    target = raw["target"]
    if not raw.get("aspect"):
        raw = {**raw, "aspect": DEFAULT_ASPECTS.get(target.partition(":")[0], target)}
    verdict = _read(Verdict, raw, f"the verdict on '{target}'")
    labels = ASPECTS.get(verdict.aspect)
    if labels and verdict.label not in (*labels, None):
        raise Malformed(
            f"the verdict on '{target}' has the label '{verdict.label}': write one of"
            f" {', '.join(labels)}"
        )
    return verdict


def rewards_of(row: JsonMapping) -> dict[str, Reward]:
    """Return the rewards that a stored row contains, by method."""
    by_method = row.get("rewards") or {}
    if not _is_object(by_method):
        raise Malformed('"rewards" must be an object {METHOD: reward}')
    rewards = {}
    for name, raw in by_method.items():
        if raw is None:
            continue
        what = f'"rewards.{name}"'
        if _is_object(raw) and _is_object(raw.get("parts")):  # tables have None for missing parts
            parts = {part: value for part, value in raw["parts"].items() if value is not None}
            raw = {**raw, "parts": parts}
        reward = _read(Reward, raw, what)
        events = tuple(_read(Event, event, f"an event of {what}") for event in reward.events)
        rewards[name] = replace(reward, events=events)
    return rewards
