"""Extraction by a judge: one call per response, strict parsing, and only spans in the text."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import examples
from tests.helpers.scripted import ScriptedJudge
from workbench.claims import judged, single_pass
from workbench.text import sentences
from workbench.types import (
    Claim,
    Claims,
    Failure,
    JsonObject,
    Passage,
    Question,
    Response,
    WorkbenchError,
)
from workbench.verdicts import facts


def answering(script: Callable[[str], Any]) -> ScriptedJudge:
    """A judge that replies with `script(response)`: a list of sentences, a raw text or a
    failure.
    """

    def answer(task: str, inputs: Mapping[str, list[str]]) -> Any:
        said = script(inputs["response"][0])
        return {"sentences": said} if isinstance(said, list) else said

    return ScriptedJudge(answer)


def response(text: str, question: str = "Who is Toma Ardel?", **more: Any) -> Response:
    return Response("r", Question("q", question, **more), text)


def quoted(text: str, claims: Sequence[Any]) -> JsonObject:
    """A sentence of a judge's reply, with its claims."""
    return {"text": text, "claims": claims}


def extract(text: str, said: Any) -> Claims:
    return judged(answering(lambda _: said))([response(text)])[0]


def placed(found: Claims, text: str) -> list[tuple[str, int | None, str | None]]:
    return [(c.text, c.sentence, text[slice(*c.span)] if c.span else None) for c in found.claims]


TEXT = (
    "<think>Toma was a painter.</think><answer>He was born in Vetra and died in Lomar. He was"
    " rich.</answer>"
)


def test_claims_are_attached_to_the_sentences_that_are_quoted() -> None:
    found = extract(
        TEXT,
        [
            quoted("Toma was a painter.", ["Toma was a painter."]),
            quoted(
                "He was born in Vetra and died in Lomar.",
                ["He was born in Vetra.", "He died in Lomar."],
            ),
            quoted("He was rich.", []),
        ],
    )
    assert placed(found, TEXT) == [
        ("Toma was a painter.", 0, "Toma was a painter"),
        ("He was born in Vetra.", 1, "He was born in Vetra"),
        ("He died in Lomar.", 1, "He was born in Vetra and died in Lomar"),
    ]
    assert [claim.section for claim in found.claims] == ["think", "answer", "answer"]
    assert [claim.id for claim in found.claims] == [0, 1, 2]
    assert found.sentences == sentences(TEXT) and found.error is None and found.cost.calls == 1


def test_a_batch_is_one_call_without_the_responses_that_state_nothing() -> None:
    texts = ["Toma was a painter.", "I don't know.", "", "Who is that?", "Dana was a baker."]
    judge = answering(lambda text: [quoted(text, [text])])
    found = judged(judge)([response(text) for text in texts])
    assert [len(batch) for batch in judge.batches] == [2]
    assert [[claim.text for claim in one.claims] for one in found] == [
        [texts[0]],
        [],
        [],
        [],
        [texts[4]],
    ]
    assert [one.cost.calls for one in found] == [1, 0, 0, 0, 1]
    assert judged(judge)([]) == [] and len(judge.batches) == 1


@pytest.mark.parametrize(("text", "quotes", "sentences"), examples("quotations"))
def test_a_claim_belongs_to_the_sentence_of_its_quotation(
    text: str, quotes: dict[str, list[str]], sentences: list[int | None]
) -> None:
    found = extract(text, [quoted(quote, claims) for quote, claims in quotes.items()])
    assert [claim.sentence for claim in found.claims] == sentences
    for claim in found.claims:
        if claim.sentence is None:
            assert (claim.span, claim.end, claim.coverage) == (None, None, 0.0)


def test_a_name_does_not_choose_among_the_sentences_of_a_quotation() -> None:
    text = "Ana Bo was born in Oslo. She died in Oslo."
    claims = ["Ana Bo died in Oslo.", "Ana Bo was born in Oslo."]
    [found] = judged(answering(lambda _: [quoted(text, claims)]))([response(text, title="Ana Bo")])
    assert [claim.sentence for claim in found.claims] == [1, 0]


def test_repeated_sentences_are_matched_in_order() -> None:
    said = [quoted("He won.", ["He won."])] * 2
    assert [one.sentence for one in extract("He won. Dana lost. He won.", said).claims] == [0, 2]


def test_questions_refusals_and_plans_never_give_claims() -> None:
    text = (
        "[Outline] Toma was rich. [Answer] I don't know who he is. Was he a painter? Toma was a"
        " baker."
    )
    quotes = ["Toma was rich.", "I don't know who he is.", "Was he a painter?", "Toma was a baker."]
    found = extract(text, [quoted(quote, [quote]) for quote in quotes])
    assert [claim.text for claim in found.claims] == ["Toma was a baker."]


@pytest.mark.parametrize(
    "broken", [OSError("gone"), RuntimeError("gone"), ValueError("gone"), UnicodeError("gone")]
)
def test_a_failed_search_is_a_failure_in_both_modes(broken: Exception) -> None:
    judge, facts_judge = answering(lambda _: []), answering(lambda _: [])

    def search(*_: Any, **__: Any) -> Any:
        raise broken

    given, refusal = response("Toma was a painter."), response("I don't know.")
    [found, nothing] = single_pass(judge, search)([given, refusal])
    assert found.error == Failure("retrieve", "search", "the search failed: gone")
    assert nothing.error is None and not judge.prompts
    claims = Claims(claims=(Claim(0, "Toma was a painter."),))
    [checked] = facts(facts_judge, search, informativeness=False)([(given, claims)])
    assert checked.verdicts[0].error == found.error and not facts_judge.prompts


def test_a_judges_own_error_is_not_reported_as_a_failed_search() -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("gone")

    def mistaken(*_: Any, **__: Any) -> Any:
        raise WorkbenchError("no such index: build it")

    def nothing(*_: Any, **__: Any) -> list[list[Passage]]:
        return [[]]

    with pytest.raises(OSError, match="gone"):
        single_pass(refuse, nothing)([response("Toma was a painter.")])
    with pytest.raises(WorkbenchError, match="build it"):
        single_pass(refuse, mistaken)([response("Toma was a painter.")])


def test_a_question_whose_page_is_missing_is_not_judged_without_evidence() -> None:
    """Without a title, an empty result is no failure. Blank passages count as none."""
    judge = answering(lambda _: [])
    searched: list[tuple[list[str], list[str | None]]] = []

    def search(queries: Any, k: int, titles: Any = None) -> list[list[Passage]]:
        searched.append((queries, titles))
        return [[] for _ in queries]

    text = "Toma was a painter."
    rows = [
        response(text, title="Toma Ardel"),
        response(text),
        response(text, title="Toma", passages=(Passage("p", "Toma", "He paints."),)),
        response(text, title="Toma", passages=(Passage("p", "Toma", " "),)),
        response("I don't know.", title="Toma"),
    ]
    found = single_pass(judge, search)(rows)
    assert searched == [([text] * 3, ["Toma Ardel", None, "Toma"])]
    assert [one.error and (one.error.stage, one.error.kind) for one in found] == [
        ("retrieve", "no_passages"),
        None,
        None,
        ("retrieve", "no_passages"),
        None,
    ]
    assert "no page has the title 'Toma Ardel'" in (found[0].error or Failure("", "", "")).message
    assert ["He paints." in prompt.text for prompt in judge.prompts] == [False, True]


def test_single_pass_returns_claims_with_their_verdicts() -> None:
    text = "Who? Toma was a painter. He may be rich."
    rated = lambda text, label, rating: {  # noqa: E731
        "text": text,
        "label": label,
        "informativeness": rating,
    }
    said = [
        quoted("Who?", [rated("Who?", "wrong", 1)]),
        quoted("Toma was a painter.", [rated("Toma was a painter.", "correct", 5)]),
        quoted("Not there at all, so sorry.", [rated("Not there.", "wrong", 3)]),
        quoted("He may be rich.", [rated("Toma is rich.", "Hedged_Wrong", 2)]),
    ]
    judge = answering(lambda _: said)
    (found,) = single_pass(judge)([response(text, passages=(Passage("p", "Toma", "He paints."),))])
    assert [(v.target, v.aspect, v.label, v.informativeness) for v in found.verdicts] == [
        ("claim:0", "fact", "correct", 5),
        ("claim:1", "fact", "wrong", 3),
        ("claim:2", "fact", "hedged_wrong", 2),
    ]
    assert [(claim.id, claim.sentence) for claim in found.claims] == [(0, 1), (1, None), (2, 2)]
    [prompt] = judge.prompts
    assert prompt.task == "single_pass" and "He paints." in prompt.text


def test_a_failed_call_or_an_unreadable_reply_fails_only_its_own_row() -> None:
    raw = "x" * 50_000
    said = {
        "A was.": [quoted("A was.", ["A was."])],
        "B was.": Failure("judge", "timeout", "no reply in 30 s"),
        "C was.": "Sorry, here you are: {}",
        "D was.": '{"sentences": [{"text": "D was."}]}',
        "E was.": raw,
    }
    found = judged(answering(said.__getitem__))([response(text) for text in said])
    assert [one.error and one.error.kind for one in found][:2] == [None, "timeout"]
    assert all(one.error and one.claims == () and one.sentences for one in found[1:])
    assert all(one.error and len(one.error.raw) < 3000 for one in found[1:])
    assert found[2].error
    assert found[2].error.raw.startswith("Sorry")
    assert all(one.cost.calls == 1 for one in found)


QUOTES = st.text(alphabet="ab. ?", min_size=1, max_size=12).filter(
    lambda text: any(map(str.isalnum, text))
)


@settings(max_examples=60)
@given(
    st.text(alphabet="ab .?\n", max_size=40),
    st.lists(st.tuples(QUOTES, st.lists(QUOTES, max_size=3)), max_size=4),
)
def test_any_reply_gives_claims_within_their_sentences(
    text: str, said: list[tuple[str, list[str]]]
) -> None:
    found = extract(text, [quoted(quote, claims) for quote, claims in said])
    assert found.sentences == sentences(text)
    for number, claim in enumerate(found.claims):
        assert claim.id == number and (claim.span is None) == (claim.end is None)
        if claim.span:
            assert claim.sentence is not None and claim.end is not None
            begin, end = found.sentences[claim.sentence]
            assert begin <= claim.span[0] < claim.span[1] == claim.end <= end
