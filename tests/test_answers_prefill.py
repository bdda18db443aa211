"""Prefilled tags: a response whose prompt ends with `<think>` is read as if it contained it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.helpers import examples, without
from tests.helpers.reward_rows import row, with_verdicts
from tests.helpers.score_helpers import read, write
from tests.helpers.tiny_model import TEMPLATE, byte_tokenizer
from tests.test_answers_sections import PIECES
from workbench.credit.tokens import prefill
from workbench.methods.klcf.config import KLCF
from workbench.methods.klcf.reward import reward as klcf
from workbench.methods.knowrl.config import KnowRL
from workbench.methods.knowrl.reward import reward as knowrl
from workbench.metrics.rows import reduce_row
from workbench.pipeline import rescore
from workbench.scoring import Options, score_file
from workbench.text import answer_sections, final_answer, sections, sentences, thinking, well_formed
from workbench.text.sections import opened
from workbench.types import Feedback, Question, Response, Verdict
from workbench.verdicts import outcome

THINK, ANSWER = "<think>\n", "<answer>"
GOOD = "I recall.</think>\n<answer>Vetra</answer>"
BOX = r"\boxed{Vetra}"


@pytest.mark.parametrize(("opening", "text", "good"), examples("prefilled"))
def test_a_prefilled_tag_does_not_relax_the_format_check(
    opening: str, text: str, good: bool
) -> None:
    assert well_formed(text, opening) is good


@given(PIECES)
def test_a_prefilled_tag_is_read_as_if_it_were_in_the_text(text: str) -> None:
    assert well_formed(text, THINK) == well_formed(f"{THINK}{text}")
    whole = [
        (section, start - len(THINK), end - len(THINK))
        for section, start, end in sections(f"{THINK}{text}")
    ]
    assert [(section, max(start, 0), end) for section, start, end in whole] == list(
        sections(text, THINK)
    )


def test_sections_sentences_and_answer_after_an_opening() -> None:
    assert sections("a</think>b", THINK) == (("think", 0, 1), ("body", 9, 10))
    assert sections("a <answer>b", THINK) == (("think", 0, 2), ("think", 10, 11))
    assert thinking("a. B", THINK) == "a. B" and thinking("a. B") == ""
    assert final_answer("Vetra, surely", prefill=THINK) is None  # thinking without an answer
    assert final_answer(BOX, prefill=THINK) is None and final_answer(BOX) == "Vetra"
    assert final_answer("Lomar?</think>Vetra", prefill=THINK) == "Vetra"
    assert answer_sections("Vetra", ANSWER) == ("answer",)
    assert final_answer("Vetra</answer> x", prefill=ANSWER) == "Vetra"
    assert sections("1. Lomar [Answer] Vetra", "[Outline]") == (("answer", 17, 23),)
    assert sentences("Lomar. [Answer] Vetra.", "[Outline]") == ((16, 22),)


@pytest.mark.parametrize(("prompt", "left"), examples("prompts_open"))
def test_tags_that_a_prompt_leaves_open(prompt: str, left: str) -> None:
    assert opened(prompt) == left


def tokenizer_that_opens(opening: str) -> Any:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE.replace("<|assistant|>' }}", f"<|assistant|>{opening}' }}}}")
    return tokenizer


def test_prefill_depends_on_the_chat_template_and_not_on_the_question() -> None:
    plain, opens = byte_tokenizer(), tokenizer_that_opens(r"<think>\n")
    asked = [{"role": "user", "content": "What does <think> mean? <think>\n"}]
    ids = {
        t: t.apply_chat_template(asked, add_generation_prompt=True, return_dict=True)["input_ids"]
        for t in (plain, opens)
    }
    assert prefill(plain) == prefill(plain, ids[plain]) == ""
    assert prefill(opens) == prefill(opens, ids[opens]) == "<think>\n"
    assert prefill(opens, ids[plain]) == ""  # a prompt without the prefill
    assert prefill(tokenizer_that_opens(r"<think>\n\n</think>\n\n")) == ""
    plain.chat_template = None
    assert prefill(plain) == ""


def test_generated_responses_store_their_prefill(policy: str) -> None:
    from workbench.policies.generate import generate
    from workbench.policies.load import load_policy

    loaded = load_policy(policy, device="cpu")
    for opening in ("", r"<think>\n"):
        loaded.tokenizer.chat_template = tokenizer_that_opens(opening).chat_template
        responses = generate(loaded, [Question("q", " Who")], max_new_tokens=3, samples=2)
        assert {response.prefill for response in responses} == {opening.replace(r"\n", "\n")}
        assert all(response.offsets[0][0] == 0 for response in responses)


def thought(text: str = GOOD) -> Feedback:
    """A row whose prompt opened `<think>`; one of three claims in its thinking is true."""
    full = row(
        "correct:5",
        think="correct:5 wrong:5 vague:3",
        tagged=True,
        checklist=["a"],
        verdicts=[
            Verdict("outcome", "answer", "correct"),
            Verdict("item:0", "checklist", "consistent"),
        ],
    )
    cut = len("<think>")
    assert full.response.text.startswith("<think>")
    claims = tuple(
        replace(c, span=(c.span[0] - cut, c.span[1] - cut), end=c.span[1] - cut)
        for c in full.claims
        if c.span
    )
    response = replace(full.response, text=full.response.text[cut:], offsets=(), prefill="<think>")
    sentences = tuple((start - cut, end - cut) for start, end in full.sentences)
    return replace(full, response=response, claims=claims, sentences=sentences)


def test_rewards_are_computed_as_if_the_tag_were_in_the_text() -> None:
    """KnowRL: format 1 + correct 2 + facts 1/3 (1.33 with format −1). KLCF: no format penalty, so
    checklist and truth count.
    """
    feedback = thought()
    paid = rescore(
        feedback, {"knowrl": knowrl(KnowRL()), "klcf": klcf(KLCF(l_max=None, w_general=0.0))}
    ).rewards
    assert paid["knowrl"].value == pytest.approx(1 + 2 + 1 / 3)
    assert paid["klcf"].parts["format"] == 0 and paid["klcf"].value == pytest.approx(1.0)
    again = with_verdicts(
        replace(
            feedback, response=replace(feedback.response, text=f"<think>{feedback.response.text}")
        )
    )
    assert rescore(again, {"knowrl": knowrl(KnowRL())}).rewards["knowrl"].parts["format"] == -1


def test_a_stored_row_keeps_its_prefill_and_its_rewards() -> None:
    feedback = rescore(thought(), {"knowrl": knowrl(KnowRL())})
    stored = json.loads(json.dumps(feedback.to_row()))
    assert stored["prefill"] == "<think>"
    back = Feedback.from_row(stored, feedback.response.question)
    assert back == feedback and rescore(back, {"knowrl": knowrl(KnowRL())}) == feedback
    older = without(stored, "prefill")
    assert Feedback.from_row(older, feedback.response.question).response.prefill == ""


def test_unfinished_thinking_is_graded_incorrect() -> None:
    asked = Question("q", "Where?", ("Vetra",))
    from workbench.types import Claims

    def label(text: str, opening: str) -> str | None:
        return (
            outcome()([(Response("r", asked, text, prefill=opening), Claims())])[0]
            .verdicts[0]
            .label
        )

    assert label("Vetra", "") == "correct" and label("Vetra", THINK) == "incorrect"
    assert label("I don't know", THINK) == "incorrect"
    assert label("Lomar?</think>Vetra", THINK) == "correct"


def test_metrics_do_not_count_unfinished_thinking_as_abstention() -> None:
    stored = Feedback(
        Response("r", Question("q", "?"), "I don't know", prefill=THINK), ((0, 12),)
    ).to_row()
    assert reduce_row(stored).state == "no_claims"
    assert reduce_row({**stored, "prefill": ""}).state == "abstained"


@pytest.mark.parametrize("column", ["prefill", "opened"])
def test_scoring_reads_the_prefill_from_a_column_and_stores_it(tmp_path: Path, column: str) -> None:
    said = {
        "id": "a",
        "question": "Where?",
        "response": "Ada sings.</think><answer>Vetra</answer>",
        column: THINK,
        "claims": [{"text": "Ada sings", "label": "correct", "informativeness": 5}],
        "outcome": "correct",
    }
    source, first, second = (
        write(tmp_path / "in.jsonl", [said]),
        tmp_path / "a" / "f.jsonl",
        tmp_path / "b" / "f.jsonl",
    )
    score_file(
        Options(source, first, "knowrl", columns={} if column == "prefill" else {"prefill": column})
    )
    [scored] = read(first)
    assert scored["prefill"] == THINK and scored["claims"][0]["section"] == "think"
    assert scored["rewards"]["knowrl"]["value"] == pytest.approx(1 + 2 + 1)
    score_file(Options(first, second, "knowrl"))
    assert read(second)[0]["rewards"] == scored["rewards"] and read(second)[0]["prefill"] == THINK
