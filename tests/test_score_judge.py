"""Scoring with a judge behind a server: requests, estimates, cache, evidence and failures."""

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from benchmarks.scripted_judge import JudgeServer
from tests.helpers import examples, without
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import options as judged_options
from tests.helpers.score_helpers import read, reply, responses, write
from workbench.scoring import Options, estimate_file, score_file
from workbench.scoring.api import score
from workbench.scoring.run import prepare
from workbench.types import Feedback, JsonObject
from workbench.verdicts.llm_judge import LLMJudge, named_judge


def options(folder: Path, server: JudgeServer, rows: list[JsonObject], **more: Any) -> Options:
    return judged_options(folder, rows, judge=server.url, model="m", **more)


def test_all_methods_on_one_claim_record(tmp_path: Path) -> None:
    with JudgeServer(reply=reply) as server:
        summary = score_file(options(tmp_path, server, responses(10)))
        assert (summary["status"], summary["failed"], summary["claims"]) == ("done", 0, 40)
        # One extraction, rating, outcome and checklist for each response, one verification for each
        # of four claims.
        assert server.tasks == {
            "extract": 10,
            "verify": 40,
            "inform": 10,
            "outcome": 10,
            "checklist": 10,
        }
        assert summary["cost"]["calls"] == server.requests == 80
        assert {name: cell["scored"] for name, cell in summary["rewards"].items()} == dict.fromkeys(
            summary["rewards"], 10
        )
    assert len(summary["rewards"]) == 6


MIXED = examples("mixed_rows")


@pytest.mark.parametrize("method", ["all", "none", "klcf"])
def test_the_estimate_counts_the_requests_for_any_row_and_method(
    tmp_path: Path, method: str
) -> None:
    with JudgeServer(reply=reply) as server:
        chosen = options(tmp_path, server, [*responses(3), *MIXED], method=method, max_failed=1.0)
        expected = estimate_file(chosen)
        assert server.requests == 0
        summary = score_file(chosen)
        assert expected["by_task"] == dict(server.tasks)
        assert expected["calls"] == summary["cost"]["calls"] == server.requests
        assert (
            (expected["rows"], expected["malformed"])
            == (summary["rows"], summary["malformed"])
            == (8, 1)
        )


def without_passages(count: int) -> list[JsonObject]:
    return [without(row, "passages") for row in responses(count, thinking=False)]


def test_evidence_comes_from_a_file_and_is_stored_once(tmp_path: Path) -> None:
    rows = without_passages(4)
    texts = [
        {"id": f"p{n}", "title": "T", "text": f"Fact {n} of part 0 is known. Nothing more."}
        for n in range(4)
    ]
    with JudgeServer(reply=reply) as server:
        pages = write(tmp_path / "passages.jsonl", texts)
        chosen = options(tmp_path, server, rows, method="rlfh", passages=pages)
        score_file(chosen)
    stored = {row["id"]: row for row in read(tmp_path / "out" / "passages.jsonl")}
    cited = [
        e for row in read(chosen.out) for verdict in row["verdicts"] for e in verdict["evidence"]
    ]
    assert cited and {e["passage"] for e in cited} <= set(stored) <= {f"p{n}" for n in range(4)}
    best = next(v for v in read(chosen.out)[2]["verdicts"] if v["target"] == "claim:0")["evidence"][
        0
    ]
    assert best["passage"] == "p2"
    assert stored["p2"]["text"][slice(*best["span"])] == "Fact 2 of part 0 is known."


@pytest.mark.slow
def test_chunks_overlap_within_the_limit_of_calls_without_repeated_prompts(
    tmp_path: Path,
) -> None:
    rows = responses(300, claims=1, thinking=False)
    # equal claims and evidence: concurrent chunks share prompts
    for row in rows:
        del row["answers"]  # part of the evidence
        row |= {
            "question": "What?",
            "response": "<answer>Fact of all is 1.</answer>",
            "passages": ["The same."],
        }
    with JudgeServer(reply=reply, delay=0.005) as server:
        summary = score_file(options(tmp_path, server, rows, method="rlfh", concurrency=8))
        assert (summary["rows"], summary["failed"]) == (300, 0)
        assert server.requests == len(server.asked) == 3
        how: JsonObject = {"method": "rlfh", "concurrency": 8, "overwrite": True}
        score_file(options(tmp_path, server, responses(200, claims=1), **how))
        assert server.requests == len(server.asked)
        assert 5 <= server.peak <= 8


def test_the_cache_is_in_the_output_folder_or_at_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with JudgeServer(reply=reply) as server:
        summary = score_file(options(tmp_path, server, responses(2)))
        assert summary["cache"] == str(tmp_path / "out" / "f.judge.sqlite")
        # closed, without a journal file
        assert [str(path) for path in tmp_path.glob("**/*.sqlite*")] == [summary["cache"]]
        wanted = tmp_path / "kept.sqlite"
        chosen = options(tmp_path, server, responses(2), cache=wanted)
        assert score_file(replace(chosen, out=tmp_path / "g" / "f.jsonl"))["cache"] == str(wanted)
        assert wanted.exists()
        assert not list((tmp_path / "g").glob("*.sqlite*"))


def test_scoring_and_training_share_a_cache(tmp_path: Path) -> None:
    """Replies are found again if the server moves."""
    rows, kept = responses(2), tmp_path / "kept.sqlite"
    with JudgeServer(reply=reply) as first, JudgeServer(reply=reply) as moved:
        chosen = options(tmp_path, first, rows, method="rlfh", cache=kept)
        score_file(chosen)
        assert first.requests > 0
        again = replace(chosen, judge=moved.url, out=tmp_path / "g" / "f.jsonl")
        assert score_file(again)["cost"]["calls"] == 0
        judge = named_judge(moved.url, "m", cache=kept)
        assert isinstance(judge, LLMJudge)
        for row in rows:
            about = {name: row[name] for name in ("answers", "title", "passages") if name in row}
            given = score(
                row["response"], row["question"], method="rlfh", judge=judge.checks(), **about
            )
            assert isinstance(given, Feedback) and given.verdicts
        assert moved.requests == 0


@pytest.mark.parametrize(
    ("url", "wanted", "seconds"),
    [
        ("http://127.0.0.1:9", None, 600),
        ("local+http://localhost:9", None, 600),
        ("https://a", None, 60),
        ("http://127.0.0.1:9", 7.0, 7),
    ],
)
def test_the_limits_of_requests_are_those_of_training_or_of_the_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, wanted: float | None, seconds: float
) -> None:
    monkeypatch.setenv("OWN_KEY", "a-key-of-this-test")
    chosen = judged_options(
        tmp_path,
        responses(1),
        judge=url,
        model="m",
        timeout=wanted,
        concurrency=8,
        api_key_env="OWN_KEY",
    )
    assert estimate_file(replace(chosen, api_key_env="NOT_SET"))["calls"]  # without a key
    with ExitStack() as closing:
        judge = prepare(chosen, closing).judge
        client = judge.send.__self__  # type: ignore[union-attr]
        assert (client.timeout, client.concurrency) == (seconds, 8)
        assert client.server.headers == {"Authorization": "Bearer a-key-of-this-test"}


def test_different_passages_with_the_same_id_are_all_stored(tmp_path: Path) -> None:
    rows = without_passages(3)
    same = [{"id": "p", "text": f"Fact {n} of part 0 is known."} for n in range(3)]
    with JudgeServer(reply=reply) as server:
        chosen = options(
            tmp_path, server, rows, method="rlfh", passages=write(tmp_path / "p.jsonl", same)
        )
        score_file(chosen)
        write(tmp_path / "p.jsonl", [{**one, "text": f"{one['text']} Really."} for one in same])
        later = replace(chosen, out=chosen.out.with_name("g.jsonl"))
        score_file(later)  # other passages with the same ids, in the same folder
    stored = {row["id"]: row["text"] for row in read(chosen.out.with_name("passages.jsonl"))}
    assert len(stored) == 6
    for out, ending in ((chosen.out, ""), (later.out, " Really.")):
        for number, row in enumerate(read(out)):
            cited = [stored[row["verdicts"][0]["evidence"][place]["passage"]] for place in range(3)]
            assert cited[0] == f"Fact {number} of part 0 is known.{ending}" and len(set(cited)) == 3


@pytest.mark.parametrize("names", [("--model", "--cache"), ("--judge-model", "--judge-cache")])
def test_options_of_a_judge_and_its_failures_on_the_command_line(
    tmp_path: Path, cli: Any, names: tuple[str, str]
) -> None:
    text = '{"error": "no\\u001b[2J\\u009b such effort"}'
    rows = [{**row, "id": f"user/{n}"} for n, row in enumerate(responses(2))]
    files = ("--in", write(tmp_path / "in.jsonl", rows), "--out", tmp_path / "o" / "f.jsonl")
    fields = ("reasoning_effort=low", 'stop=["x"]', "temperature=null")
    options = [part for field in fields for part in ("--judge-option", field)]
    with JudgeServer(lambda *_: web.Response(status=400, text=text), keep_bodies=True) as server:
        given = ("--judge", server.url, names[0], "m", names[1], tmp_path / "c", *options)
        code, out, err = cli("score", *files, *given, "--judge-tokens", "77")
        sent = without(server.bodies[0], "messages")
    assert sent == {"reasoning_effort": "low", "stop": ["x"], "max_tokens": 77, "model": "m"}
    assert code == 4 and "row 'user/0': the server answered 400 (no [2J such effort)" in err
    assert not set("\x1b\x9b") & set(out + err)


def test_empty_replies_stop_a_scoring_after_few_calls(tmp_path: Path) -> None:
    empty = '{"choices": [{"message": {"content": null}}]}'
    with JudgeServer(reply=lambda *_: web.Response(text=empty)) as server:
        summary = score_file(options(tmp_path, server, responses(300), method="rlfh"))
        assert summary["status"] == "too_many_failures" and server.requests <= 150


def test_single_pass_sends_one_request_per_response(tmp_path: Path) -> None:
    def once(task: str, found: Any) -> str:
        assert task == "single_pass"
        claim = {"text": "Fact", "label": "hedged_wrong", "informativeness": 3}
        return json.dumps(
            {"sentences": [{"text": found[-1].text.split(">")[1].split("<")[0], "claims": [claim]}]}
        )

    rows = [
        {"id": n, "question": "Q?", "response": f"<answer>Fact {n} is so.</answer>"}
        for n in range(3)
    ]
    with JudgeServer(reply=once) as server:
        chosen = options(tmp_path, server, rows, method="rlfh", overrides=["rlfh.mode=single_pass"])
        summary = score_file(chosen)
        assert server.requests == 3
    assert (summary["failed"], summary["labels"]) == (0, {"hedged_wrong": 3})


def test_another_process_may_not_write_the_same_output(tmp_path: Path) -> None:
    from workbench.runs.folder import lock

    with JudgeServer(reply=reply) as server:
        chosen = options(tmp_path, server, responses(1))
        with lock(chosen.out.parent), raises_error("another process"):
            score_file(chosen)
        assert server.requests == 0


@pytest.mark.slow
def test_evidence_comes_from_a_store(tmp_path: Path) -> None:
    from workbench.retrieval import build_index

    texts = [{"title": f"Page {n}", "text": f"Fact {n} of part 0 is known."} for n in range(3)]
    build_index(str(tmp_path / "index"), str(write(tmp_path / "pages.jsonl", texts)))
    rows = without_passages(3)
    rows[0] |= {"title": "Page 0"}
    rows[1] |= {"title": "No such page"}
    with JudgeServer(reply=reply) as server:
        chosen = options(
            tmp_path, server, rows, method="rlfh", store=str(tmp_path / "index"), max_failed=1.0
        )
        summary = score_file(chosen)
    first, second, third = read(chosen.out)
    assert (summary["failed"], summary["failures"]) == (1, {"retrieve: no_passages": 4})
    assert {len(verdict["evidence"]) for verdict in first["verdicts"]} == {1}
    assert {verdict["error"]["stage"] for verdict in second["verdicts"]} == {"retrieve"}
    assert second["rewards"]["rlfh"]["value"] is None
    assert third["rewards"]["rlfh"]["value"] is not None


def test_no_control_character_of_an_error_reaches_the_terminal(cli: Any) -> None:
    for name in ("\x1b[2J", "\x9b2J", "\u202e"):
        code, out, err = cli("evaluate", f"no-such-{name}-model", "--split", "test")
        assert code == 2 and "no-such-" in err and name[0] not in out + err
