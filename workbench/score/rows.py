"""Parse one input row: a response to judge, or feedback whose rewards are computed anew.

Accepted are `{id, question, response, answers?, title?, passages?, checklist?}`; a stored
feedback row; and, for replay without any judge, `{id, response, claims: [{text, label,
informativeness}], outcome?}`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from workbench.credit.tokens import Offsets, encode, words
from workbench.data.record import question_of
from workbench.failures import judged
from workbench.hub import from_disk_or_hub
from workbench.score import replay
from workbench.score.source import Malformed
from workbench.types import SCHEMA, Feedback, Question, Response, WorkbenchError

Tokenize = Callable[[str], tuple[tuple[int, ...], Offsets, str]]  # text -> ids, offsets, source
BY_TOKEN = ("logprobs", "ref_logprobs", "values")
# a lone half of a surrogate pair, as in a text that was cut; no tokenizer takes it
_HALVES = re.compile("[\ud800-\udfff]")


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
        questions: by id, for rows of stored feedback, which have a `question_id` alone.
        tokenize: how to split responses into tokens; None keeps a row's own tokens and splits
            others into words.
        split: False leaves out the splitting into tokens and sentences, for a survey.

    Raises:
        Malformed: what is wrong with the row.
    """
    row = {**row, **{name: row.get(column) for name, column in columns.items()}}
    row = {name: value for name, value in row.items() if value is not None}
    if "verdicts" in row and row.get("schema", SCHEMA) != SCHEMA:
        raise Malformed(f'"schema" is {row["schema"]!r}, and this version reads {SCHEMA}')
    response = _response(row, questions)
    response = _with_tokens(response, row, tokenize, split)
    verdicts = row.get("verdicts")
    if "claims" not in row and verdicts is None:
        return Item(Feedback(response), replay=False)
    readable = isinstance(verdicts, list) and all(isinstance(one, Mapping) for one in verdicts)
    if readable and "schema" in row and not judged(row):
        # logged by a trainer, and never judged
        return Item(Feedback(response, rewards=replay.rewards(row)), replay=False)
    read = replay.shorthand if verdicts is None else replay.stored
    return Item(read(row, response, split), replay=True)


def _response(row: Mapping[str, Any], questions: Mapping[str, Question]) -> Response:
    name, text, finish = identity(row), row.get("response"), row.get("finish", "stop")
    question, raw = questions.get(str(row.get("question_id"))), row.get("question")
    if raw is not None or question is None:
        if raw is None and "claims" not in row and "verdicts" not in row:
            raise Malformed(_absent(row, "question"))
        try:
            question = question_of(row, _text(row, "question_id"), "" if raw is None else raw)
        except ValueError as problem:
            raise Malformed(str(problem)) from problem
    if not isinstance(text, str):
        raise Malformed(_absent(row, "response") if text is None else '"response" is not a text')
    if finish not in ("stop", "length"):
        raise Malformed('"finish" is neither "stop" nor "length"')
    return Response(
        name,
        question,
        text,
        group=_text(row, "group"),
        sample=_whole(row, "sample") or 0,
        step=_whole(row, "step"),
        finish=finish,
        prefill=_text(row, "prefill"),
    )


def identity(row: Mapping[str, Any]) -> str:
    raw = _integer(row.get("id"))
    if isinstance(raw, bool) or not isinstance(raw, (str, int)) or raw == "":
        absent = _absent(row, "id") if raw is None else '"id" is not a text or a whole number'
        raise Malformed(absent)
    return str(raw)


def _integer(value: Any) -> Any:
    """A whole float, as tables with gaps have it, as an integer; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _absent(row: Mapping[str, Any], name: str) -> str:
    return f'no "{name}"; the row has {", ".join(list(row)[:8]) or "nothing"}'


def _whole(row: Mapping[str, Any], name: str) -> int | None:
    value = _integer(row.get(name))
    if value is not None and type(value) is not int:
        raise Malformed(f'"{name}" is not a whole number')
    return value


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name, "")
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise Malformed(f'"{name}" is not a text')
    return str(value)


def _with_tokens(
    response: Response, row: Mapping[str, Any], tokenize: Tokenize | None, split: bool
) -> Response:
    own = row.get("tokens")
    if tokenize is None and isinstance(own, Mapping) and own.get("offsets"):
        try:
            offsets = replay.spans_in(own["offsets"], response)
            ids = tuple(own.get("ids") or ())
            numbers: dict[str, Any] = {name: tuple(own.get(name) or ()) for name in BY_TOKEN}
            if not all(map(replay.is_number, itertools.chain(ids, *numbers.values()))):
                raise ValueError(own)
        except (TypeError, ValueError) as error:
            raise Malformed(
                '"tokens" is not {source, ids, offsets}, with offsets in the response'
            ) from error
        source = _text(own, "source") or "sampled"
        return replace(response, token_ids=ids, offsets=offsets, source=source, **numbers)
    if not split:
        return response
    ids, offsets, source = (tokenize or _words)(response.text)
    return replace(response, token_ids=ids, offsets=offsets, source=source)


def _words(text: str) -> tuple[tuple[int, ...], Offsets, str]:
    return (), words(text), "words"


def tokenizer(name: str | None) -> Tokenize | None:
    """How responses are split into tokens: into words, or by the tokenizer of a model.

    Raises:
        WorkbenchError: there is no such tokenizer, or it does not return offsets.
    """
    if name is None or name == "words":
        return _words if name else None
    folder = Path(name).expanduser()
    try:
        if not folder.is_dir() and name.startswith((".", "/", "~")):
            raise OSError("no such folder")
        from transformers import AutoTokenizer

        path = str(folder) if folder.is_dir() else name
        loaded = from_disk_or_hub(AutoTokenizer.from_pretrained, path)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise WorkbenchError(
            f"cannot load the tokenizer '{name}': {reason}; name a model's folder or hub name, or"
            " words"
        ) from error
    encode(loaded, "a")

    def split(text: str) -> tuple[tuple[int, ...], Offsets, str]:
        return *encode(loaded, _HALVES.sub("\ufffd", text)), "encoded"

    return split


def fingerprint(question: Question) -> str:
    """Equal for questions that differ in nothing but their id."""
    value = json.dumps(asdict(replace(question, id="")), sort_keys=True)
    return hashlib.sha256(value.encode()).hexdigest()[:12]
