"""Answers with sources: the sources and support of each sentence, and errors."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scripted_judge import JudgeServer, by_checksum
from tests.helpers import ROOT, Cli, printed, read_json, write_json
from tests.helpers.bag_encoder import make_encoder
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import write
from workbench.cli.answer import _print
from workbench.experiments.answering import Answer, Sources, answer, answer_from, closed_world
from workbench.experiments.answering.reader import Reader, reader_of
from workbench.inspector.live import PAGES as PAGES_OF_THE_WORLD
from workbench.inspector.live import indexes, sources_of
from workbench.inspector.runs import Runs
from workbench.judge import Element
from workbench.methods.bench import TINY_POLICY, bench
from workbench.policies.generate import Policy
from workbench.policies.load import load_policy
from workbench.retrieval import build_index
from workbench.retrieval.index import CARD
from workbench.text.outline import STRUCTURES
from workbench.types import (
    CLAIM_LABELS,
    TWO_FACETS,
    Checks,
    Claim,
    Claims,
    Passage,
    Question,
    Response,
)
from workbench.verdicts.checks import world_checks
from workbench.world import load_world

SMALL = str(TINY_POLICY / "sft")  # the folder of the tiny policy
WORLD = load_world()
ASKED = bench("tiny").questions("test", [TWO_FACETS])[0]
FIRST, SECOND = ASKED.title.split(";")
KEYS = {"question", "structure", "outline", "sentences", "passages"}
ESCAPES = "\x1b[31mred\x1b]0;title\x07\x9b1m\x00\u202e"
HTML = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def small() -> Policy:
    return load_policy(SMALL)


def writes(policy: Policy, text: str, ends: bool = True) -> Callable[[], Policy]:
    """The policy with an engine that always generates this text; truncated if not `ends`."""
    ids = policy.tokenizer(text, add_special_tokens=False)["input_ids"] + (
        [policy.stop_ids[0]] if ends else []
    )
    return lambda: replace(
        policy, complete=lambda prompts, stop_ids, how: [(ids, ()) for _ in prompts]
    )


def answered(
    policy: Policy,
    text: str,
    sources: Sources | None = None,
    asked: str = ASKED.text,
    **options: Any,
) -> Answer:
    return answer_from(sources or closed_world(), asked, writes(policy, text, **options), SMALL)


def facts(person: str) -> tuple[str, str]:
    """A true and a false sentence about a person's occupation."""
    job = WORLD.by[person]["profession"].object
    other = next(
        fact.object for fact in WORLD.facts if fact.relation == "profession" and fact.object != job
    )
    return f"{person} is a {job}.", f"{person} is a {other}."


def number_of(answer: Answer, text: str) -> int:
    """The number of the passage that contains these words."""
    return next(
        number for number, passage in enumerate(answer.passages, start=1) if text in passage.text
    )


@pytest.mark.slow
def test_the_documented_example_is_answered_correctly_with_the_right_sources() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    example = answer(re.findall(r'workbench answer "(.*?)"  #', page)[0])
    assert len(example.sentences) == 6
    for sentence in example.sentences:
        assert sentence.label == "correct" and {*sentence.passages} <= {*sentence.found}


@pytest.mark.slow
def test_the_tiny_policy_plans_an_answer_from_the_worlds_pages(
    cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = cli(f"answer '{ASKED.text}' --policy {SMALL} --json")
    result = json.loads(out)
    assert code == 0 and set(result) >= KEYS and not err
    assert result["structure"] in STRUCTURES and FIRST in result["outline"][0]
    assert {FIRST, SECOND} <= {passage["title"] for passage in result["passages"]}
    scores = [passage["score"] for passage in result["passages"]]
    assert scores == sorted(scores, reverse=True) and len(scores) == 3
    shown = {passage["id"]: passage["text"] for passage in result["passages"]}
    assert "correct" in {sentence["label"] for sentence in result["sentences"]}
    for sentence in result["sentences"]:
        assert set(sentence["passages"]) <= shown.keys() and sentence["label"] in CLAIM_LABELS
        assert (sentence["p"] == 1.0) == (sentence["label"] == "correct")
        assert sentence["text"] in result["text"] and sentence["cited"]

    _print(result)
    out = capsys.readouterr().out
    assert re.search(rf"plan +{result['structure']}", out)
    assert all(text in out for text in ("support, judged by world", "sources", "[1]"))


def test_a_sentence_has_its_cited_sources_and_is_judged_by_all_passages(small: Policy) -> None:
    true, false = (
        facts(FIRST)[0],
        f"{SECOND} was born in the year {int(WORLD.by[SECOND]['birth_year'].object) - 1}.",
    )
    plan = f"[Structure] comparison [Outline] 1. {FIRST} [2] 2. {SECOND} [3] [Answer]"
    result = answered(
        small, f"{plan} {true} {false} I do not know. {true[:-1]} [1]. {true} [3] [2] {true}"
    )
    ids = [passage.id for passage in result.passages]
    by_point, wrong, silent, by_itself, behind, last = result.sentences
    assert (result.structure, result.outline) == ("comparison", (f"{FIRST} [2]", f"{SECOND} [3]"))
    assert (by_point.label, by_point.p, by_point.passages, by_point.cited) == (
        "correct",
        1.0,
        (ids[1],),
        (2,),
    )
    assert by_point.found == (ids[number_of(result, true.split()[-1]) - 1],)
    assert (wrong.label, wrong.p, wrong.passages, wrong.found) == ("wrong", 0.0, (ids[2],), ())
    assert (silent.label, silent.p, silent.passages, silent.error) == (None, None, (), None)
    assert (by_itself.text, by_itself.label, by_itself.passages) == (
        f"{true[:-1]} [1].",
        "correct",
        (ids[0],),
    )
    assert (behind.text, behind.cited, behind.passages) == (true, (3, 2), (ids[2], ids[1]))
    assert (last.text, last.cited) == (true, (2,))
    assert result.failed == 0 and result.judge == "world" and result.notes == ()


def test_a_citation_of_a_missing_passage_is_noted(small: Policy) -> None:
    true, _ = facts(FIRST)
    result = answered(
        small, f"[Structure] parallel [Outline] 1. {FIRST} [9] [Answer] {true} {true[:-1]} [7]. [0]"
    )
    output = [(one.cited, one.passages, one.label) for one in result.sentences]
    assert output == [((9,), (), "correct"), ((7, 0), (), "correct")]
    assert result.notes == ("[0], [7], [9] is cited, but the passages are numbered from 1 to 3",)


def test_empty_and_truncated_answers_are_noted(small: Policy) -> None:
    for text in ("", " ", "<think>"):
        result = answered(small, text)
        assert (result.sentences, result.structure, result.failed) == ((), None, 0) and result.notes
    assert answered(small, "").notes == ("the policy wrote nothing",)
    unfinished = answered(
        small, f"[Structure] comparison [Outline] 1. {FIRST} [1] {facts(FIRST)[0]}"
    )
    assert (unfinished.structure, unfinished.outline, unfinished.sentences) == (None, (), ())
    assert unfinished.text.startswith("[Structure]")
    assert "there is no answer" in unfinished.notes[-1]
    [*_, note] = answered(small, facts(FIRST)[0][:-2], ends=False).notes
    assert note.startswith("the answer was cut off after")


def test_without_passages_no_answer_is_generated(cli: Cli) -> None:
    def asked() -> Policy:
        raise AssertionError("the policy was asked")

    result = answer_from(closed_world(), "Zzz qqq?", asked, SMALL)
    assert (result.passages, result.sentences, result.structure) == ((), (), None)
    assert "nothing to answer from" in result.notes[0]
    code, out, _ = cli(f"answer 'Zzz qqq?' --policy {SMALL}")
    assert code == 0 and "nothing to answer from" in out


def reply(label: str, fails: str = "") -> Callable[[str, Sequence[Element]], str]:
    """A judge that gives all claims the same label, and fails for claims that contain `fails`."""

    def script(task: str, elements: Sequence[Element]) -> str:
        said = " ".join(element.text for element in elements if element.tag == "claim")
        if task == "verify":
            text = json.dumps({"label": label})
            return "no verdict" if fails and fails in said else text
        return by_checksum(task, elements)

    return script


@pytest.mark.slow
def test_a_judge_at_a_url_labels_sentences_and_its_failure_is_not_a_label(cli: Cli) -> None:
    command = f"answer '{ASKED.text}' --policy {SMALL} --json --judge-model m --judge"
    with JudgeServer(reply("correct")) as server:
        result = printed(cli(command, server.url))
    assert result["judge"] == "m"
    assert server.tasks["verify"] >= len(result["sentences"])
    assert {(one["label"], one["p"]) for one in result["sentences"]} == {("correct", None)}
    with JudgeServer(reply("wrong", fails=result["sentences"][-1]["text"])) as server:
        code, out, err = cli(command, server.url)
    failed = json.loads(out)
    broken = [sentence for sentence in failed["sentences"] if sentence["error"]]
    assert code == 3 and failed["failed"] == len(broken) >= 1 and "not judged" in err
    assert {(sentence["label"], sentence["p"]) for sentence in broken} == {(None, None)}
    assert {s["label"] for s in failed["sentences"] if not s["error"]} <= {"wrong"}


def test_a_prompt_has_the_passages_that_fit(small: Policy) -> None:
    reader = reader_of(SMALL, small)
    found = [Passage(f"p{n}", "", f"{FIRST} works at place number {n}. " * 2) for n in range(5)]
    question = Question("q", "Who?")

    def shown(k: int | None, *passages: Passage, room: int = 176) -> list[str]:
        one: Reader = replace(reader, room=room)
        return [passage.text for passage in one.prompt(question, passages, k).passages]

    texts = [passage.text for passage in found]
    assert shown(None, *found) == texts[:3] and shown(2, *found) == texts[:2]
    assert len(shown(5, *found, room=100)) < len(shown(5, *found, room=400)) == 5
    assert shown(5, *found, room=1) == texts[:1]
    long = Passage("long", "", " ".join(f"Sentence {n} is here." for n in range(400)))
    [cut] = shown(None, long)
    assert long.text.startswith(cut) and 0 < len(cut) < len(long.text) and cut.endswith(".")
    with raises_error("ask a shorter one"):
        reader.prompt(Question("q", "Who? " * 500), found, None)


def test_claims_outside_the_answer_are_noted(small: Policy) -> None:
    checks = world_checks(WORLD)

    def astray(responses: Sequence[Response]) -> list[Claims]:
        return [
            replace(read, claims=(*read.claims, Claim(99, facts(SECOND)[0])))
            for read in checks.extract(responses)
        ]

    result = answered(
        small,
        facts(FIRST)[0],
        replace(closed_world(), checks=lambda: Checks(astray, checks.verify)),
    )
    assert len(result.sentences) == 1
    assert "1 claims could not be matched to a sentence" in result.notes[-1]


def test_terminal_commands_in_texts_are_removed(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = f"{ESCAPES}[bold]{HTML}"
    row = {
        "text": hostile,
        "passages": ["p"],
        "label": "correct",
        "p": 1.0,
        "cited": [],
        "found": [],
        "error": hostile,
    }
    rows = [row, {**row, "label": None, "error": None}]
    result = dict.fromkeys(("question", "structure", "text", "judge"), hostile) | {
        "outline": [hostile],
        "sentences": rows,
        "passages": [{"id": "p", "title": hostile, "text": hostile, "score": 1.0}],
        "notes": [hostile],
    }
    for shown in (result, {**result, "sentences": []}):
        _print(shown)
        out = capsys.readouterr().out
        assert not {"\x1b", "\x07", "\x9b", "\x00", "\u202e"} & set(out) and "[bold]" in out


@pytest.mark.slow
def test_the_inspector_does_not_load_an_encoder_named_by_an_index(tmp_path: Path) -> None:
    encoder, root = make_encoder(tmp_path / "encoder"), tmp_path / "runs" / "indexes"
    build_index(
        "dense",
        write(tmp_path / "rows.jsonl", [{"title": "T", "text": "w1 w2."}]),
        encoder=str(encoder),
        root=root,
    )
    card = read_json(root / "dense" / CARD)
    write_json(root / "dense" / CARD, {**card, "encoder": "no/such-encoder"})
    assert sources_of(Runs(tmp_path / "runs"), "dense").search(["w1"], 1)[0][0].title == "T"
    (root / "dense" / "more").symlink_to(encoder)
    assert indexes(Runs(tmp_path / "runs")) == [PAGES_OF_THE_WORLD]
