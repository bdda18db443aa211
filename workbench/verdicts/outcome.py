"""Check a response's final answer against the gold answers by rules."""

from dataclasses import replace

from workbench.text import DOUBT, final_answer, is_abstention, probability, retracted
from workbench.types import Checked, Failure, Response, Verdict, Verify


def outcome(require_box: bool | None = False) -> Verify:
    r"""Return a function that labels final answers by rules (TruthRL, arXiv 2509.25760, §3).

    The rules of `workbench.text` compare the final answer with the gold answers.

    * `uncertain`: an abstention, whatever the gold answer *(ours)*
    * `correct`: an answer that agrees with a gold answer; "invalid question" if the premise is
      false
    * `incorrect`: any other answer, and a missing or retracted answer

    If the question has no gold answers, the verdict has an error. `p` is the probability that a
    person accepts the answer (`workbench.text.probability`). It is None if no comparison was
    needed.

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
    """Return the verdict on a final answer that needs no comparison with the gold answers.

    * The question has no gold answers: the verdict has an error.
    * The final answer is missing or retracted: incorrect.
    * The final answer is an abstention: uncertain.

    Otherwise, the result is None. For `require_box`, see `outcome`.
    """
    question, verdict = response.question, Verdict("outcome", "answer", by="rule")
    if not question.answers:
        message = f"question '{question.id}' (response '{response.id}') has no gold answers"
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
