"""Check a response's final answer against the gold answers by rules."""

from dataclasses import replace

from workbench.text import DOUBT, final_answer, is_abstention, probability, retracted
from workbench.types import Checked, Failure, Response, Verdict, Verify


def outcome(require_box: bool | None = False) -> Verify:
    r"""Return a function that labels final answers by rules (TruthRL, arXiv 2509.25760, §3).

    The rules of `workbench.text` compare the final answer with the gold answers.

    * An abstention is `uncertain`, whatever the gold answer *(ours)*.
    * An answer that agrees with a gold answer is `correct`, and so is "invalid question" if the
      premise is false.
    * Any other answer is `incorrect`, and so is a missing or retracted one.
    * If the question has no gold answers, the verdict has an error.

    `p` is the probability that a person accepts the answer (`workbench.text.probability`).

    Args:
        require_box: if True, accept an answer only in `\boxed{}`. None means True for questions
            whose system prompt mentions `\boxed`.
    """
    return lambda batch: [Checked((by_rule(response, require_box),)) for response, _ in batch]


def committed_answer(response: Response, require_box: bool | None) -> str | None:
    """Return the text of a response's final answer; None if it has no final answer.

    For `require_box` see `outcome`.
    """
    boxed = r"\boxed" in response.question.system if require_box is None else require_box
    return final_answer(response.text, boxed, response.prefill)


def without_comparison(response: Response, require_box: bool | None) -> Verdict | None:
    """Return the verdict on a final answer that needs no comparison with gold answers, else None.

    A missing or retracted final answer is incorrect, and an abstention is uncertain. If the
    question has no gold answers, the verdict has an error.
    """
    question, verdict = response.question, Verdict("outcome", "answer", by="rule")
    if not question.answers:
        message = f"response '{response.id}' to question '{question.id}' has no gold answers"
        return replace(verdict, error=Failure("verify", "no_gold", message))
    answer = committed_answer(response, require_box)
    if answer is None or retracted(response.text, answer):
        return replace(verdict, label="incorrect")
    return replace(verdict, label="uncertain") if is_abstention(answer) else None


def by_rule(response: Response, require_box: bool | None) -> Verdict:
    """Return the verdict on the final answer of a response, decided by rules; see `outcome`."""
    if verdict := without_comparison(response, require_box):
        return verdict
    question, answer = response.question, committed_answer(response, require_box) or ""
    p = probability(answer, question.answers, question.kind, question.text)
    return Verdict("outcome", "answer", "correct" if p > DOUBT[1] else "incorrect", p, by="rule")
