"""Training rows written by a judge: stored once and whole, laid out for the prompt, failures
counted.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.thinker import TEMPLATE
from tests.helpers.tiny_model import byte_tokenizer, make_policy
from workbench import local_checks
from workbench.credit.tokens import words
from workbench.methods.forag.cold_start import ColdStart, cold_start_rows
from workbench.methods.forag.config import FoRAG
from workbench.methods.forag.reward import reward
from workbench.pipeline import ANSWER_SECTIONS, assemble
from workbench.runs.store import iter_feedback
from workbench.text import answer_text, thinking
from workbench.text.outline import read_outline
from workbench.training.collect import written
from workbench.training.pairs import cold_start
from workbench.training.rows import encode_example
from workbench.training.settings import Sampling
from workbench.training.stage import Job
from workbench.types import Failure, Feedback, Passage, Question, Response
from workbench.util.failures import TooManyFailures

TEXT = "[Structure] parallel\n[Outline]\n1. Ada [1]\n[Answer]\nAda lives in Oslo [1]."
ASKED = [
    Question(f"q{number}", " Where is Ada", passages=(Passage("p", "", "Ada lives in Oslo."),))
    for number in range(5)
]
DOWN = Failure("judge", "connection", "nobody there")


class Writer:
    """Fails on the first `failing` questions."""

    def __init__(self, failing: int = 0) -> None:
        self.failing, self.calls = failing, 0

    def __call__(self, questions: Sequence[Question]) -> list[Feedback]:
        self.calls += 1
        return [
            Feedback(Response(f"{q.id}/0", q, "", q.id, source="words"), error=DOWN)
            if number < self.failing
            else Feedback(Response(f"{q.id}/0", q, TEXT, q.id, offsets=words(TEXT), source="words"))
            for number, q in enumerate(questions)
        ]


def test_a_failure_is_counted_and_gives_no_row(policy: str, tmp_path: Path) -> None:
    writer, out = Writer(failing=1), tmp_path / "stage" / "written"
    found = written(writer, ASKED, policy, out, max_failed=0.2)
    rows, card = cold_start(found, "cold_start_written")
    assert [(row.question.id, row.text, row.weight) for row in rows] == [
        (f"q{n}", TEXT, 1.0) for n in range(1, 5)
    ]
    assert (card.rows, card.dropped_samples, card.dropped_questions) == (
        {"in form": 4},
        {"failed": 1},
        {"no usable sample": 1},
    )
    assert found == list(iter_feedback(out)) and found[0].error == DOWN
    # stored rows are kept, including failures
    assert written(Writer(failing=5), ASKED, policy, out, max_failed=0.0) == found
    assert writer.calls == 1


def test_too_many_failures_stop_it_and_leave_no_files(policy: str, tmp_path: Path) -> None:
    out = tmp_path / "stage" / "written"
    with pytest.raises(
        TooManyFailures, match=r"2 of 5 answers could not be written \(nobody there\)"
    ):
        written(Writer(failing=2), ASKED, policy, out, max_failed=0.2)
    assert not out.parent.exists()
    (out.parent / f".{out.name}.partial").mkdir(parents=True)  # left by a kill
    (out.parent / f".{out.name}.partial" / "rollouts.jsonl").write_text("{")
    assert len(written(Writer(), ASKED, policy, out, max_failed=0.2)) == 5
    assert [path.name for path in out.parent.iterdir()] == ["written"]


def test_thinking_opened_by_the_prompt_is_closed_before_the_answer(tmp_path: Path) -> None:
    """Otherwise the whole text would be thinking, and training would teach answers without a
    reward.
    """
    tokenizer, policy = byte_tokenizer(), str(make_policy(tmp_path / "policy"))
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(policy)
    found = written(Writer(failing=1), ASKED, policy, tmp_path / "written", max_failed=1.0)
    response = found[1].response
    assert (response.prefill, response.text) == ("<think>\n", f"</think>\n\n{TEXT}") and found[
        0
    ].response.prefill == ""
    assert answer_text(
        response.text, response.prefill
    ) == "Ada lives in Oslo [1]." and not thinking(response.text, "<think>\n")
    assert read_outline(response.text.removeprefix("</think>")) is not None
    assert [response.text[start:end] for start, end in response.offsets[:2]] == [
        "</think>\n\n",
        "[Structure]",
    ]
    [row, *_], _ = cold_start(found, "cold_start_written")
    assert row.text == f"<think>\n</think>\n\n{TEXT}"
    prompt, said = encode_example(tokenizer, row.question, row.text)
    assert tokenizer.decode([*prompt, *said]).count("<think>") == 1 and tokenizer.decode(
        said
    ).startswith("</think>")


def test_only_factual_answers_are_kept_on_request(policy: str, tmp_path: Path) -> None:
    rome = Passage("rome", "", "Ada lives in Rome.")
    asked = [*ASKED[:3], *(replace(question, passages=(rome,)) for question in ASKED[3:])]
    checks = replace(local_checks(), write=Writer(failing=1))
    judge = assemble(checks, ["fact"], {"forag": reward(FoRAG())}, ANSWER_SECTIONS)
    cold = ColdStart(writer="judge", factual=True)
    job = Job(start=policy, out=tmp_path / "stage", seed=0, stages={})
    rows, card = cold_start_rows(cold, Sampling(max_failed=0.2), checks, judge, asked, job)
    assert [row.question.id for row in rows] == ["q1", "q2"]
    assert card.dropped_samples == {"failed": 1, "not factual": 2}
