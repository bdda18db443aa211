"""Check a pasted answer, and the example that fills the form for one."""

from __future__ import annotations

import re
from typing import Any

from workbench.checks import local_checks, world_checks
from workbench.extract import rules
from workbench.grade import grade
from workbench.types import Claims, Feedback, Passage, Question, Response, WorkbenchError
from workbench.verify import outcome
from workbench.world import load_world

WORKED = "Worked example"
# Question, answer, sources and gold answers to fill the form with: of the claims, one is
# contradicted and one left open.
EXAMPLE = (
    "What is the Eiffel Tower known for?",
    (
        "The Eiffel Tower stands in Paris. It was built for the World Fair of 1925. About seven"
        " million people visit the tower every year. Its restaurant opened with a concert."
    ),
    (
        "The Eiffel Tower stands in Paris. It was built for the World Fair of 1889 and is 330"
        " metres tall.\n\nGustave Eiffel's company built the tower out of iron. About seven million"
        " people visit it every year."
    ),
    "",
)

_TOKEN = re.compile(r"\s*(?:</?\w+>|\w+|[^\w\s])")


def words(text: str) -> tuple[tuple[int, int], ...]:
    """Words, punctuation marks and tags as tokens, white space with what follows; for text that
    no model sampled.
    """
    spans = [match.span() for match in _TOKEN.finditer(text)]
    if spans and spans[-1][1] < len(text):
        spans[-1] = (spans[-1][0], len(text))
    return tuple(spans)


def pasted(question: str, answer: str, sources: str, gold: str, judge: str) -> Feedback:
    """A pasted answer, checked by "world", "local" (the sources, by a small entailment model) or
    "none" (claims only).

    Sources are separated by empty lines; gold answers stand one on a line.

    Raises:
        WorkbenchError: there is no answer, or what the judge needs is missing.
    """
    if not answer.strip():
        raise WorkbenchError(
            "there is no answer to score: fill in the answer"
            + (" and its sources" * (judge == "local"))
        )
    texts = [text.strip() for text in re.split(r"\n\s*\n", sources) if text.strip()]
    passages = tuple(
        Passage(f"source-{number}", f"Source {number}", text)
        for number, text in enumerate(texts, 1)
    )
    answers = tuple(line.strip() for line in gold.splitlines() if line.strip())
    full_question = Question("pasted", question.strip(), answers, passages=passages)
    if judge == "local" and not passages:
        raise WorkbenchError(
            "the local verifier reads the answer against sources: paste at least one, or choose"
            " another judge"
        )
    extract, verify, complete = _judge(judge)
    full_question = complete(full_question) if complete else full_question
    response = Response(
        "pasted/0", full_question, answer, "pasted", offsets=words(answer), source="words"
    )
    claims: Claims = extract([response])[0]

    return grade(verify, {}, lambda _: [claims])([response])[0]


def _judge(name: str) -> tuple[Any, list[Any], Any]:
    """The extractor, the checks and the completion of questions of a judge that needs no other
    machine.
    """
    if name == "world":
        checks = world_checks(load_world())
        return (
            checks.extract,
            [
                check
                for need, check in checks.verify.items()
                if need in ("fact", "outcome", "reasoning")
            ],
            checks.recognise,
        )
    if name == "local":
        checks = local_checks()
        return checks.extract, list(checks.verify.values()), None

    return rules(), [outcome()], None
