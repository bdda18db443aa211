"""The token view's data and pages: they show the row's values, and no text becomes markup."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.inspector.examples import worked_example
from workbench.inspector.token_view import as_json, payload, script, style
from workbench.inspector.token_view import page as html_page
from workbench.methods import METHODS, method_configs, reward_fns
from workbench.pipeline import rescore
from workbench.types import Claim, Event, Failure, Feedback, Question, Response, Reward, Verdict

HOSTILE = "</script><script>window.hit=1</script><!--<img src=x onerror=alert(1)>"


class Tags(HTMLParser):
    """The tags of a page with the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, [name for name, _ in attrs]))


@pytest.fixture(scope="module")
def example() -> Feedback:
    return rescore(worked_example(), reward_fns(method_configs()))


def test_rewards_by_hand(example):
    """RLFH by hand: 1·1.2 − 2·1.0 + 0.5·1.1 + ln 3.2 + ln 2.1 = 1.6551; see `worked_example`."""
    shown = payload(example)
    rlfh = shown["methods"]["rlfh"]
    assert rlfh["value"] == pytest.approx(1.65509, abs=1e-5)
    token = {
        shown["text"][start:end]: number for number, (start, end) in enumerate(shown["tokens"])
    }
    assert rlfh["tokens"][token[" 1934"]] == pytest.approx(1.2)
    assert rlfh["tokens"][token[" green"]] == pytest.approx(-2.0)
    assert rlfh["tokens"][token[" valley"]] == pytest.approx(0.55)
    assert sum(rlfh["tokens"]) == pytest.approx(rlfh["value"])
    paid = [event for event in rlfh["events"] if event["claim"] == 2]
    assert [(event["part"], event["value"], event["token"]) for event in paid] == [
        ("truth", -2.0, token[" green"])
    ]


def test_advantages_need_the_group(example):
    worse = replace(example, response=replace(example.response, id="other"))
    wrong = Reward(-1.0, {}, (Event("outcome", -1.0),))
    worse = replace(worse, rewards={**worse.rewards, "truthrl": wrong})
    group = (example, worse)
    alone, both = (
        payload(example)["methods"]["truthrl"],
        payload(example, group=group)["methods"]["truthrl"],
    )
    assert alone["advantages"] == {}
    # Totals 1 and −1: mean 0, standard deviation √2.
    assert both["advantages"]["group"] == pytest.approx([1 / (2**0.5 + 1e-4)] * 41)
    assert "gae" not in both["advantages"]  # without stored values of a critic


def test_unplaced_and_failed_claims_are_marked():
    response = Response("r", Question("q", "?"), "Some words.", offsets=((0, 11),))
    failure = Failure("verify", "unparsed", "the reply is not one JSON object", "x")
    row = Feedback(
        response,
        ((0, 11),),
        (Claim(7, "Zebras sing.", sentence=0, coverage=0.0),),
        (Verdict("claim:7", "fact", error=failure),),
    )
    shown = payload(replace(row, rewards={**row.rewards, "m": Reward(None, error=failure)}))
    assert (shown["claims"][0]["placed"], shown["claims"][0]["label"]) == (False, None)
    assert shown["claims"][0]["error"]["message"] == failure.message
    assert shown["methods"]["m"]["value"] is None
    assert shown["methods"]["m"]["error"]["kind"] == "unparsed"


def test_objections_are_notes_and_not_evidence():
    response = Response("r", Question("q", "?"), "Some words.", offsets=((0, 11),))
    for item, note in (
        (
            {"objection": "number", "text": "1932"},
            "a rule found no such number or date in the passages: 1932",
        ),
        ({"threshold": 0.55}, "close to the threshold: correct from P(true) 0.55 on"),
    ):
        evidence = ({"fact": "3", "text": "It opened in 1931."}, item)
        verdict = Verdict("claim:0", "fact", "vague", 0.1, evidence=evidence, by="local")
        [shown] = payload(Feedback(response, ((0, 11),), (Claim(0, "Some words."),), (verdict,)))[
            "claims"
        ]
        assert shown["notes"] == [note] and len(shown["evidence"]) == 1


@given(st.text(alphabet=st.characters(), max_size=60))
def test_any_text_keeps_its_positions_and_cannot_become_markup(text):
    shown = payload(Feedback(Response("r", Question("q", text), text, offsets=((0, len(text)),))))
    assert len(shown["text"]) == len(text)
    written = as_json(shown)
    assert written.isascii() and not set("<>&") & set(written)
    assert json.loads(written)["text"] == shown["text"]


def test_a_page_is_self_contained_and_forbids_the_network(example):
    hostile = replace(
        example,
        response=replace(
            example.response, question=replace(example.response.question, text=HOSTILE)
        ),
    )
    page = html_page(payload(hostile, "rlfh", [hostile]))
    assert "window.hit" in page and "<img" not in page  # as text in the data and the title
    assert page.count("<script") == 2 and page.count("</script>") == 2
    assert "default-src 'none'" in page and "unsafe" not in page
    assert "It does not see relations" in page  # shown below claims by the local verifier
    tags = Tags()
    tags.feed(page)
    assert {name for name, _ in tags.found} == {
        *"html head meta title style body div script".split()
    }
    assert not {attribute for _, attributes in tags.found for attribute in attributes} & {
        "src",
        "href",
    }


def test_the_script_never_parses_html():
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(|XMLHttp|WebSocket",
        script(),
    )
    assert "@import" not in style() and "url(" not in style()


def test_every_name_has_a_display_text(example):
    """Without it, labels, parts of rewards and methods would be shown as identifiers."""
    from workbench.types import ASPECTS

    for method, reward in example.rewards.items():
        assert {*reward.parts, *(event.part for event in reward.events)} <= set(
            METHODS[method].parts
        ), method
    for name in set().union(*ASPECTS.values()):
        assert re.search(rf"\b{name}: \[", script()), name


def test_claims_show_whole_words_and_their_evidence(example):
    claims = payload(example)["claims"]
    # the claim's capital T matches only "he"
    assert claims[1]["matched"] == "the Tarven bridge was opened in 1934"
    assert claims[1]["span"][1] == example.claims[1].end
    parts = claims[2]["evidence"][0]["parts"]
    assert claims[2]["evidence"][0]["title"] == "Tarven bridge"
    assert [piece for piece, level in parts if level == 2] == ["painted"]
    assert "".join(piece for piece, level in parts if level) == "painted red"


def test_events_replace_missing_token_rewards():
    response = Response("r", Question("q", "?"), "a b", offsets=((0, 1), (1, 3)))
    row = Feedback(response, rewards={"m": Reward(1.0, {}, (Event("outcome", 1.0),))})
    assert payload(row)["methods"]["m"]["tokens"] == [0.0, 1.0]


def test_kl_is_the_sampled_tokens_difference():
    response = Response(
        "r",
        Question("q", "?"),
        "ab",
        offsets=((0, 1), (1, 2)),
        logprobs=(-1.0, -2.0),
        ref_logprobs=(-1.5, -1.0),
    )
    assert payload(Feedback(response))["channels"]["kl"] == [0.5, -1.0]
