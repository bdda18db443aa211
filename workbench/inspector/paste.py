"""Score an answer that was pasted into the form of the Inspect tab."""

import re

from workbench.claims import rules
from workbench.inspector.examples import words
from workbench.pipeline import grade
from workbench.types import Checks, Feedback, Passage, Question, Response, WorkbenchError
from workbench.verdicts import outcome
from workbench.verdicts.checks import local_checks, world_checks
from workbench.world import load_world

# question, answer, sources and gold answers of the form; the sources contradict one claim, and do
# not mention another
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


def pasted(question: str, answer: str, sources: str, gold: str, judge: str) -> Feedback:
    """Return an answer with its claims and a judge's verdicts, without rewards.

    Args:
        sources: passages, separated by empty lines.
        gold: gold answers, one per line.
        judge: "local" (the local verifier), "world" (the closed world) or "none" (claims only).

    Raises:
        WorkbenchError: the answer is empty, or the local verifier has no sources.
    """
    if not answer.strip():
        also = " and its sources" if judge == "local" else ""
        raise WorkbenchError(f"there is no answer to score: fill in the answer{also}")
    texts = [text.strip() for text in re.split(r"\n\s*\n", sources) if text.strip()]
    passages = tuple(
        Passage(f"source-{number}", f"Source {number}", text)
        for number, text in enumerate(texts, 1)
    )
    if judge == "local" and not passages:
        raise WorkbenchError(
            "there are no sources: the local verifier checks the answer against sources, so paste"
            " at least one, or choose another judge"
        )
    checks = Checks(rules(), {"outcome": outcome()})
    if judge != "none":
        checks = local_checks() if judge == "local" else world_checks(load_world())
    answers = tuple(line.strip() for line in gold.splitlines() if line.strip())
    full = Question("pasted", question.strip(), answers, passages=passages)
    if checks.recognise:
        full = checks.recognise(full)
    response = Response("pasted/0", full, answer, "pasted", offsets=words(answer), source="words")
    # a pasted answer has no checklist, so the closed world's checklist checks are left out
    needs = ("fact", "outcome", "reasoning") if judge == "world" else checks.verify
    verify = [check for need, check in checks.verify.items() if need in needs]
    return grade(verify, {}, checks.extract)([response])[0]
