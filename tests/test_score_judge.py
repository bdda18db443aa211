"""Scoring with a judge behind a server: what is asked, what survives its faults, and kills at
any moment.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.score_helpers import read, reply, responses, write
from workbench.cli import main
from workbench.judge import Element, endpoint
from workbench.judge.scripted import JudgeServer
from workbench.score import Options, estimate_file, score_file
from workbench.types import WorkbenchError

ROOT = Path(__file__).resolve().parent.parent
Verdicts = dict[tuple[str, str, str], dict[str, Any]]  # by row, target and aspect


def options(folder: Path, server: JudgeServer, rows: list[dict[str, Any]], **more: Any) -> Options:
    return Options(
        write(folder / "in.jsonl", rows),
        folder / "out" / "f.jsonl",
        judge=server.url,
        model="m",
        **more,
    )


def verdicts(path: Path) -> Verdicts:
    return {
        (row["id"], one["target"], one["aspect"]): one
        for row in read(path)
        for one in row["verdicts"]
    }


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
    assert len(summary["rewards"]) == 5


def test_outcomes_that_rules_decide_are_not_asked_about(tmp_path: Path) -> None:
    said = ["Paris", "Rome", "It is Paris, France.", "Paris or Rome"]
    rows = [
        {"id": str(i), "question": "Where?", "response": text, "answers": ["Paris"]}
        for i, text in enumerate(said)
    ]
    with JudgeServer(reply=reply) as server:
        summary = score_file(options(tmp_path, server, rows, method="truthrl", in_doubt=True))
        assert server.tasks == {"outcome": 1} and summary["outcomes_judged"] == 25.0
        with pytest.raises(WorkbenchError, match="outcomes"):
            score_file(options(tmp_path, server, rows, method="truthrl"))
        summary = score_file(options(tmp_path, server, rows, method="truthrl", overwrite=True))
        assert summary["outcomes_judged"] == 100.0
    with pytest.raises(WorkbenchError, match="--judge-in-doubt"):
        score_file(Options(tmp_path / "in.jsonl", tmp_path / "f.jsonl", in_doubt=True))


def test_a_second_run_of_the_same_work_makes_no_calls(tmp_path: Path) -> None:
    with JudgeServer(reply=reply) as server:
        chosen = options(tmp_path, server, responses(5), method="rlfh")
        score_file(chosen)
        before, asked = read(chosen.out), server.requests
        again = score_file(replace(chosen, overwrite=True))
        assert server.requests == asked
        assert (again["cost"]["calls"], again["cost"]["cached"]) == (0, asked)
        assert [row["verdicts"] for row in read(chosen.out)] == [row["verdicts"] for row in before]
        other = replace(
            chosen, out=tmp_path / "other" / "g.jsonl", cache=tmp_path / "out" / "f.judge.sqlite"
        )
        assert score_file(other)["cost"]["calls"] == 0
        assert server.requests == asked


def test_overwriting_asks_another_judge_and_tells_what_is_not_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def other(task: str, found: Sequence[Element]) -> str:
        return '{"label": "wrong"}' if task == "verify" else reply(task, found)

    with JudgeServer(reply=reply) as server, JudgeServer(reply=other) as second:
        chosen = options(tmp_path, server, responses(2), method="rlfh")
        score_file(chosen)
        anew = replace(chosen, judge=second.url, overwrite=True)
        score_file(anew)
        assert second.requests == server.requests
        facts = [
            one["label"]
            for row in read(chosen.out)
            for one in row["verdicts"]
            if one["aspect"] == "fact"
        ]
        assert set(facts) == {"wrong"}
        capsys.readouterr()
        score_file(anew)
        assert second.requests == server.requests
        told = capsys.readouterr().err
        assert (
            f"{tmp_path}/out/f.judge.sqlite" in told
            and second.url in told
            and "delete it to ask anew" in told
        )


def test_the_estimate_is_what_is_then_asked(tmp_path: Path) -> None:
    with JudgeServer(reply=reply) as server:
        chosen = options(tmp_path, server, responses(8))
        expected = estimate_file(chosen)
        assert server.requests == 0
        assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]
        summary = score_file(chosen)
        assert expected["by_task"] == dict(server.tasks)
        assert expected["calls"] == summary["cost"]["calls"]


MIXED: list[dict[str, Any]] = [
    {
        "id": "refuses",
        "question": "Why?",
        "response": "I do not know.",
        "answers": ["x"],
        "passages": ["x"],
        "checklist": ["y"],
    },
    {"id": "empty", "question": "Why?", "response": "", "answers": ["x"], "passages": ["x"]},
    {"id": "r0", "question": "twice the same id", "response": "This is refused."},
    {**responses(1)[0], "id": "another id"},
    {
        "id": "other",
        "question": "Ké?",
        "response": "<answer>Straße 你好 is 5.</answer>",
        "passages": ["日本"],
        "answers": ["5"],
    },
    {
        "id": "replay",
        "response": "Ada.",
        "claims": [{"text": "Ada", "label": "correct", "informativeness": 5}],
    },
]


@pytest.mark.parametrize("method", ["all", "none", "klcf"])
def test_the_estimate_counts_what_is_asked_of_any_row_for_any_method(
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


def test_evidence_comes_from_a_file_and_is_stored_once(tmp_path: Path) -> None:
    rows = [
        {key: value for key, value in row.items() if key != "passages"}
        for row in responses(4, thinking=False)
    ]
    texts = [
        {"id": f"p{n}", "title": "T", "text": f"Fact {n} of part 0 is known. Nothing more."}
        for n in range(4)
    ]
    with JudgeServer(reply=reply) as server:
        chosen = options(
            tmp_path,
            server,
            rows,
            method="rlfh",
            passages=write(tmp_path / "passages.jsonl", texts),
        )
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
def test_a_long_file_of_passages_is_indexed_beside_the_output(tmp_path: Path) -> None:
    rows = [
        {key: value for key, value in row.items() if key != "passages"}
        for row in responses(2, thinking=False)
    ]
    texts = [{"title": f"T{n}", "text": f"Fact {n} of part 0 is known."} for n in range(600)]
    with JudgeServer(reply=reply) as server:
        chosen = options(
            tmp_path,
            server,
            rows,
            method="rlfh",
            passages=write(tmp_path / "passages.jsonl", texts),
        )
        assert score_file(chosen)["failed"] == 0
    stored = {row["id"]: row["text"] for row in read(tmp_path / "out" / "passages.jsonl")}
    first = read(chosen.out)[1]["verdicts"][0]["evidence"][0]
    assert stored[first["passage"]] == "Fact 1 of part 0 is known."


def test_chunks_overlap_within_the_bound_of_calls_and_no_prompt_is_asked_twice(
    tmp_path: Path,
) -> None:
    rows = responses(300, claims=1, thinking=False)
    # the same claim and evidence everywhere: chunks that run at the same time share prompts
    for row in rows:
        row |= {
            "question": "What?",
            "response": "<answer>Fact of all is 1.</answer>",
            "passages": ["The same."],
        }
    with JudgeServer(reply=reply, delay=0.005) as server:
        summary = score_file(options(tmp_path, server, rows, method="rlfh", concurrency=8))
        assert (summary["rows"], summary["failed"]) == (300, 0)
        assert server.requests == len(server.asked) == 3
        score_file(
            options(
                tmp_path,
                server,
                responses(200, claims=1),
                method="rlfh",
                concurrency=8,
                overwrite=True,
            )
        )
        assert server.requests == len(server.asked)
        assert 5 <= server.peak <= 8


def compare(clean: Verdicts, faulty: Verdicts, extracted: set[str]) -> tuple[int, int]:
    """Every verdict equals the clean one or has an error; returns how many do each. Nothing is
    lost.
    """
    same = failed = 0
    for key, verdict in faulty.items():
        if verdict["error"] is not None:
            assert verdict["label"] is None and verdict["error"]["message"]
            failed += 1
        else:
            assert verdict["label"] == clean[key]["label"]
            assert verdict["informativeness"] in (clean[key]["informativeness"], None)
            same += 1
    assert {key for key in clean if key[0] in extracted} <= set(faulty)
    return same, failed


@pytest.mark.slow
@pytest.mark.nightly
def test_with_faults_every_verdict_is_the_clean_one_or_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = responses(40)
    (tmp_path / "clean").mkdir()
    with JudgeServer(reply=reply) as server:
        clean = options(tmp_path / "clean", server, rows)
        score_file(clean)
    with JudgeServer(reply=reply, faults=0.3, seed=3, hang=5.0) as server:
        chosen = options(tmp_path, server, rows, max_failed=1.0, timeout=0.4)
        summary = score_file(chosen)
        faulted, requests = dict(server.faulted), server.requests
    found = read(chosen.out)
    assert sorted(row["id"] for row in found) == sorted(row["id"] for row in rows)
    same, failed = compare(
        verdicts(clean.out),
        verdicts(chosen.out),
        {row["id"] for row in found if row["error"] is None},
    )
    print(
        f"{requests} requests, faults {faulted}: {same} verdicts as in the clean run, {failed}"
        " explicit failures, 0 others"
    )
    assert set(faulted) >= {"429", "500", "hang", "garbage", "truncated", "language"}
    assert same > 10 * failed
    assert summary["failed"] == sum(
        bool(row["error"]) or any(v["error"] for v in row["verdicts"]) for row in found
    )
    for row in found:
        for reward in row["rewards"].values():
            assert (reward["value"] is None) == (reward["error"] is not None)

    # the same command, and a judge that is well again
    with JudgeServer(reply=reply, port=server.port) as server:
        summary = score_file(replace(chosen, judge=server.url, overwrite=True))
        assert summary["failed"] == 0
        assert server.requests < requests / 4  # only what had failed
    assert {key: one["label"] for key, one in verdicts(chosen.out).items()} == {
        key: one["label"] for key, one in verdicts(clean.out).items()
    }


@pytest.mark.slow
def test_a_server_that_is_not_there_stops_it_soon_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with JudgeServer(reply=reply) as server:
        pass  # closed again
    source, out = write(tmp_path / "in.jsonl", responses(300, claims=2)), tmp_path / "f.jsonl"
    with pytest.raises(SystemExit) as exit:
        main(
            [
                "score",
                "--in",
                str(source),
                "--out",
                str(out),
                "--judge",
                server.url,
                "--model",
                "m",
                "--json",
            ]
        )
    printed, err = capsys.readouterr()
    summary = json.loads(printed)
    assert (exit.value.code, summary["status"]) == (4, "too_many_failures")
    assert summary["failed"] == summary["rows"] < 300
    # No more than three tries each of 64 at a time, then one look for each kind of question of
    # either chunk.
    assert summary["cost"]["calls"] <= 64 * 3 + 3 * 64
    assert (
        f"no connection to {server.url}" in err
        and "is the server running there?" in err
        and "--max-failed 0.2" in err
    )
    assert all(
        row["error"]["stage"] == "judge" and row["rewards"]["rlfh"]["value"] is None
        for row in read(out)
    )
    # there was no reply to keep
    assert summary["cache"] is None and not list(tmp_path.glob("**/*.sqlite*"))


def test_the_cache_lies_beside_the_output_or_where_it_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with JudgeServer(reply=reply) as server:
        summary = score_file(options(tmp_path, server, responses(2)))
        assert summary["cache"] == str(tmp_path / "out" / "f.judge.sqlite")
        # closed: no journal is left either
        assert [str(path) for path in tmp_path.glob("**/*.sqlite*")] == [summary["cache"]]
        wanted = tmp_path / "kept.sqlite"
        again = score_file(
            replace(
                options(tmp_path, server, responses(2)),
                out=tmp_path / "g" / "f.jsonl",
                cache=wanted,
            )
        )
        assert (
            again["cache"] == str(wanted)
            and wanted.exists()
            and not list((tmp_path / "g").glob("*.sqlite*"))
        )
        bare = [
            {name: value for name, value in row.items() if name != "passages"}
            for row in responses(2)
        ]
        refused = replace(options(tmp_path, server, bare), out=tmp_path / "h" / "f.jsonl")
        with pytest.raises(WorkbenchError, match="claims are verified against passages"):
            score_file(refused)
        assert not list((tmp_path / "h").glob("*.sqlite*"))  # nothing was asked


def test_passages_of_one_id_stay_two(tmp_path: Path) -> None:
    rows = [
        {key: value for key, value in row.items() if key != "passages"}
        for row in responses(3, thinking=False)
    ]
    same = [{"id": "p", "text": f"Fact {n} of part 0 is known."} for n in range(3)]
    with JudgeServer(reply=reply) as server:
        chosen = options(
            tmp_path, server, rows, method="rlfh", passages=write(tmp_path / "p.jsonl", same)
        )
        score_file(chosen)
        write(tmp_path / "p.jsonl", [{**one, "text": f"{one['text']} Really."} for one in same])
        later = replace(chosen, out=chosen.out.with_name("g.jsonl"))
        score_file(later)  # other passages under the same ids, into the same record
    stored = {row["id"]: row["text"] for row in read(chosen.out.with_name("passages.jsonl"))}
    assert len(stored) == 6
    for out, ending in ((chosen.out, ""), (later.out, " Really.")):
        for number, row in enumerate(read(out)):
            cited = [stored[row["verdicts"][0]["evidence"][place]["passage"]] for place in range(3)]
            assert cited[0] == f"Fact {number} of part 0 is known.{ending}" and len(set(cited)) == 3


def test_a_store_that_breaks_fails_the_claims_and_not_the_run(tmp_path: Path) -> None:
    from workbench.checks import judge_checks
    from workbench.types import Claim, Claims, Question, Response

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("lance error: no such fragment")

    with JudgeServer(reply=reply) as server:
        checks = judge_checks(endpoint(server.url, "m"), broken)
        response = Response("r", Question("q", "Who?"), "Ada sings.")
        [checked] = checks.verify["fact"](
            [(response, Claims(((0, 10),), (Claim(0, "Ada sings."),)))]
        )
    [verdict] = checked.verdicts
    assert verdict.error is not None and (verdict.error.stage, verdict.error.kind) == (
        "retrieve",
        "search",
    )


def test_single_pass_asks_once_a_response(tmp_path: Path) -> None:
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
        with lock(chosen.out.parent), pytest.raises(WorkbenchError, match="another process"):
            score_file(chosen)
        assert server.requests == 0


def test_evidence_comes_from_a_store(tmp_path: Path) -> None:
    from workbench.knowledge import build_index

    texts = [{"title": f"Page {n}", "text": f"Fact {n} of part 0 is known."} for n in range(3)]
    build_index(str(tmp_path / "index"), str(write(tmp_path / "pages.jsonl", texts)))
    rows = [
        {key: value for key, value in row.items() if key != "passages"}
        for row in responses(3, thinking=False)
    ]
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
    assert (
        second["rewards"]["rlfh"]["value"] is None and third["rewards"]["rlfh"]["value"] is not None
    )
