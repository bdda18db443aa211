"""Read the input rows of `workbench score`. A row is one of these:

* a response to judge: `{id, question, response, answers?, title?, passages?, checklist?}`
* a stored feedback row, whose rewards are computed again
* a response with labels: `{id, response, claims: [{text, label, informativeness}], outcome?}`

The last two are replayed: they need no judge. A row that cannot be read is reported with its line
number, and the other rows are scored.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

from workbench.credit.attribute import locate
from workbench.credit.tokens import Offsets, words
from workbench.data.files import open_rows
from workbench.data.record import question_of
from workbench.runs.store import QUESTIONS, question_key, read_questions
from workbench.text import section_at, sections, sentences
from workbench.types import (
    ASPECTS,
    CLAIM_LABELS,
    SCHEMA,
    SECTIONS,
    Claim,
    Cost,
    Event,
    Failure,
    Feedback,
    JsonMapping,
    JsonObject,
    Question,
    Response,
    Reward,
    Verdict,
)
from workbench.util.failures import judged

T = TypeVar("T")
Spans = tuple[tuple[int, int], ...]
Tokenize = Callable[[str], tuple[tuple[int, ...], Offsets, str]]  # text -> ids, offsets, source

BY_TOKEN = ("logprobs", "ref_logprobs", "values")
MAX_PROBLEMS = 100  # malformed rows whose message is kept
# The default aspect of a verdict, by the kind of its target.
DEFAULT_ASPECTS = {"claim": "fact", "item": "checklist", "outcome": "answer"}
DEFAULT_ASPECTS |= {"reasoning": "reasoning", "segment": "factuality"}


class Malformed(ValueError):
    """A row that cannot be scored. The message names the field and what is wrong with it."""


@dataclass(frozen=True)
class Item:
    """A row that can be scored. With `replay`, `feedback` already has its verdicts."""

    feedback: Feedback
    replay: bool

    @property
    def response(self) -> Response:
        return self.feedback.response


@dataclass
class Survey:
    """Counts of an input file's rows, from one reading before anything is judged or written."""

    ids: dict[str, int] = field(default_factory=dict)  # of rows to score -> checksum of response
    judged: int = 0  # rows that need a judge
    without_passages: int = 0  # rows that need a judge and bring no passages
    malformed: int = 0
    duplicates: int = 0
    problems: list[tuple[int, str]] = field(default_factory=list)  # line number, message


@dataclass
class Reader:
    """An input file, its column names and the tokenizer of its responses.

    `known` maps the ids of the questions stored with the output to their `question_key`. Another
    question under a known id gets a new id.
    """

    path: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    tokenize: Tokenize | None = None
    recognise: Callable[[Question], Question] | None = None
    known: dict[str, int] = field(default_factory=dict)

    @cached_property
    def questions(self) -> Mapping[str, Question]:
        """The questions stored in the folder of a feedback file, by id."""
        folder = self.path.parent
        return read_questions(folder) if (folder / QUESTIONS).exists() else {}

    def item(self, row: JsonMapping | str, split: bool = True) -> Item:
        """Parse one row. With `split=False` it gets no tokens, which is faster.

        Raises:
            Malformed: the row cannot be scored.
        """
        if isinstance(row, str):
            raise Malformed(row)
        stored = row.get("question_id") and not row.get("question")
        item = parse(row, self.columns, self.questions if stored else {}, self.tokenize, split)
        question = item.response.question
        if self.recognise:
            question = self.recognise(question)
        key = question_key(question) if question.id else 0
        if not question.id or self.known.setdefault(question.id, key) != key:
            # equal questions get equal ids
            value = json.dumps(asdict(replace(question, id="")), sort_keys=True)
            digest = hashlib.sha256(value.encode()).hexdigest()[:12]
            question = replace(question, id=f"{question.id or 'q'}-{digest}")
        group = item.response.group or question.id
        response = replace(item.response, question=question, group=group)
        return replace(item, feedback=replace(item.feedback, response=response))

    def survey(self) -> Survey:
        """Read the file once and count its rows."""
        survey = Survey()
        for number, row in open_rows(self.path)[1]:
            try:
                item = self.item(row, split=False)
                if item.response.id in survey.ids:
                    survey.duplicates += 1
                    raise Malformed(f"the id '{item.response.id}' stands in an earlier row")
            except Malformed as problem:
                survey.malformed += 1
                if len(survey.problems) < MAX_PROBLEMS:
                    survey.problems.append((number, str(problem)))
                continue
            survey.ids[item.response.id] = checksum(item.response.text)
            survey.judged += not item.replay
            survey.without_passages += not (item.replay or item.response.question.passages)
        return survey

    def items(self, remaining: dict[str, int]) -> Iterator[Item]:
        """Yield the rows with the `remaining` ids, in order; each id is removed when its row is
        read.
        """
        name = self.columns.get("id", "id")
        for _, row in open_rows(self.path)[1]:
            if not remaining:
                return
            try:
                if isinstance(row, str) or row_id({"id": row.get(name)}) not in remaining:
                    continue
                item = self.item(row)
            except Malformed:  # the survey has reported it
                continue
            if remaining.get(item.response.id) == checksum(item.response.text):
                del remaining[item.response.id]
                yield item


def checksum(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))


def parse(
    row: JsonMapping,
    columns: Mapping[str, str],
    questions: Mapping[str, Question],
    tokenize: Tokenize | None = None,
    split: bool = True,
) -> Item:
    """Parse one row.

    Args:
        columns: name of a field -> name of the row's column, where they differ.
        questions: stored questions by id, for feedback rows, which only have a `question_id`.
        tokenize: splits responses into tokens; None uses the row's own tokens, or words.
        split: False skips the splitting into tokens and sentences, for a survey.

    Raises:
        Malformed: the row cannot be scored.
    """
    row = {**row, **{name: row.get(column) for name, column in columns.items()}}
    # NaN is an empty cell of a table
    row = {
        name: value
        for name, value in row.items()
        if value is not None and not (isinstance(value, float) and value != value)
    }
    if "verdicts" in row and row.get("schema", SCHEMA) != SCHEMA:
        raise Malformed(f'"schema" is {row["schema"]!r}; this version reads {SCHEMA}')
    response = _with_tokens(_response(row, questions), row, tokenize, split)
    verdicts = row.get("verdicts")
    if "claims" not in row and verdicts is None:
        return Item(Feedback(response), replay=False)
    readable = isinstance(verdicts, list) and all(isinstance(one, Mapping) for one in verdicts)
    if readable and "schema" in row and not judged(row):
        # `workbench import` wrote this row: it has a trainer's rewards and no verdicts
        return Item(Feedback(response, rewards=_rewards(row)), replay=False)
    read = _with_labels if verdicts is None else _stored
    return Item(read(row, response, split), replay=True)


def _response(row: JsonMapping, questions: Mapping[str, Question]) -> Response:
    identity, text, finish = row_id(row), row.get("response"), row.get("finish", "stop")
    question, raw = questions.get(str(row.get("question_id"))), row.get("question")
    if raw is not None or question is None:
        if raw is None and "claims" not in row and "verdicts" not in row:
            raise Malformed(_missing(row, "question"))
        try:
            question = question_of(row, _text(row, "question_id"), "" if raw is None else raw)
        except ValueError as problem:
            raise Malformed(str(problem)) from problem
    if not isinstance(text, str):
        raise Malformed(_missing(row, "response") if text is None else '"response" is not a text')
    if finish not in ("stop", "length"):
        raise Malformed('"finish" is neither "stop" nor "length"')
    sample, step = _integer(row.get("sample")), _integer(row.get("step"))
    for name, value in (("sample", sample), ("step", step)):
        if value is not None and type(value) is not int:
            raise Malformed(f'"{name}" is not a whole number')
    return Response(
        identity,
        question,
        text,
        group=_text(row, "group"),
        sample=sample or 0,
        step=step,
        finish=finish,
        prefill=_text(row, "prefill"),
    )


def row_id(row: JsonMapping) -> str:
    raw = _integer(row.get("id"))
    if isinstance(raw, bool) or not isinstance(raw, (str, int)) or raw == "":
        raise Malformed(
            _missing(row, "id") if raw is None else '"id" is not a text or a whole number'
        )
    return str(raw)


def _integer(value: Any) -> Any:
    """Convert a whole float, as tables with gaps have it, to an integer; return others as is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _missing(row: JsonMapping, name: str) -> str:
    return f'no "{name}"; the row has {", ".join(list(row)[:8]) or "nothing"}'


def _text(row: JsonMapping, name: str) -> str:
    value = row.get(name, "")
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise Malformed(f'"{name}" is not a text')
    return str(value)


def _with_tokens(
    response: Response, row: JsonMapping, tokenize: Tokenize | None, split: bool
) -> Response:
    own = row.get("tokens")
    if tokenize is None and isinstance(own, Mapping) and own.get("offsets"):
        try:
            offsets = _spans(own["offsets"], response)
            ids = tuple(own.get("ids") or ())
            numbers: JsonObject = {name: tuple(own.get(name) or ()) for name in BY_TOKEN}
            if not all(map(_are_numbers, (ids, *numbers.values()))):
                raise ValueError(own)
        except (TypeError, ValueError) as error:
            raise Malformed(
                '"tokens" is not {source, ids, offsets}, with offsets in the response'
            ) from error
        source = _text(own, "source") or "sampled"
        return replace(response, token_ids=ids, offsets=offsets, source=source, **numbers)
    if not split:
        return response
    ids, offsets, source = (tokenize or split_words)(response.text)
    return replace(response, token_ids=ids, offsets=offsets, source=source)


def split_words(text: str) -> tuple[tuple[int, ...], Offsets, str]:
    return (), words(text), "words"


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max  # False for NaN, and for huge integers


def _are_numbers(values: Collection[Any]) -> bool:
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
# Field names of claims, verdicts, rewards, events, failures and costs -> a description of the
# values they may have, and the check of it.
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
    "tokens": ("a list of numbers", lambda value: _is_list(value) and _are_numbers(value)),
    "unplaced": (
        "a list of whole numbers",
        lambda value: _is_list(value) and all(map(_is_whole, value)),
    ),
    "parts": ("an object of numbers", lambda one: _is_object(one) and _are_numbers(one.values())),
}
_CHECKS: dict[type, list[tuple[str, str, Callable[[Any], bool]]]] = {
    kind: [(field.name, *_FIELDS[field.name]) for field in fields(kind) if field.name != "error"]
    for kind in (Claim, Cost, Event, Failure, Reward, Verdict)
}


def _read(kind: type[T], raw: Any, what: str) -> T:
    """Convert a JSON object to a dataclass and check its fields; unknown fields are ignored.

    Raises:
        Malformed: a field is missing or has a value of another type.
    """
    if not _is_object(raw):
        raise Malformed(f"{what} is not an object")
    values: JsonObject = {}
    for name, expected, is_valid in _CHECKS[kind]:
        if (value := raw.get(name)) is not None:
            if not is_valid(value):
                raise Malformed(f'"{name}" of {what} is not {expected}')
            values[name] = tuple(value) if isinstance(value, list) else value
    if kind is Reward:
        values.setdefault("value", None)  # not scored
    if raw.get("error") is not None and kind in (Verdict, Reward):
        values["error"] = _read(Failure, raw["error"], f'"error" of {what}')
    try:
        return kind(**values)
    except TypeError as error:
        names = " ".join(name for name, *_ in _CHECKS[kind])
        raise Malformed(f"{what} is incomplete: {names}") from error


def _stored(row: JsonMapping, response: Response, split: bool) -> Feedback:
    """Read a row with `verdicts`, complete or with only the fields that rewards need."""
    spans, claims = _located(row, response, split)
    verdicts = tuple(map(_verdict, _list(row, "verdicts")))
    targets = {f"claim:{claim.id}" for claim in claims}
    first: dict[tuple[str, str], Verdict] = {}
    for verdict in verdicts:
        if verdict.target.startswith("claim:") and verdict.target not in targets:
            raise Malformed(f"a verdict is on '{verdict.target}', which is not among the claims")
        earlier = first.setdefault((verdict.target, verdict.aspect), verdict)
        if earlier is verdict:
            continue
        # a reward would use the first of two verdicts on one aspect
        for name in ("label", "p", "informativeness"):
            before, value = getattr(earlier, name), getattr(verdict, name)
            if before != value:
                raise Malformed(
                    f"two verdicts on '{verdict.target}' ({verdict.aspect}) contradict each other:"
                    f" {name} {before} and {value}"
                )
    cost = _read(Cost, row.get("cost") or {}, '"cost"')
    error = row.get("error") and _read(Failure, row["error"], '"error"')
    return Feedback(response, spans, claims, verdicts, _rewards(row), error or None, cost)


def _with_labels(row: JsonMapping, response: Response, split: bool) -> Feedback:
    """Read a row whose claims have labels, as an annotator or another program writes it."""
    raw_claims = _list(row, "claims")
    for claim in raw_claims:
        if not _is_object(claim) or claim.get("label") not in CLAIM_LABELS:
            raise Malformed(f'a claim has no "label" out of {", ".join(CLAIM_LABELS)}')
    spans, claims = _located(row, response, split)
    raw_verdicts = [
        {"by": "given", **raw, "target": f"claim:{claim.id}"}
        for claim, raw in zip(claims, raw_claims, strict=True)
    ]
    for target in ("outcome", "reasoning"):
        if target in row:
            raw_verdicts.append({"target": target, "label": row[target], "by": "given"})
    return Feedback(response, spans, claims, tuple(map(_verdict, raw_verdicts)), _rewards(row))


def _list(row: JsonMapping, name: str) -> Sequence[Any]:
    value = row.get(name) or ()
    if not _is_list(value):
        raise Malformed(f'"{name}" is not a list')
    return value


def _located(row: JsonMapping, response: Response, split: bool) -> tuple[Spans, tuple[Claim, ...]]:
    """Return the sentences and the claims with their spans, from the row or by matching."""
    claims = []
    for number, raw in enumerate(_list(row, "claims")):
        numbered = _is_object(raw) and raw.get("id") is None
        claims.append(_read(Claim, {**raw, "id": number} if numbered else raw, "a claim"))
    if len({claim.id for claim in claims}) < len(claims):
        raise Malformed("two claims have the same id")
    size, has_sentences = len(response.text), "sentences" in row
    spans: Spans | None = None
    if has_sentences:
        try:
            spans = _spans(row["sentences"], response)
        except (TypeError, ValueError) as error:
            raise Malformed('"sentences" is not a list of spans in the response') from error
    elif split:
        spans = sentences(response.text, response.prefill)
    for claim in claims:
        if claim.sentence is not None and not 0 <= claim.sentence < len(spans or ()):
            raise Malformed(f"a claim has the sentence {claim.sentence}, which does not exist")
        start, stop = claim.span or (0, 0)
        if not (0 <= start <= stop <= size and 0 <= (claim.end or 0) <= size):
            raise Malformed("a claim has a span outside the response")
    if spans is None or has_sentences or all(claim.span for claim in claims):
        return spans or (), tuple(claims)
    parts, located = sections(response.text, response.prefill), []
    for claim in locate(response.text, spans, claims):
        if claim.span and claim.section == "body":
            claim = replace(claim, section=section_at(parts, claim.span[0]) or "body")
        located.append(claim)
    return spans, tuple(located)


def _spans(value: Any, response: Response) -> Spans:
    """Check pairs of positions in the response; raise ValueError or TypeError for other values."""
    spans, size = tuple((start, end) for start, end in value), len(response.text)
    for start, end in spans:
        if not (type(start) is type(end) is int and 0 <= start <= end <= size):
            raise ValueError(value)
    return spans


def _verdict(raw: Any) -> Verdict:
    if not _is_object(raw) or not isinstance(raw.get("target"), str):
        raise Malformed('a verdict has no "target"')
    target = raw["target"]
    if not raw.get("aspect"):
        raw = {**raw, "aspect": DEFAULT_ASPECTS.get(target.partition(":")[0], target)}
    verdict = _read(Verdict, raw, f"the verdict on '{target}'")
    labels = ASPECTS.get(verdict.aspect)
    if labels and verdict.label not in (*labels, None):
        raise Malformed(
            f"'{verdict.label}' of '{target}' is not a label: write one of {', '.join(labels)}"
        )
    return verdict


def _rewards(row: JsonMapping) -> dict[str, Reward]:
    """Read the rewards that a row brings; those of the chosen methods are computed again."""
    by_method = row.get("rewards") or {}
    if not _is_object(by_method):
        raise Malformed('"rewards" is not an object of rewards by method')
    rewards = {}
    for name, raw in by_method.items():
        if raw is None:
            continue
        what = f'"rewards.{name}"'
        if _is_object(raw) and _is_object(raw.get("parts")):  # a table has None in its gaps
            parts = {part: value for part, value in raw["parts"].items() if value is not None}
            raw = {**raw, "parts": parts}
        reward = _read(Reward, raw, what)
        events = tuple(_read(Event, event, f"an event of {what}") for event in reward.events)
        rewards[name] = replace(reward, events=events)
    return rewards
