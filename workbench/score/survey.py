"""A first pass over the input: what can be scored, what cannot, and what it takes, before
anything is asked or written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from zlib import crc32

from workbench.score.rows import Item, Tokenize, fingerprint, identity, parse
from workbench.score.source import Line, Malformed, read
from workbench.store import QUESTIONS, question_key, read_questions
from workbench.types import Question

SHOWN = 100  # problems that are kept word for word


@dataclass
class Survey:
    """Counts of rows by what can be done with them; `ids` are those to score, with a checksum of
    their response.
    """

    ids: dict[str, int] = field(default_factory=dict)
    judged: int = 0  # rows that a judge has to see
    bare: int = 0  # of these, rows whose question brings no passages
    malformed: int = 0
    duplicates: int = 0
    # the first of them, with their line numbers
    problems: list[tuple[int, str]] = field(default_factory=list)

    def add(self, item: Item) -> None:
        self.ids[item.response.id] = checksum(item.response.text)
        self.judged += not item.replay
        self.bare += not item.replay and not item.response.question.passages

    def refuse(self, number: int, problem: str) -> None:
        self.malformed += 1
        if len(self.problems) < SHOWN:
            self.problems.append((number, problem))


@dataclass
class Reader:
    """The input file, its column names, how its responses are split into tokens, and what is
    known of its questions.

    `known` are the questions of the record that the output goes to (id -> `question_key`): no id
    may come to stand for two.
    """

    path: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    tokenize: Tokenize | None = None
    recognise: Callable[[Question], Question] | None = None
    known: dict[str, int] = field(default_factory=dict)
    _questions: Mapping[str, Question] | None = None

    def questions(self) -> Mapping[str, Question]:
        """The questions stored beside a feedback file."""
        if self._questions is None:
            self._questions = (
                read_questions(self.path.parent) if (self.path.parent / QUESTIONS).exists() else {}
            )
        return self._questions

    def item(self, line: Line, split: bool = True) -> Item:
        """Raises Malformed. Without `split` the response gets no tokens, which takes less time."""
        if line.row is None:
            raise Malformed(line.problem)
        questions = (
            self.questions() if line.row.get("question_id") and not line.row.get("question") else {}
        )
        item = parse(line.row, self.columns, questions, self.tokenize, split)
        return item.about(self._one_meaning(item.response.question))

    def _one_meaning(self, question: Question) -> Question:
        """The question, completed by `recognise`; under an id of its own if another question has
        its id already.
        """
        if self.recognise:
            question = self.recognise(question)
        if not question.id:
            return replace(question, id=f"q-{fingerprint(question)}")
        key = question_key(question)
        if self.known.setdefault(question.id, key) == key:
            return question
        return replace(question, id=f"{question.id}-{fingerprint(question)}")

    def survey(self) -> Survey:
        """Read the file once."""
        result = Survey()
        for line in read(self.path):
            try:
                item = self.item(line, split=False)
                if item.response.id in result.ids:
                    result.duplicates += 1
                    raise Malformed(f"the id '{item.response.id}' stands in an earlier row")
            except Malformed as problem:
                result.refuse(line.number, str(problem))
            else:
                result.add(item)
        return result

    def items(self, wanted: dict[str, int]) -> Iterator[Item]:
        """The rows with the `wanted` ids, each once and in order; an id is taken out of `wanted`
        as its row is read.
        """
        for line in read(self.path):
            if not wanted:
                return
            try:
                if (
                    line.row is None
                    or identity({"id": line.row.get(self.columns.get("id", "id"))}) not in wanted
                ):
                    continue
                item = self.item(line)
            except Malformed:
                continue
            if wanted.get(item.response.id) == checksum(item.response.text):
                del wanted[item.response.id]
                yield item


def checksum(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))
