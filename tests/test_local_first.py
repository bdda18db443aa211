"""The local verifier first, and a language model for claims it calls correct or cannot read."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.scripted_judge import JudgeServer
from tests.helpers import Cli, refusal
from tests.helpers.score_helpers import read, write
from workbench.judge import Element, endpoint
from workbench.methods.bench import bench
from workbench.scoring.api import score
from workbench.types import Checked, Claim, Claims, Feedback, Passage, Question, Response
from workbench.verdicts.checks import local_first_checks
from workbench.verdicts.llm_judge import LLMJudge, named_judge

PAGE = "Paraguay borders Argentina, Brazil and Bolivia. Its capital is Asunción."
TRUE, RELATION = "The capital of Paraguay is Asunción.", "Paraguay is in Argentina."
NUMBER = "Paraguay has 87 provinces."
QUESTION = Question("q", "Tell me about Paraguay.", passages=(Passage("p", "Paraguay", PAGE),))


def label(task: str, found: Sequence[Element]) -> str:
    """A judge that rejects only `RELATION`."""
    [claim] = [one.text for one in found if one.tag == "claim"]
    return json.dumps({"label": "wrong" if claim == RELATION else "correct"})


def asked(server: JudgeServer) -> list[str]:
    return [prompt.split("<claim>")[1].split("</claim>")[0] for prompt in server.asked]


def checked(server: JudgeServer, *texts: str, question: Question = QUESTION) -> Checked:
    claims = Claims((), tuple(Claim(number, text) for number, text in enumerate(texts)))
    check = local_first_checks(endpoint(server.url, "m")).verify["fact"]
    [found] = check([(Response("r", question, " ".join(texts)), claims)])
    return found


def test_only_claims_that_the_local_verifier_calls_correct_are_sent() -> None:
    with JudgeServer(label) as server:
        found = checked(server, TRUE, RELATION, NUMBER)
        assert sorted(asked(server)) == sorted([TRUE, RELATION])
    assert [(one.target, one.label, one.by) for one in found.verdicts] == [
        ("claim:0", "correct", "m"),
        ("claim:1", "wrong", "m"),
        ("claim:2", "wrong", "local"),
    ]
    # rated by the local judge's rules
    assert all(one.informativeness for one in found.verdicts)
    assert found.cost.calls == 2


def test_a_failure_of_the_model_is_not_replaced_by_the_local_verdict() -> None:
    with JudgeServer(lambda *_: "Yes, it is correct.") as server:
        failed, decided = checked(server, TRUE, NUMBER).verdicts
    assert failed.label is None and failed.p is None
    assert failed.error and failed.error.stage == "parse"
    assert decided.label == "wrong" and decided.error is None


def test_claims_without_evidence_fail_once_and_are_not_sent() -> None:
    with JudgeServer(label) as server:
        found = checked(server, TRUE, question=Question("q", "Where?"))
        assert server.requests == found.cost.calls == 0
    [failed] = found.verdicts
    assert failed.error and failed.error.stage == "retrieve"


FRENCH, RUSSIAN = "La capitale du Paraguay est Asunción.", "Столица Парагвая — Асунсьон."


@pytest.mark.parametrize("asked_in", ["Tell me about Paraguay.", "Расскажи о Парагвае."])
def test_claims_in_another_language_or_script_are_sent(asked_in: str) -> None:
    """A claim that the local verifier calls wrong is not sent, whatever the others are."""
    question = replace(QUESTION, text=asked_in)
    with JudgeServer(label) as server, warnings.catch_warnings():
        warnings.simplefilter("error")  # no claim remains unread, so there is nothing to warn of
        found = checked(server, FRENCH, NUMBER, RUSSIAN, question=question)
        assert sorted(asked(server)) == sorted([FRENCH, RUSSIAN])
    assert [(one.label, one.by, one.error) for one in found.verdicts] == [
        ("correct", "m", None),
        ("wrong", "local", None),
        ("correct", "m", None),
    ]
    # rated like other claims: not as useless
    assert all((one.informativeness or 0) > 1 for one in found.verdicts)


def test_a_failure_of_the_model_on_a_foreign_claim_is_not_vague() -> None:
    with JudgeServer(lambda *_: "Oui.") as server:
        [failed] = checked(server, FRENCH).verdicts
    assert failed.label is None and failed.error and failed.error.stage == "parse"


def test_both_judges_are_part_of_a_runs_identity() -> None:
    both = named_judge("local+http://127.0.0.1:9/v1", "m")
    assert isinstance(both, LLMJudge) and both.first and both.url == "http://127.0.0.1:9/v1"
    alone = named_judge("http://127.0.0.1:9/v1", "m")
    assert alone and both.identity() == alone.identity() | {"first": both.first.identity()}
    named = named_judge("local+http://127.0.0.1:9", "m", verifier="folder")
    assert isinstance(named, LLMJudge) and named.first and named.first.verifier == "folder"
    assert bench("small").with_judge(both).llm_judge == both  # its replies are cached


def test_one_answer_is_scored_by_both() -> None:
    with JudgeServer(label) as server:
        row = score(
            RELATION,
            QUESTION.text,
            method="rlfh",
            judge=f"local+{server.url}",
            judge_model="m",
            title="Paraguay",
            passages=[PAGE],
        )
        assert asked(server) == [RELATION]
    assert isinstance(row, Feedback)
    assert [one.label for one in row.verdicts if one.aspect == "fact"] == ["wrong"]


def test_a_file_is_scored_by_both_and_resumes_only_with_the_same(tmp_path: Path, cli: Cli) -> None:
    row = {"id": "r", "question": QUESTION.text, "title": "Paraguay", "passages": [PAGE]}
    said = {"response": f"{TRUE} {RELATION} {NUMBER}"}
    source, out = write(tmp_path / "in.jsonl", [row | said]), tmp_path / "rows" / "rollouts.jsonl"
    command = ["score", "--in", source, "--out", out, "--method", "rlfh", "--judge-model", "m"]
    with JudgeServer(label) as server:
        code, _, err = cli(*command, "--judge", f"local+{server.url}", "--json")
        assert code == 0, err
        assert sorted(asked(server)) == sorted([TRUE, RELATION])
        [stored] = read(out)
        labels = [one["label"] for one in stored["verdicts"] if one["aspect"] == "fact"]
        assert labels == ["correct", "wrong", "wrong"]
        assert "--overwrite" in refusal(cli(*command, "--judge", server.url))
        assert server.requests == 2
        code, _, err = cli(*command, "--judge", f"local+{server.url}", "--dry-run", "--overwrite")
        assert code == 0 and server.requests == 2, err


@pytest.mark.parametrize("url", ["local+", "local+world", "local+ftp://host"])
def test_local_plus_requires_a_url(tmp_path: Path, cli: Cli, url: str) -> None:
    source = write(tmp_path / "answers.jsonl", [{"id": "r", "question": "Q?", "response": "R."}])
    out = tmp_path / "rows.jsonl"
    err = refusal(cli(f"score --in {source} --out {out} --judge {url} --judge-model m"))
    assert "no judge" in err and "http://" in err
