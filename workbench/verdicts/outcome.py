"""Check a response's final answer against the gold answers by rules."""

from dataclasses import replace

from workbench.text import DOUBT, final_answer, is_abstention, probability, retracted
from workbench.types import Checked, Failure, Response, Verdict, Verify


def outcome(require_box: bool | None = False) -> Verify:
    r"""Return a function that labels final answers by rules (TruthRL, arXiv 2509.25760, §3).

    The rules of `workbench.text` compare the final answer with the gold answers.

    * `uncertain`: an abstention, whatever the gold answer *(ours)*
    * `correct`: an answer that agrees with a gold answer. For a question with a false premise, the
      answer "invalid question" is correct.
    * `incorrect`: any other answer, and a missing or retracted answer

    If the question has no gold answers, the verdict has an error. `p` is the probability that a
    person accepts the answer (`workbench.text.probability`). It is None for an abstention and for a
    missing or retracted answer.

    Args:
        require_box: if True, accept an answer only in `\boxed{}`. None means True for questions
            whose system prompt mentions `\boxed`, and False for all others.
    """
    return lambda batch: [Checked((by_rule(response, require_box),)) for response, _ in batch]


def committed_answer(response: Response, require_box: bool | None) -> str | None:
    r"""Return the text of a response's final answer; None if it has no final answer.

    Args:
        response: the response.
        require_box: if True, only the content of `\boxed{}` is a final answer. None means True if
            the question's system prompt mentions `\boxed`, otherwise False.
    """
    boxed = r"\boxed" in response.question.system if require_box is None else require_box
    return final_answer(response.text, boxed, response.prefill)


def without_comparison(response: Response, require_box: bool | None) -> Verdict | None:
    r"""Return the verdict on a final answer if it needs no comparison with gold answers, else None.

    * The question has no gold answers: the verdict has an error.
    * The final answer is missing or retracted: the label is "incorrect".
    * The final answer is an abstention: the label is "uncertain".

    Args:
        response: the response with the final answer.
        require_box: if True, only the content of `\boxed{}` is a final answer. None means True if
            the question's system prompt mentions `\boxed`, otherwise False.
    """
    question, verdict = response.question, Verdict("outcome", "answer", by="rule")
    if not question.answers:
        message = (
            f"question '{question.id}' (response '{response.id}') has no gold answers: add them to"
            " its row as `answers`"
        )
        return replace(verdict, error=Failure("verify", "no_gold", message))
    answer = committed_answer(response, require_box)
    if answer is None or retracted(response.text, answer):
        return replace(verdict, label="incorrect")
    return replace(verdict, label="uncertain") if is_abstention(answer) else None


def by_rule(response: Response, require_box: bool | None) -> Verdict:
    r"""Label the final answer of a response by the rules that `outcome` describes.

    Args:
        response: the response with the final answer.
        require_box: if True, only the content of `\boxed{}` is a final answer. None means True if
            the question's system prompt mentions `\boxed`, otherwise False.
    """
    if verdict := without_comparison(response, require_box):
        return verdict
    question, answer = response.question, committed_answer(response, require_box) or ""
    p = probability(answer, question.answers, question.kind, question.text)
    return Verdict("outcome", "answer", "correct" if p > DOUBT[1] else "incorrect", p, by="rule")
