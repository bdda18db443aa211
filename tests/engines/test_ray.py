"""`workbench score --engine ray`: the rows of the local engine, and what is lost and paid where
something is killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.engines.environment import ROOT, needs
from tests.engines.told import tell
from tests.helpers.score_helpers import Cli, read, reply, responses, world_rows, write
from tests.helpers.waiting import wait_for
from workbench.actors import Actors, pool
from workbench.actors.cluster import OWN, started
from workbench.judge import Element
from workbench.judge.scripted import JudgeServer
from workbench.score import Options, score_file
from workbench.score import ray as engine
from workbench.score.run import CHUNK
from workbench.types import WorkbenchError

pytestmark = needs("ray")
MINE = ("cost", "seconds", "out", "cache")  # of a summary: what two runs need not have in common


def unpriced(path: Path) -> list[dict[str, Any]]:
    """The rows of a file but for what they cost, which depends on who asked first."""
    return [{name: value for name, value in row.items() if name != "cost"} for row in read(path)]


def test_nothing_is_started_for_input_that_cannot_be_scored(tmp_path: Path, cli: Cli) -> None:
    """The same words as of the local engine, and Ray, which takes seconds to begin, is not so
    much as imported.
    """
    bare = write(tmp_path / "in.jsonl", responses(1))
    bad = write(tmp_path / "bad.jsonl", ["{", '{"id": 1}'])
    for given in (
        (bad,),
        (tmp_path / "none.jsonl",),
        (bare, "--method", "nobody"),
        (bare, "--judge", "nowhere"),
    ):
        command = ["score", "--out", tmp_path / "o" / "f.jsonl", "--in", *given]
        local, remote = cli(*command), cli(*command, "--engine", "ray")
        assert local == remote and local[0] == 2
    assert not (tmp_path / "o").exists() and "ray" not in sys.modules


def start(folder: Path, url: str, *more: str, **environment: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "workbench.cli",
        "score",
        "--in",
        folder / "in.jsonl",
        "--out",
        folder / "f.jsonl",
    ]
    command += ["--method", "rlfh", "--judge", url, "--model", "m", "--concurrency", "16", "--json"]
    command += ["--engine", "ray", "--actors", "2", *more]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(
        list(map(str, command)), cwd=ROOT, env={**os.environ, **environment}, **pipes
    )


def test_no_cluster_at_the_address(tmp_path: Path, cli: Cli) -> None:
    source = write(tmp_path / "in.jsonl", world_rows(1))
    command = [
        "score",
        "--in",
        source,
        "--out",
        tmp_path / "o" / "f.jsonl",
        "--judge",
        "world",
        "--engine",
        "ray",
    ]
    for address in ("127.0.0.1:9", "nowhere", "127.0.0.1:high", "127.0.0.1:99999"):
        code, _, err = cli(*command, "--address", address)
        assert code == 2 and f"no Ray cluster at '{address}'" in err and "ray start --head" in err
    code, _, err = cli(*command, "--address", "ray://127.0.0.1:10001")
    assert code == 2 and "write HOST:PORT" in err
    assert not (tmp_path / "o").exists() and "ray" not in sys.modules


def alive(process: Any) -> bool:
    import psutil

    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_the_driver_is_interrupted_then_killed_and_goes_on_each_time(tmp_path: Path) -> None:
    import psutil

    rows = responses(5 * CHUNK, claims=1, thinking=False)
    write(tmp_path / "in.jsonl", rows)
    unique = 3 * len(rows)
    with JudgeServer(reply=reply, delay=0.02) as server:
        for share, sent, status in (
            (0.2, signal.SIGTERM, 130),
            (0.6, signal.SIGKILL, -signal.SIGKILL),
        ):
            process = start(tmp_path, server.url)
            wait_for(lambda share=share: server.requests >= share * unique, 120)  # type: ignore[misc]
            # But for Ray's two agents, which do nothing by then, and notice after a minute or two.
            children = psutil.Process(process.pid).children(recursive=True)
            begun = [child for child in children if not child.name().endswith("Agent")]
            process.send_signal(sent)
            out, err = process.communicate(timeout=60)
            assert process.returncode == status, err
            assert sent == signal.SIGKILL or json.loads(out)["status"] == "interrupted"
            assert len(begun) > 5
            wait_for(lambda begun=begun: not any(map(alive, begun)), 60)  # type: ignore[misc]
        assert 0 < len(read(tmp_path / "f.jsonl")) < len(rows)
        process = start(tmp_path, server.url)
        out, err = process.communicate(timeout=180)
        assert process.returncode == 0, err
        assert json.loads(out)["rows"] == len(rows)
        assert [row["id"] for row in read(tmp_path / "f.jsonl")] == [row["id"] for row in rows]
        # what was under way is asked again
        assert len(server.asked) == unique and server.requests <= unique + 2 * 16
        print(
            f"{server.requests} requests for {unique} prompts over an interrupt and a kill with 16"
            " in flight"
        )


# Two nodes of a cluster, each with one CPU: as two machines, but for what lies between them.
TWO_NODES = """
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
second = cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
print(cluster.address, flush=True)
input()
cluster.remove_node(second, allow_graceful=False)
print("gone", flush=True)
input()
cluster.shutdown()
"""


def test_a_cluster_of_two_nodes_one_of_which_goes(tmp_path: Path) -> None:
    rows = responses(4 * CHUNK, claims=1, thinking=False)
    write(tmp_path / "in.jsonl", rows)
    nodes = subprocess.Popen(
        [sys.executable, "-c", TWO_NODES],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **OWN},
        text=True,
    )
    assert nodes.stdin and nodes.stdout
    try:
        address = nodes.stdout.readline().strip()
        with JudgeServer(reply=reply, delay=0.02) as server:
            refused = start(tmp_path, server.url, "--address", address, "--actors", "3", **OWN)
            _, err = refused.communicate(timeout=120)
            assert refused.returncode == 2 and "has 2 CPUs" in err and server.requests == 0
            process = start(tmp_path, server.url, "--address", address, **OWN)
            wait_for(lambda: server.requests >= len(rows), 120)
            nodes.stdin.write("\n")
            nodes.stdin.flush()
            assert nodes.stdout.readline() == "gone\n"
            out, err = process.communicate(timeout=180)
            assert process.returncode == 0, err
            assert (json.loads(out)["rows"], json.loads(out)["failed"]) == (len(rows), 0)
            assert [row["id"] for row in read(tmp_path / "f.jsonl")] == [row["id"] for row in rows]
            assert set(server.asked.values()) == {1}
    finally:
        nodes.communicate("\n\n", timeout=60)


def bridges(count: int) -> list[dict[str, Any]]:
    """Responses about bridges, right but for the length, with the page that says so."""
    rows = []
    for number in range(count):
        name = f"Aar Bridge {number}"
        page = (
            f"{name} is a bridge in Bern. It opened in {1800 + number % 200}. It is {100 + number}"
            " metres long."
        )
        said = f"{name} opened in {1800 + number % 200}. {name} is {300 + number} metres long."
        rows.append(
            {
                "id": number,
                "question": f"What is {name}?",
                "response": said,
                "title": name,
                "page": page,
            }
        )
    return rows


def test_growth(tmp_path: Path) -> None:
    """By the local rules, one actor against two; what is measured begins with the first chunk
    that is written.
    """
    count = (12 if os.environ.get("WORKBENCH_TELL") else 3) * CHUNK
    rows = bridges(count)
    for row in rows:
        row["passages"] = [row.pop("page")]
    source, found = write(tmp_path / "in.jsonl", rows), dict[str, Any]()
    for name, more in (
        ("local", {}),
        ("1", {"engine": "ray", "actors": 1}),
        ("2", {"engine": "ray", "actors": 2}),
    ):
        times: list[tuple[float, int]] = []
        began = time.perf_counter()

        def told(total: int, totals: Any, times: list[tuple[float, int]] = times) -> Any:
            return lambda tally, done: times.append((time.perf_counter(), done)) if done else None

        summary = score_file(
            Options(source, tmp_path / name / "f.jsonl", method="rlfh", **more), told
        )  # type: ignore[arg-type]
        (first, some), (last, all_rows) = times[0], times[-1]
        found[name] = {
            "rows_a_second": round((all_rows - some) / (last - first), 1),
            "first_rows_after": round(first - began, 1),
            "seconds": round(last - began, 1),
            "claims": summary["claims"],
            "load": round(os.getloadavg()[0], 1),
        }
    assert unpriced(tmp_path / "2" / "f.jsonl") == unpriced(tmp_path / "local" / "f.jsonl")
    tell(
        "ray",
        {"growth": {"rows": count, "cpus": os.cpu_count(), "judge": "local", "by_actors": found}},
    )
    print(json.dumps(found))


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Ray as the engine starts it, once for all tests of this process."""
    with started(Actors(2)):
        yield


def both(folder: Path, source: Path, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Score a file here and by two actors; the rows have to be the same, and the summaries but
    for what `MINE` names.
    """
    local = Options(source, folder / "local" / "f.jsonl", **more)
    remote = replace(local, out=folder / "ray" / "f.jsonl", engine="ray", actors=2)
    first, second = score_file(local), score_file(remote)
    assert unpriced(remote.out) == unpriced(local.out)
    for name in ("questions.jsonl", "passages.jsonl"):
        assert (remote.out.parent / name).read_text() == (local.out.parent / name).read_text()
    assert {**second, **dict.fromkeys(MINE)} == {**first, **dict.fromkeys(MINE)}
    return first, second


def table(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    import pyarrow
    import pyarrow.parquet as pq

    pq.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    return path


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_rows_are_those_of_the_local_engine_in_the_order_of_the_input(
    tmp_path: Path, suffix: str, cluster: None
) -> None:
    rows = [
        {**row, "id": f"{row['id']}/{copy}"} for copy in range(2) for row in world_rows(2 * CHUNK)
    ]
    source = tmp_path / f"in.{suffix}"
    if suffix == "parquet":
        table(source, [*rows, rows[0], {**rows[0], "id": None}])
    else:
        write(source, [*rows[:9], "{half", *rows[9:], rows[0], {**rows[0], "id": None}])
    summary, _ = both(tmp_path, source, judge="world")
    assert (summary["rows"], summary["duplicates"]) == (len(rows), 1) and len(rows) > 2 * CHUNK
    assert summary["malformed"] == (2 if suffix == "parquet" else 3)
    assert [row["id"] for row in read(tmp_path / "ray" / "f.jsonl")] == [row["id"] for row in rows]


def test_the_local_judge_and_its_evidence(tmp_path: Path, cluster: None) -> None:
    rows = bridges(CHUNK + 10)
    pages = write(
        tmp_path / "pages.jsonl", [{"title": row["title"], "text": row.pop("page")} for row in rows]
    )
    summary, _ = both(tmp_path, write(tmp_path / "in.jsonl", rows), method="rlfh", passages=pages)
    assert summary["failed"] == 0 and summary["labels"]["correct"] > 0


def test_a_judge_is_asked_no_prompt_twice_whoever_asks(tmp_path: Path, cluster: None) -> None:
    rows = responses(3 * CHUNK, claims=2)
    for row in rows[::2]:  # the same everywhere: both actors want it at the same time
        row |= {
            "question": "What?",
            "response": "<answer>Fact of all is 1.</answer>",
            "passages": ["The same."],
        }
    with JudgeServer(reply=reply, delay=0.01) as server:
        source = write(tmp_path / "in.jsonl", rows)
        first, second = both(tmp_path, source, judge=server.url, model="m", concurrency=8)
        assert first["cost"]["calls"] == second["cost"]["calls"] == len(server.asked)
        assert set(server.asked.values()) == {2} and server.peak <= 8


def test_rows_with_verdicts_are_paid_anew_without_a_judge(tmp_path: Path, cluster: None) -> None:
    score_file(
        Options(
            write(tmp_path / "in.jsonl", world_rows(40)),
            tmp_path / "first" / "f.jsonl",
            judge="world",
        )
    )
    summary, _ = both(
        tmp_path, tmp_path / "first" / "f.jsonl", method="rlfh", overrides=["rlfh.alpha=2"]
    )
    assert summary["rows"] == 40 and summary["cost"]["calls"] == 0


def test_failures_of_the_judge_are_failures_of_their_rows_and_stop_the_scoring(
    tmp_path: Path, cluster: None
) -> None:
    def partly(task: str, found: Sequence[Element]) -> str:
        return "I cannot say." if "What about 3" in found[0].text else reply(task, found)

    with JudgeServer(reply=partly) as server:
        source = write(tmp_path / "in.jsonl", responses(40, claims=1))
        summary, _ = both(
            tmp_path, source, judge=server.url, model="m", method="truthrl", max_failed=1.0
        )
        assert summary["failed"] == 11  # 3, and 30 to 39
        values = {
            row["id"]: row["rewards"]["truthrl"]["value"]
            for row in read(tmp_path / "ray" / "f.jsonl")
        }
        assert {name for name, value in values.items() if value is None} == {
            "r3",
            *(f"r{n}" for n in range(30, 40)),
        }
        stopped = Options(
            source,
            tmp_path / "stopped" / "f.jsonl",
            judge=server.url,
            model="m",
            method="truthrl",
            engine="ray",
            actors=2,
        )
        assert score_file(stopped)["status"] == "too_many_failures"


def graders() -> list[Any]:
    """The processes of actors that grade, of this process's cluster."""
    import psutil

    return [
        child
        for child in psutil.Process().children(recursive=True)
        if child.name().startswith("ray::Worker")
    ]


def test_an_actor_that_is_killed_loses_no_row_and_no_reply(
    tmp_path: Path, cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # of the driver, after Ray was started: actors do not have it
    monkeypatch.setenv("WORKBENCH_JUDGE_KEY", "secret")
    rows, killed = responses(3 * CHUNK, claims=1, thinking=False), list[int]()

    def script(task: str, found: Sequence[Element]) -> str:
        if (
            task == "verify"
            and len(killed) < 2
            and server.tasks["verify"] >= 100 * (len(killed) + 1)
        ):
            victim = graders()[0]
            killed.append(victim.pid)
            victim.kill()
        return reply(task, found)

    with JudgeServer(reply=script, delay=0.01, key="secret") as server:
        source = write(tmp_path / "in.jsonl", rows)
        remote = Options(
            source,
            tmp_path / "ray" / "f.jsonl",
            judge=server.url,
            model="m",
            method="rlfh",
            engine="ray",
            actors=2,
        )
        summary = score_file(remote)
        assert len(set(killed)) == 2 and summary["status"] == "done" and summary["failed"] == 0
        # what had been asked for the dead was answered to the living
        assert set(server.asked.values()) == {1}
        local = replace(remote, out=tmp_path / "local" / "f.jsonl", engine="local", actors=None)
        score_file(local)
    assert unpriced(remote.out) == unpriced(local.out)


def exits(options: Options, judged: bool, asked: Any) -> Callable[[list[Any]], Any]:
    """What actors score with, but that their process ends, as where it has no memory left, at a
    row that says so.
    """
    score, deadly = engine._scoring(options, judged, asked), options.out.parent.parent / "deadly"

    def run(items: list[Any]) -> Any:
        if deadly.exists() and any("too much" in item.response.text for item in items):
            os._exit(137)
        return score(items)

    return run


def test_a_row_that_kills_whoever_scores_it_fails_alone_and_is_tried_again(
    tmp_path: Path, cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = world_rows(12)
    rows[7]["response"] += " This is too much."
    chosen = Options(
        write(tmp_path / "in.jsonl", rows),
        tmp_path / "out" / "f.jsonl",
        judge="world",
        method="rlfh",
        engine="ray",
        actors=1,
    )
    (tmp_path / "deadly").touch()
    with monkeypatch.context() as patched:
        patched.setattr(engine, "_scoring", exits)
        summary = score_file(chosen)
    assert (summary["rows"], summary["failed"], summary["failures"]) == (12, 1, {"grade: died": 1})
    bad = read(chosen.out)[7]
    assert bad["id"] == "7" and bad["rewards"]["rlfh"]["value"] is None and bad["verdicts"] == []
    others = [row for row in unpriced(chosen.out) if row["id"] != "7"]
    summary = score_file(chosen)
    assert (summary["failed"], summary["earlier"]) == (0, 11)
    assert unpriced(chosen.out)[:11] == others and [row["id"] for row in read(chosen.out)][11:] == [
        "7"
    ]


def never(item: Any, failure: Any) -> Any:
    raise AssertionError((item, failure))


def test_what_scoring_raises_is_raised_and_not_tried_again(tmp_path: Path, cluster: None) -> None:
    def refuse() -> Callable[[Any], Any]:
        raise WorkbenchError("this cannot work: do that")

    with pytest.raises(WorkbenchError, match=r"^this cannot work: do that$"):
        list(pool.Pool(refuse, 1, never).map([["a row"]]))


def test_actors_that_die_of_everything_stop_it(
    tmp_path: Path, cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die() -> Callable[[Any], Any]:
        os._exit(1)

    monkeypatch.setattr(pool, "STRIKES", 2)
    with pytest.raises(WorkbenchError, match="3 of Ray's actors died one after another"):
        list(pool.Pool(die, 1, never).map([["a row", "another"]]))


def test_only_this_machine_can_reach_what_is_started_and_nothing_is_sent(cluster: None) -> None:
    import psutil

    everyone = [psutil.Process(), *psutil.Process().children(recursive=True)]
    connections = []
    for process in everyone:
        with suppress(psutil.NoSuchProcess):
            connections += process.net_connections("inet")
    listening = {
        one.laddr.ip.removeprefix("::ffff:")
        for one in connections
        if one.status == psutil.CONN_LISTEN
    }
    reached = {one.raddr.ip.removeprefix("::ffff:") for one in connections if one.raddr}
    assert listening == reached == {"127.0.0.1"}
    [head] = [process for process in psutil.Process().children() if process.name() == "gcs_server"]
    assert head.environ()["RAY_USAGE_STATS_ENABLED"] == "0"
    # the dashboard's
    assert not [
        one for one in connections if one.status == psutil.CONN_LISTEN and one.laddr.port == 8265
    ]
