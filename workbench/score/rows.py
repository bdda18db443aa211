"""One input row to what is scored: a response that a judge has to see, or feedback that only has
to be paid again.

Accepted are `{id, question, response, answers?, title?, passages?, checklist?}`; a stored
feedback row; and, for replay without any judge, `{id, response, claims: [{text, label,
informativeness}], outcome?}`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from workbench.credit.tokens import Offsets, words
from workbench.data.record import question_of
from workbench.failures import judged
from workbench.score import replay
from workbench.score.source import Malformed
from workbench.types import SCHEMA, Feedback, Question, Response

Tokenize = Callable[[str], tuple[tuple[int, ...], Offsets, str]]  # text -> ids, offsets, source


@dataclass(frozen=True)
class Item:
    """A row that can be scored. With `replay` it has its verdicts already."""

    feedback: Feedback
    replay: bool

    @property
    def response(self) -> Response:
        return self.feedback.response

    def about(self, question: Question) -> Item:
        """The same with its question completed."""
        response = replace(
            self.response, question=question, group=self.response.group or question.id
        )
        return replace(self, feedback=replace(self.feedback, response=response))


def parse(
    row: Mapping[str, Any],
    columns: Mapping[str, str],
    questions: Mapping[str, Question],
    tokenize: Tokenize | None = None,
    split: bool = True,
) -> Item:
    """Read one row.

    Args:
        columns: our name of a field -> the row's name of it.
        questions: by id, for rows of stored feedback, which name their question by `question_id`
        alone.
        tokenize: how to split responses into tokens; None keeps a row's own tokens and splits
        others into words.
        split: False leaves out the splitting into tokens and sentences, for a first look at the
        row.

    Raises:
        Malformed: what is wrong with the row.
    """
    row = {**row, **{name: row.get(column) for name, column in columns.items()}}
    row = {name: value for name, value in row.items() if value is not None}
    if "verdicts" in row and row.get("schema", SCHEMA) != SCHEMA:
        raise Malformed(f'"schema" is {row["schema"]!r}, and this version reads {SCHEMA}')
    name = identity(row)
    response = _tokens(_response(name, row, _question(row, questions)), row, tokenize, split)
    stored = "verdicts" in row
    if not ("claims" in row or stored):
        return Item(Feedback(response), replay=False)
    readable = (
        stored
        and isinstance(row["verdicts"], list)
        and all(isinstance(verdict, Mapping) for verdict in row["verdicts"])
    )
    if readable and "schema" in row and not judged(row):
        # logged, and never judged
        return Item(Feedback(response, rewards=replay.rewards(row)), replay=False)
    return Item((replay.stored if stored else replay.shorthand)(row, response, split), replay=True)


def _response(name: str, row: Mapping[str, Any], question: Question) -> Response:
    text, finish = row.get("response"), row.get("finish", "stop")
    if not isinstance(text, str):
        raise Malformed(_absent(row, "response") if text is None else '"response" is not a text')
    if finish not in ("stop", "length"):
        raise Malformed('"finish" is neither "stop" nor "length"')
    sample, step = _whole(row, "sample") or 0, _whole(row, "step")
    return Response(
        name,
        question,
        text,
        group=_text(row, "group"),
        sample=sample,
        step=step,
        finish=finish,
        prefill=_text(row, "prefill"),
    )


def identity(row: Mapping[str, Any]) -> str:
    raw = row.get("id")
    # so whole numbers come out of a table with gaps
    if isinstance(raw, float) and raw.is_integer():
        raw = int(raw)
    if isinstance(raw, bool) or not isinstance(raw, (str, int)) or raw == "":
        raise Malformed(
            _absent(row, "id") if raw is None else '"id" is not a text or a whole number'
        )
    return str(raw)


def _absent(row: Mapping[str, Any], name: str) -> str:
    columns = ", ".join(list(row)[:8]) or "nothing"
    return f'no "{name}"; the row has {columns}'


def _whole(row: Mapping[str, Any], name: str) -> int | None:
    value = row.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise Malformed(f'"{name}" is not a whole number')
    return value


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name, "")
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise Malformed(f'"{name}" is not a text')
    return str(value)


def _question(row: Mapping[str, Any], questions: Mapping[str, Question]) -> Question:
    """The row's question; its id is the row's `question_id`, or empty."""
    raw, stored = row.get("question"), questions.get(str(row.get("question_id")))
    if raw is None and stored is not None:
        return stored
    if raw is None and not ("claims" in row or "verdicts" in row):
        raise Malformed(_absent(row, "question"))
    try:
        return question_of(row, _text(row, "question_id"), "" if raw is None else raw)
    except ValueError as problem:
        raise Malformed(str(problem)) from problem


def fingerprint(question: Question) -> str:
    """Equal for questions that differ in nothing but their id."""
    return _hash(asdict(replace(question, id="")))


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def _tokens(
    response: Response, row: Mapping[str, Any], tokenize: Tokenize | None, split: bool
) -> Response:
    own = row.get("tokens")
    if tokenize is None and isinstance(own, Mapping) and own.get("offsets"):
        try:
            offsets = replay.spans_in(own["offsets"], response)
            numbers: dict[str, Any] = {
                name: tuple(own.get(name) or ()) for name in ("logprobs", "ref_logprobs", "values")
            }
            ids = tuple(own.get("ids") or ())
            if not all(
                map(
                    replay.is_number,
                    (*ids, *(value for values in numbers.values() for value in values)),
                )
            ):
                raise ValueError(own)
        except (TypeError, ValueError) as error:
            raise Malformed(
                '"tokens" is not {source, ids, offsets}, with offsets in the response'
            ) from error
        return replace(
            response,
            token_ids=ids,
            offsets=offsets,
            source=_text(own, "source") or "sampled",
            **numbers,
        )
    if not split:
        return response
    if tokenize is None:
        return replace(response, offsets=words(response.text), source="words")
    ids, offsets, source = tokenize(response.text)
    return replace(response, token_ids=ids, offsets=offsets, source=source)
