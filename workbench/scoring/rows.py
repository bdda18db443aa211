"""Read the rows that `workbench score` takes: responses to judge, and feedback whose rewards are
computed anew.

Accepted are `{id, question, response, answers?, title?, passages?, checklist?}`; a stored
feedback row; and, for replay without any judge, `{id, response, claims: [{text, label,
informativeness}], outcome?}`. A row that cannot be read is reported and does not stop the rest.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

from workbench.credit.tokens import Offsets, encode, words
from workbench.data.files import Row, open_rows
from workbench.data.record import question_of
from workbench.runs.store import QUESTIONS, question_key, read_questions
from workbench.scoring import replay
from workbench.scoring.replay import Malformed
from workbench.types import SCHEMA, Feedback, Question, Response, WorkbenchError
from workbench.util.failures import judged
from workbench.util.hub import from_disk_or_hub

Tokenize = Callable[[str], tuple[tuple[int, ...], Offsets, str]]  # text -> ids, offsets, source
BY_TOKEN = ("logprobs", "ref_logprobs", "values")
SHOWN = 100  # problems that are reported word for word
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


@dataclass
class Survey:
    """Counts of rows; `ids` are those to score, with a checksum of their response."""

    ids: dict[str, int] = field(default_factory=dict)
    judged: int = 0  # rows for the judge
    bare: int = 0  # of these, rows whose question has no passages
    malformed: int = 0
    duplicates: int = 0
    problems: list[tuple[int, str]] = field(default_factory=list)  # with line numbers


@dataclass
class Reader:
    """The input file, its column names, and how its responses are split into tokens.

    `known` are the questions of the record of the output (id -> `question_key`): another question
    under a known id gets an id of its own.
    """

    path: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    tokenize: Tokenize | None = None
    recognise: Callable[[Question], Question] | None = None
    known: dict[str, int] = field(default_factory=dict)

    @cached_property
    def questions(self) -> Mapping[str, Question]:
        """The questions stored beside a feedback file."""
        folder = self.path.parent
        return read_questions(folder) if (folder / QUESTIONS).exists() else {}

    def rows(self) -> Iterator[Row]:
        return open_rows(self.path)[1]

    def item(self, row: dict[str, Any] | str, split: bool = True) -> Item:
        """Raises Malformed. Without `split` the response gets no tokens, which takes less time."""
        if isinstance(row, str):
            raise Malformed(row)
        stored = row.get("question_id") and not row.get("question")
        item = parse(row, self.columns, self.questions if stored else {}, self.tokenize, split)
        question = item.response.question
        if self.recognise:
            question = self.recognise(question)
        key = question_key(question) if question.id else 0
        if not question.id or self.known.setdefault(question.id, key) != key:
            # equal for questions that differ in nothing but their id
            value = json.dumps(asdict(replace(question, id="")), sort_keys=True)
            digest = hashlib.sha256(value.encode()).hexdigest()[:12]
            question = replace(question, id=f"{question.id or 'q'}-{digest}")
        group = item.response.group or question.id
        response = replace(item.response, question=question, group=group)
        return replace(item, feedback=replace(item.feedback, response=response))

    def survey(self) -> Survey:
        """Read the file once: which rows can be scored, before anything is asked or written."""
        found = Survey()
        for number, row in self.rows():
            try:
                item = self.item(row, split=False)
                if item.response.id in found.ids:
                    found.duplicates += 1
                    raise Malformed(f"the id '{item.response.id}' stands in an earlier row")
            except Malformed as problem:
                found.malformed += 1
                if len(found.problems) < SHOWN:
                    found.problems.append((number, str(problem)))
                continue
            found.ids[item.response.id] = checksum(item.response.text)
            found.judged += not item.replay
            found.bare += not item.replay and not item.response.question.passages
        return found

    def items(self, wanted: dict[str, int]) -> Iterator[Item]:
        """The rows with the `wanted` ids, each once and in order; an id is taken out of `wanted`
        as its row is read.
        """
        name = self.columns.get("id", "id")
        for _, row in self.rows():
            if not wanted:
                return
            try:
                if isinstance(row, str) or identity({"id": row.get(name)}) not in wanted:
                    continue
                item = self.item(row)
            except Malformed:
                continue
            if wanted.get(item.response.id) == checksum(item.response.text):
                del wanted[item.response.id]
                yield item


def checksum(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))


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
    # NaN is what a table has for an empty cell
    row = {
        name: value
        for name, value in row.items()
        if value is not None and not (isinstance(value, float) and value != value)
    }
    if "verdicts" in row and row.get("schema", SCHEMA) != SCHEMA:
        raise Malformed(f'"schema" is {row["schema"]!r}, and this version reads {SCHEMA}')
    response = _with_tokens(_response(row, questions), row, tokenize, split)
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
    numbers = {"sample": _integer(row.get("sample")), "step": _integer(row.get("step"))}
    for field_name, value in numbers.items():
        if value is not None and type(value) is not int:
            raise Malformed(f'"{field_name}" is not a whole number')
    return Response(
        name,
        question,
        text,
        group=_text(row, "group"),
        sample=numbers["sample"] or 0,
        step=numbers["step"],
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
