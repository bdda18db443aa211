"""Read the input rows of `workbench score`.

A row is one of these:

* A response to judge: `{id, question, response, answers?, title?, passages?, checklist?}`. It may
  also have `claims: [{text, span?}]`. Otherwise, its claims are extracted.
* A stored feedback row. Its rewards are computed again.
* A response with labels: `{id, response, claims: [{text, label, informativeness}], outcome?}`.

Feedback rows and labelled responses need no judge. A row that cannot be read is reported with its
line number, and the other rows are scored.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from zlib import crc32

from workbench.credit.tokens import words
from workbench.data.chat import text_of
from workbench.data.files import open_rows
from workbench.data.record import cells, question_of, whole_number
from workbench.runs.store import QUESTIONS, question_key, read_questions
from workbench.scoring.replay import (
    Malformed,
    are_numbers,
    given_claims,
    labelled,
    rewards_of,
    spans_of,
    stored,
)
from workbench.types import SCHEMA, Feedback, JsonMapping, JsonObject, Question, Response, Spans
from workbench.util.failures import judged
from workbench.util.jsonl import json_digest

Tokens = tuple[tuple[int, ...], Spans, str]  # ids, offsets, source
Tokenize = Callable[[str], Tokens]

BY_TOKEN = ("logprobs", "ref_logprobs", "values")
MAX_PROBLEMS = 100  # malformed rows whose message is kept


@dataclass(frozen=True)
class Item:
    """A parsed input row or, after scoring, an output row.

    Attributes:
        feedback: the response, with the claims, verdicts and rewards that the row has.
        replay: True if the input row has verdicts or labels, so that it needs no judge.
    """

    feedback: Feedback
    replay: bool

    @property
    def response(self) -> Response:
        return self.feedback.response


@dataclass
class Survey:
    """Counts of an input file's rows, made before anything is judged or written."""

    ids: dict[str, int] = field(default_factory=dict)  # of rows to score -> checksum of response
    judged: int = 0  # rows that need a judge
    without_passages: int = 0  # rows that need a judge and have no passages
    malformed: int = 0
    duplicates: int = 0
    problems: list[tuple[int, str]] = field(default_factory=list)  # line number, message


@dataclass
class Reader:
    """A reader of the rows of an input file.

    Attributes:
        path: the input file.
        columns: name of a field -> name of its column in the file, if the names differ.
        tokenize: splits responses into tokens. None: use the tokens in the row, or else words.
        recognise: adds reference data such as gold answers to a question about the closed world;
            None with any judge other than "world": questions are not changed.
        known: id -> hash (`question_key`) of each question in the output's folder. A question of
            the input gets a new id if a different question has its id.
    """

    path: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    tokenize: Tokenize | None = None
    recognise: Callable[[Question], Question] | None = None
    known: dict[str, str] = field(default_factory=dict)

    @cached_property
    def questions(self) -> Mapping[str, Question]:
        """The questions stored in the folder of the input file, by id; empty if none are stored."""
        folder = self.path.parent
        return read_questions(folder) if (folder / QUESTIONS).exists() else {}

    def item(self, row: JsonMapping | str, split: bool = True) -> Item:
        """Parse one row of the file.

        Args:
            row: the row, or a text with the reason why it could not be read.
            split: whether to split the response into tokens and sentences.

        Raises:
            Malformed: the row cannot be scored, or `row` is a text.
        """
        if isinstance(row, str):
            raise Malformed(row)
        # a feedback row has only the id of its question; a question in the row has priority
        stored = row.get("question_id") and not row.get("question")
        item = parse(row, self.columns, self.questions if stored else {}, self.tokenize, split)
        question = item.response.question
        if self.recognise:
            question = self.recognise(question)
        key = question_key(question) if question.id else ""
        if not question.id or self.known.setdefault(question.id, key) != key:
            # equal questions get equal ids
            content = json_digest(asdict(replace(question, id="")))
            question = replace(question, id=f"{question.id or 'q'}-{content}")
        response = replace(
            item.response, question=question, group=item.response.group or question.id
        )
        return replace(item, feedback=replace(item.feedback, response=response))

    def survey(self) -> Survey:
        """Read the file once and count its rows."""
        survey = Survey()
        for number, row in open_rows(self.path)[1]:
            try:
                item = self.item(row, split=False)
                if item.response.id in survey.ids:
                    survey.duplicates += 1
                    raise Malformed(
                        f"an earlier row has the id '{item.response.id}' too: make the ids unique"
                    )
            except Malformed as problem:
                survey.malformed += 1
                if len(survey.problems) < MAX_PROBLEMS:
                    survey.problems.append((number, str(problem)))
                continue
            # a checksum instead of the text, so that a large file's survey fits into memory
            survey.ids[item.response.id] = checksum(item.response.text)
            survey.judged += not item.replay
            survey.without_passages += not (item.replay or item.response.question.passages)
        return survey

    def items(self, remaining: dict[str, int]) -> Iterator[Item]:
        """Yield the rows that remain to be scored, in order, and remove their ids from `remaining`.

        Args:
            remaining: id of each such row -> checksum of its response. A row with one of these ids
                is skipped if its response has another checksum.
        """
        for _, row in open_rows(self.path)[1]:
            if not remaining:
                return
            try:
                if isinstance(row, str) or row_id(cells(row, self.columns)) not in remaining:
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
    """Convert one row of an input file to an `Item`.

    Claims without labels are stored in the field `given_claims` of the response.

    Args:
        row: the row.
        columns: name of a field -> name of its column in the row, if the names differ.
        questions: stored questions by id, for feedback rows, which only have a `question_id`.
        tokenize: splits responses into tokens. None: use the tokens in the row, or else words.
        split: whether to split the response into tokens and sentences.

    Raises:
        Malformed: the row cannot be scored.
    """
    row = cells(row, columns)
    try:
        return _item(row, questions, tokenize, split)
    except (ValueError, RecursionError) as problem:
        name = f"id '{row['id']}': " if "id" in row else ""
        deep = isinstance(problem, RecursionError)
        raise Malformed(f"{name}{'the row is nested too deeply' if deep else problem}") from problem


def _item(
    row: JsonMapping, questions: Mapping[str, Question], tokenize: Tokenize | None, split: bool
) -> Item:
    if "verdicts" in row and row.get("schema", SCHEMA) != SCHEMA:
        raise Malformed(
            f'"schema" is {row["schema"]!r}, but this version of the workbench reads {SCHEMA}:'
            " score the responses again"
        )
    response = _with_tokens(_response(row, questions), row, tokenize, split)
    verdicts = row.get("verdicts")
    if verdicts is None:
        given = given_claims(row, response)
        if given is None and "claims" in row:
            return Item(labelled(row, response, split), replay=True)
        return Item(Feedback(replace(response, given_claims=given)), replay=False)
    readable = isinstance(verdicts, list) and all(isinstance(one, Mapping) for one in verdicts)
    if readable and "schema" in row and not judged(row):
        # `workbench import` wrote this row: it has a trainer's rewards and no verdicts
        return Item(Feedback(response, rewards=rewards_of(row)), replay=False)
    return Item(stored(row, response, split), replay=True)


def _response(row: JsonMapping, questions: Mapping[str, Question]) -> Response:
    identity, finish = row_id(row), row.get("finish", "stop")
    text = text_of(row.get("response"), "assistant")
    question, raw = questions.get(str(row.get("question_id"))), row.get("question")
    # even if the question is stored: a field of the row with a wrong form is an error either way
    own = question_of(row, _text(row, "question_id"), "" if raw is None else raw)
    if raw is not None or question is None:
        if raw is None and "claims" not in row and "verdicts" not in row:
            raise Malformed(_missing(row, "question"))
        question = own
    if text is None:
        missing = "response" not in row
        raise Malformed(_missing(row, "response") if missing else '"response" is not a text')
    if finish not in ("stop", "length"):
        raise Malformed(f'"finish" must be "stop" or "length" (got {finish!r:.80})')
    return Response(
        identity,
        question,
        text,
        group=_text(row, "group"),
        sample=whole_number(row, "sample") or 0,
        step=whole_number(row, "step"),
        finish=finish,
        prefill=_text(row, "prefill"),
    )


def row_id(row: JsonMapping) -> str:
    if not (identity := _text(row, "id")):
        raise Malformed(_missing(row, "id"))
    return identity


def _missing(row: JsonMapping, name: str) -> str:
    columns = ", ".join(list(row)[:8]) or "nothing"
    return f'no "{name}"; the row has {columns}: name the right column with --map {name}=COLUMN'


def _text(row: JsonMapping, name: str) -> str:
    value = row.get(name, "")
    if isinstance(value, float) and value.is_integer():  # tables with gaps store it as a float
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Malformed(f'"{name}" must be a text or a whole number (got {value!r:.80})')
    return str(value)


def _with_tokens(
    response: Response, row: JsonMapping, tokenize: Tokenize | None, split: bool
) -> Response:
    own = row.get("tokens")
    # a tokenizer that the user names replaces the row's own tokens
    if tokenize is None and isinstance(own, Mapping) and own.get("offsets"):
        try:
            offsets = spans_of(own["offsets"], response)
            ids = tuple(own.get("ids") or ())
            numbers: JsonObject = {name: tuple(own.get(name) or ()) for name in BY_TOKEN}
            if not all(map(are_numbers, (ids, *numbers.values()))):
                raise ValueError(own)
        except (TypeError, ValueError) as error:
            raise Malformed(
                '"tokens" must be {source, ids, offsets}, with offsets [start, end] in the response'
            ) from error
        source = _text(own, "source") or "sampled"
        return replace(response, token_ids=ids, offsets=offsets, source=source, **numbers)
    if not split:
        return response
    ids, offsets, source = (tokenize or split_words)(response.text)
    return replace(response, token_ids=ids, offsets=offsets, source=source)


def split_words(text: str) -> Tokens:
    return (), words(text), "words"
