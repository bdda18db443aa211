"""A first pass over the input: which rows can be scored, before anything is asked or written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from zlib import crc32

from workbench.score.rows import Item, Tokenize, fingerprint, identity, parse
from workbench.score.source import Line, Malformed, read
from workbench.store import QUESTIONS, question_key, read_questions
from workbench.types import Question

SHOWN = 100  # problems that are reported word for word


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

    def item(self, line: Line, split: bool = True) -> Item:
        """Raises Malformed. Without `split` the response gets no tokens, which takes less time."""
        if line.row is None:
            raise Malformed(line.problem)
        stored = line.row.get("question_id") and not line.row.get("question")
        item = parse(line.row, self.columns, self.questions if stored else {}, self.tokenize, split)
        question = item.response.question
        if self.recognise:
            question = self.recognise(question)
        if not question.id:
            question = replace(question, id=f"q-{fingerprint(question)}")
        else:
            key = question_key(question)
            if self.known.setdefault(question.id, key) != key:
                question = replace(question, id=f"{question.id}-{fingerprint(question)}")
        group = item.response.group or question.id
        response = replace(item.response, question=question, group=group)
        return replace(item, feedback=replace(item.feedback, response=response))

    def survey(self) -> Survey:
        """Read the file once."""
        found = Survey()
        for line in read(self.path):
            try:
                item = self.item(line, split=False)
                if item.response.id in found.ids:
                    found.duplicates += 1
                    raise Malformed(f"the id '{item.response.id}' stands in an earlier row")
            except Malformed as problem:
                found.malformed += 1
                if len(found.problems) < SHOWN:
                    found.problems.append((line.number, str(problem)))
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
        for line in read(self.path):
            if not wanted:
                return
            try:
                if line.row is None or identity({"id": line.row.get(name)}) not in wanted:
                    continue
                item = self.item(line)
            except Malformed:
                continue
            if wanted.get(item.response.id) == checksum(item.response.text):
                del wanted[item.response.id]
                yield item


def checksum(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))
