"""A judge's verdicts: its prompts, labels from its replies, and failures that affect only their own
row.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.helpers import examples
from tests.helpers.scripted import ScriptedJudge
from workbench.judge import elements
from workbench.retrieval import from_passages
from workbench.types import (
    Checked,
    Claim,
    Claims,
    Cost,
    Failure,
    JsonObject,
    Passage,
    Question,
    Response,
    Verdict,
    Verify,
)
from workbench.verdicts import checklist, claim_checklist, facts, judged_outcome, reasoning
from workbench.verdicts.claims import cite

PASSAGE = Passage("p", "Ada", "Ada was born in Paris. She is a painter.")
QUESTION = Question("q", "Who is Ada?", passages=(PASSAGE,))
UNTITLED = Question("untitled", "?")


def response(text: str, question: Question = QUESTION, name: str = "r") -> Response:
    return Response(name, question, text)


def found(text: str, *statements: str, question: Question = QUESTION) -> tuple[Response, Claims]:
    """A response of sentences that end in full stops, each with the claim at its index."""
    spans, start = [], 0
    for piece in text.split(". "):
        spans.append((start, start + len(piece)))
        start += len(piece) + 2
    claims = tuple(
        Claim(number, statement, sentence=number) for number, statement in enumerate(statements)
    )
    return response(text, question), Claims(tuple(spans), claims)


def truth(task: str, output: Mapping[str, list[str]]) -> Any:
    if task == "inform":
        return {"ratings": [5 - number for number in range(len(output["claim"]))]}
    [claim] = output["claim"]
    return {
        "label": "vague"
        if "some" in claim
        else "correct"
        if "Paris" in claim or "painter" in claim
        else "wrong"
    }


def labels(checked: Checked, aspect: str) -> list[str | None]:
    return [verdict.label for verdict in checked.verdicts if verdict.aspect == aspect]


def one(verify: Verify, *batch: tuple[Response, Claims]) -> list[Checked]:
    checked = verify(batch)
    assert len(checked) == len(batch)
    return checked


def test_facts_sends_one_prompt_per_claim_and_one_for_all_ratings() -> None:
    judge = ScriptedJudge(truth)
    rows = [
        found(
            "Ada was born in Paris. She is a doctor. She has some job",
            "Ada was born in Paris",
            "Ada is a doctor",
            "some job",
        ),
        found("I do not know"),
    ]
    full, empty = one(facts(judge), *rows)
    assert labels(full, "fact") == ["correct", "wrong", "vague"]
    assert [verdict.informativeness for verdict in full.verdicts] == [5, 4, 3]
    assert {verdict.by for verdict in full.verdicts} == {"scripted"}
    assert [[prompt.task for prompt in batch] for batch in judge.batches] == [
        ["verify"] * 3 + ["inform"]
    ]
    assert full.cost == Cost(calls=4, tokens_in=40, tokens_out=8)
    assert empty == Checked()


def test_a_hedged_sentence_hedges_correct_and_wrong_but_not_vague() -> None:
    text = "She may be from Paris. Perhaps she is a doctor. I think she has some job"
    [checked] = one(
        facts(ScriptedJudge(truth)), found(text, "Ada is from Paris", "Ada is a doctor", "some job")
    )
    assert labels(checked, "fact") == ["hedged_correct", "hedged_wrong", "vague"]


def test_evidence_is_the_sentence_with_the_most_shared_words() -> None:
    [checked] = one(facts(ScriptedJudge(truth)), found("She is a painter", "Ada is a painter"))
    [evidence] = checked.verdicts[0].evidence
    assert evidence["passage"] == "p"
    assert PASSAGE.text[slice(*evidence["span"])] == "She is a painter."
    blank = [{"passage": "p", "span": None}, {"passage": "e", "span": None}]
    assert list(cite("zzz", [PASSAGE, Passage("e", "", "")])) == blank


def test_one_search_call_has_the_claims_of_all_rows_with_their_titles() -> None:
    asked: list[tuple[list[str], int, list[str | None]]] = []

    def search(
        queries: Sequence[str], k: int, titles: Sequence[str | None] | None = None
    ) -> list[list[Passage]]:
        asked.append((list(queries), k, list(titles or ())))
        return [[] if "nothing" in query else [PASSAGE] for query in queries]

    bare = Question("bare", "Who is Ada?", title="Ada;Paris")
    rows = [
        found("x. x", "Paris", "nothing", question=bare),
        found("y", "painter"),
        found("z", "painter", question=UNTITLED),
    ]
    first, second, third = one(facts(ScriptedJudge(truth), search, k=3), *rows)
    assert asked == [(["Paris", "nothing", "painter"], 3, ["Ada;Paris", "Ada;Paris", None])]
    assert labels(first, "fact") == ["correct", None]
    error = first.verdicts[1].error
    assert error is not None and (error.stage, error.kind) == ("retrieve", "no_passages")
    assert first.verdicts[1].informativeness == 4  # it is rated nevertheless
    assert labels(second, "fact") == labels(third, "fact") == ["correct"]


def test_a_claim_without_a_word_in_any_page_is_vague_and_not_a_failure() -> None:
    """Gibberish or another script finds nothing in a store: a policy must not avoid judgement this
    way.
    """
    judge = ScriptedJudge(truth)
    search = from_passages([PASSAGE]).search
    row = found("x. x", "Paris", "zibble glorbs", question=UNTITLED)
    [checked] = one(facts(judge, search), row)
    assert labels(checked, "fact") == ["correct", "vague"]
    unfound = checked.verdicts[1]
    assert (unfound.p, unfound.evidence, unfound.by, unfound.error) == (
        0.0,
        ({"unfound": "words"},),
        "rule",
        None,
    )
    assert [prompt.task for prompt in judge.batches[0]] == ["verify", "inform"]


def test_without_passages_or_with_a_broken_search_a_claim_fails_without_a_call() -> None:
    def search(*_: Any, **__: Any) -> list[list[Passage]]:
        raise OSError("the disk is gone")

    judge = ScriptedJudge(truth)
    bare = found("x", "painter", question=UNTITLED)
    [missing] = one(facts(judge, informativeness=False), bare)
    [broken] = one(facts(judge, search, informativeness=False), bare)
    errors = [checked.verdicts[0].error for checked in (missing, broken)]
    assert [(error.stage, error.kind) for error in errors if error] == [
        ("retrieve", "no_passages"),
        ("retrieve", "search"),
    ]
    assert judge.batches == []


def test_claims_judged_during_extraction_are_not_judged_again() -> None:
    judge = ScriptedJudge(truth)
    output = (Verdict("claim:0", "fact", "vague", informativeness=1),)
    row = response("x y"), Claims(((0, 3),), (Claim(7, "Paris"), Claim(0, "painter")), output)
    [checked] = one(facts(judge), row)
    assert [verdict.target for verdict in checked.verdicts] == ["claim:7"]
    assert [prompt.task for prompt in judge.batches[0]] == ["verify", "inform"]


def test_an_unreadable_reply_fails_only_its_claim() -> None:
    down = Failure("judge", "http_500", "the server is down")
    replies: JsonObject = {
        "Paris": "Incorrect",
        "painter": '{"label": "untrue"}',
        "doctor": '{"label": "wrong"}',
        "poet": down,
    }

    def answer(task: str, output: Mapping[str, list[str]]) -> Any:
        return {"ratings": [1, 2, 3, 4]} if task == "inform" else replies[output["claim"][0]]

    [checked] = one(facts(ScriptedJudge(answer)), found("A. B. C. D", *replies))
    assert labels(checked, "fact") == [None, None, "wrong", None]
    stages = [verdict.error.stage if verdict.error else "" for verdict in checked.verdicts]
    assert stages == ["parse", "parse", "", "judge"] and checked.verdicts[3].error == down
    assert [verdict.informativeness for verdict in checked.verdicts] == [1, 2, 3, 4]


def test_a_wrong_number_of_ratings_is_a_failure_but_keeps_the_labels() -> None:
    def answer(task: str, output: Mapping[str, list[str]]) -> Any:
        return {"ratings": [5]} if task == "inform" else truth(task, output)

    [checked] = one(facts(ScriptedJudge(answer)), found("A. B", "Paris", "painter"))
    assert labels(checked, "fact") == ["correct", "correct"]
    assert [verdict.informativeness for verdict in checked.verdicts[:2]] == [None, None]
    assert checked.verdicts[2].target == "response"
    assert checked.verdicts[2].error is not None and checked.verdicts[2].error.stage == "parse"


CITY = Question("city", "Where was Ada born?", ("Paris",))


def check_outcomes(verify: Verify, name: str, *more: tuple[Response, Claims]) -> list[Checked]:
    """Compare the verdicts on a file of examples with the expected labels and judges."""
    cases = examples(name)
    checked = one(verify, *((response(text, CITY), Claims()) for text, *_ in cases), *more)
    verdicts = [row.verdicts[0] for row in checked[: len(cases)]]
    assert [[v.label, v.by] for v in verdicts] == [case[1:] for case in cases]
    return checked


def test_outcome_asks_the_judge_only_about_answers() -> None:
    judge = ScriptedJudge(
        lambda task, output: {
            "label": "correct" if output["response"] == output["answer"] else "incorrect"
        }
    )
    ungold_row = response("Paris", QUESTION), Claims()
    *checked, ungold = check_outcomes(judged_outcome(judge), "judged_outcomes", ungold_row)
    error = ungold.verdicts[0].error
    assert error is not None and error.kind == "no_gold"
    assert [len(batch) for batch in judge.batches] == [2]
    assert sum(row.cost.calls for row in checked) == 2


def test_a_judge_is_asked_only_where_the_rules_are_in_doubt() -> None:
    judge = ScriptedJudge(lambda task, output: {"label": "correct"})
    for row in check_outcomes(judged_outcome(judge, in_doubt=True), "doubted_outcomes"):
        assert row.cost.calls == int(row.verdicts[0].by == "scripted")


LISTED = Question(
    "listed",
    "Who is Ada?",
    checklist=("Ada is a painter.", "Ada was born in Paris.", "Ada won a prize."),
)


def by_item(task: str, output: Mapping[str, list[str]]) -> Any:
    said = output["response"][0]
    words = [item.rstrip(".").split()[-1] for item in output["item"]]
    return {"labels": ["consistent" if word in said else "missing" for word in words]}


def test_checklist_compares_its_items_only_with_the_answer() -> None:
    judge = ScriptedJudge(by_item)
    text = "<think>She won a prize.</think><answer>She is a painter from Paris.</answer>"
    full, unfinished, unlisted = one(
        checklist(judge),
        (response(text, LISTED), Claims()),
        (response("<think>Ada is a painter.", LISTED), Claims()),
        (response("x"), Claims()),
    )
    assert [verdict.target for verdict in full.verdicts] == ["item:0", "item:1", "item:2"]
    assert labels(full, "checklist") == ["consistent", "consistent", "missing"]
    # no call without an answer or items
    assert labels(unfinished, "checklist") == ["missing"] * 3 and unlisted == Checked()
    assert [prompt.task for prompt in judge.prompts] == ["checklist"]


def test_a_checklist_reply_of_the_wrong_length_fails_every_item() -> None:
    judge = ScriptedJudge(lambda task, output: {"labels": ["consistent"]})
    [checked] = one(checklist(judge), (response("x", LISTED), Claims()))
    errors = [verdict.error for verdict in checked.verdicts]
    assert labels(checked, "checklist") == [None] * 3
    assert all(error and error.kind == "length" for error in errors)


def test_claims_are_compared_with_the_whole_checklist() -> None:
    claims = (
        Claim(0, "Ada is a painter"),
        Claim(1, "Ada is tall", "answer"),
        Claim(2, "Hm", "think"),
    )
    [checked] = one(
        claim_checklist(ScriptedJudge(by_item)), (response("x", LISTED), Claims(((0, 1),), claims))
    )
    assert [(v.target, v.label) for v in checked.verdicts] == [
        ("claim:0", "consistent"),
        ("claim:1", "missing"),
    ]


def test_the_prompt_on_reasoning_has_only_the_reasoning() -> None:
    judge = ScriptedJudge(lambda task, output: {"label": "good"})
    text = "<think>Since A is the seat of government, B follows.</think><answer>Bologna</answer>"
    [checked] = one(reasoning(judge), (response(text, CITY), Claims()))
    assert checked.verdicts == (Verdict("reasoning", "reasoning", "good", by="scripted"),)
    [prompt] = judge.batches[0]
    assert [element.text for element in elements(prompt.text) if element.tag == "response"] == [
        "Since A is the seat of government, B follows."
    ]
    assert "Bologna" not in prompt.text


@pytest.mark.parametrize(("text", "asked"), examples("reasoning"))
def test_which_reasoning_is_sent_to_the_judge(text: str, asked: bool) -> None:
    judge = ScriptedJudge(lambda task, output: {"label": "good"})
    [checked] = one(reasoning(judge), (response(text, CITY), Claims()))
    assert checked.verdicts[0].label == ("good" if asked else "poor")
    assert checked.verdicts[0].by == ("scripted" if asked else "rule")
    assert sum(map(len, judge.batches)) == checked.cost.calls == int(asked)
