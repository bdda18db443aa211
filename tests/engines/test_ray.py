"""`workbench score --engine ray` and `workbench probe --actors`: equal to one process, despite
kills.
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scripted_judge import JudgeServer
from tests.engines.environment import needs
from tests.helpers import start_python, without
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import ids, read, reply, responses, world_rows, write
from tests.helpers.waiting import wait_for
from workbench.experiments.probe import probe_policy
from workbench.scoring import Options, plan, score_file
from workbench.scoring.run import CHUNK
from workbench.types import JsonObject
from workbench.util.actors import OWN, Actors, ray_session

pytestmark = needs("ray")
MINE = ("seconds", "out", "cost")  # fields of a summary that differ between runs


def bridges(count: int) -> list[JsonObject]:
    """Responses about bridges, correct except for the length, with the page that proves it."""
    rows = []
    for number in range(count):
        name, year = f"Aar Bridge {number}", 1800 + number % 200
        page = f"{name} is a bridge in Bern. It opened in {year}. It is {100 + number} metres long."
        response = f"{name} opened in {year}. {name} is {300 + number} metres long."
        row = {"id": number, "question": f"What is {name}?", "response": response, "title": name}
        rows.append({**row, "passages": [page]})
    return rows


def without_cost(path: Path) -> list[JsonObject]:
    return [without(row, "cost") for row in read(path)]


def same(one: Path, other: Path, *names: str) -> None:
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def scoring(folder: Path, *more: object, **environment: str) -> subprocess.Popen[str]:
    files = ("--in", folder / "in.jsonl", "--out", folder / "ray" / "f.jsonl")
    engine = "--method rlfh --engine ray --actors 2 --json".split()
    words = ("-m", "workbench.cli", "score", *files, *engine, *more)
    return start_python(*words, env=environment, stderr=subprocess.PIPE)


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def alive(process: Any) -> bool:
    import psutil

    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_an_interrupted_then_killed_driver_resumes_each_time(tmp_path: Path) -> None:
    import psutil

    rows = bridges(8 * CHUNK)
    write(tmp_path / "in.jsonl", rows)
    out = tmp_path / "ray" / "f.jsonl"
    for sent, status in ((signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)):
        before, process = lines(out), scoring(tmp_path)
        wait_for(lambda b=before, p=process: lines(out) > b or p.poll() is not None, 180)  # type: ignore[misc]
        # without Ray's two agents, which end after a minute or two
        children = psutil.Process(process.pid).children(recursive=True)
        begun = [child for child in children if not child.name().endswith("Agent")]
        process.send_signal(sent)
        said, err = process.communicate(timeout=60)
        assert process.returncode == status, err
        assert sent == signal.SIGKILL or json.loads(said)["status"] == "interrupted"
        assert len(begun) > 5
        wait_for(lambda begun=begun: not any(map(alive, begun)), 60)  # type: ignore[misc]
    assert 0 < len(read(out)) < len(rows)
    process = scoring(tmp_path)
    said, err = process.communicate(timeout=240)
    assert process.returncode == 0 and json.loads(said)["rows"] == len(rows), err
    assert ids(out) == [str(row["id"]) for row in rows]


# A cluster of two nodes with one CPU each: like two machines, but without a network.
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


def test_a_cluster_of_two_nodes_that_loses_one(tmp_path: Path) -> None:
    rows = bridges(6 * CHUNK)
    write(tmp_path / "in.jsonl", rows)
    out = tmp_path / "ray" / "f.jsonl"
    nodes = start_python("-c", TWO_NODES, env=OWN, stdin=subprocess.PIPE)
    assert nodes.stdin and nodes.stdout
    try:
        address = nodes.stdout.readline().strip()
        refused = scoring(tmp_path, "--address", address, "--actors", 3, **OWN)
        _, err = refused.communicate(timeout=120)
        assert refused.returncode == 2 and "has 2 CPUs" in err and not lines(out)
        process = scoring(tmp_path, "--address", address, **OWN)
        wait_for(lambda: lines(out) > 0 or process.poll() is not None, 180)
        nodes.stdin.write("\n")
        nodes.stdin.flush()
        assert nodes.stdout.readline() == "gone\n" and process.poll() is None
        assert lines(out) < len(rows)
        said, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        assert (json.loads(said)["rows"], json.loads(said)["failed"]) == (len(rows), 0)
        assert ids(out) == [str(row["id"]) for row in rows]
    finally:
        nodes.communicate("\n\n", timeout=60)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Ray as the commands start it, once per test process."""
    with ray_session(Actors(2)):
        yield


def both(folder: Path, source: Path, **more: Any) -> JsonObject:
    """Score a file locally and with two actors; check that rows, sidecar files and summary are
    equal.
    """
    local = Options(source, folder / "local" / "f.jsonl", **more)
    remote = replace(local, out=folder / "ray" / "f.jsonl", engine="ray", actors=2)
    first, second = score_file(local), score_file(remote)
    assert without_cost(remote.out) == without_cost(local.out)
    same(local.out.parent, remote.out.parent, "questions.jsonl", "passages.jsonl")
    assert {**second, **dict.fromkeys(MINE)} == {**first, **dict.fromkeys(MINE)}
    return first


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_rows_equal_the_local_engines_in_order(tmp_path: Path, suffix: str, cluster: None) -> None:
    import pyarrow
    import pyarrow.parquet as pq

    rows = [
        {**row, "id": f"{row['id']}/{copy}"} for copy in range(2) for row in world_rows(2 * CHUNK)
    ]
    source, extra = tmp_path / f"in.{suffix}", [rows[0], {**rows[0], "id": None}]
    if suffix == "parquet":
        pq.write_table(pyarrow.Table.from_pylist([*rows, *extra]), source)
    else:
        write(source, [*rows[:9], "{half", *rows[9:], *extra])
    summary = both(tmp_path, source, judge="world")
    assert (summary["rows"], summary["duplicates"]) == (len(rows), 1) and len(rows) > 2 * CHUNK
    assert summary["malformed"] == (2 if suffix == "parquet" else 3)
    assert ids(tmp_path / "ray" / "f.jsonl") == [row["id"] for row in rows]


@pytest.mark.parametrize("long", [False, True])
def test_the_local_judge_with_evidence_from_a_file(
    tmp_path: Path, cluster: None, long: bool
) -> None:
    rows = bridges(CHUNK + 10)
    pages = [{"title": row["title"], "text": row.pop("passages")[0]} for row in rows]
    if long:
        pages += [{"title": f"Page {n}", "text": f"Nothing about {n}."} for n in range(400)]
    file, source = write(tmp_path / "pages.jsonl", pages), write(tmp_path / "in.jsonl", rows)
    summary = both(tmp_path, source, method="rlfh", passages=file)
    assert summary["failed"] == 0 and summary["labels"]["correct"] > 0


def test_requests_to_a_judge_at_a_url_are_sent_by_this_process(
    tmp_path: Path, cluster: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with JudgeServer(reply=reply, delay=0.01) as server:
        source = write(tmp_path / "in.jsonl", responses(2 * CHUNK, claims=1))
        chosen: JsonObject = {"judge": server.url, "model": "m", "concurrency": 8}
        local = Options(source, tmp_path / "a" / "f.jsonl", **chosen)
        remote = replace(local, out=tmp_path / "b" / "f.jsonl", engine="ray")
        score_file(remote)
        assert set(server.asked.values()) == {1} and server.peak <= 8
        assert "rows are scored in this process" in capsys.readouterr().err
        score_file(local)
    assert without_cost(remote.out) == without_cost(local.out)


def workers() -> list[Any]:
    """The processes of this process's actors."""
    import psutil

    found = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # other processes may end meanwhile
            if child.name().startswith("ray::work_on_chunk"):
                found.append(child)
    return found


def kill_twice(progress: Callable[[], int], after: int) -> threading.Thread:
    """Kill one actor at once, and another after `after` rows."""
    import psutil

    killed: list[int] = []

    def run() -> None:
        deadline = time.monotonic() + 120
        while len(killed) < 2 and time.monotonic() < deadline:
            others = [one for one in workers() if one.pid not in killed]
            if others and progress() >= after * len(killed):
                with suppress(psutil.NoSuchProcess):
                    others[0].kill()
                    killed.append(others[0].pid)
            time.sleep(0.1)

    thread = threading.Thread(target=run)
    thread.killed = killed  # type: ignore[attr-defined]
    thread.start()
    return thread


def test_killed_actors_neither_lose_nor_repeat_rows(tmp_path: Path, cluster: None) -> None:
    # two actors have four chunks at a time: rows are written before the last chunks start
    source = write(tmp_path / "in.jsonl", bridges(7 * CHUNK))
    local = Options(source, tmp_path / "local" / "f.jsonl", method="rlfh")
    score_file(local)
    remote = replace(local, out=tmp_path / "ray" / "f.jsonl", engine="ray", actors=2)
    killer = kill_twice(lambda: lines(remote.out), CHUNK)
    summary = score_file(remote)
    killer.join()
    assert len(set(killer.killed)) == 2  # type: ignore[attr-defined]
    assert (summary["status"], summary["failed"]) == ("done", 0)
    assert without_cost(remote.out) == without_cost(local.out)


def exits(options: Options, judged: bool, known: Any) -> Callable[[list[Any]], Any]:
    """A scorer whose process exits, as when out of memory, at a row with a certain text."""
    score, deadly = (
        plan_score_in_actor(options, judged, known),
        options.out.parent.parent / "deadly",
    )

    def run(items: list[Any]) -> Any:
        if deadly.exists() and any("too much" in item.response.text for item in items):
            os._exit(137)
        return score(items)

    return run


plan_score_in_actor = plan.score_in_actor


def test_only_the_row_that_kills_its_actor_fails_and_it_is_retried(
    tmp_path: Path, cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = world_rows(12)
    rows[7]["response"] += " This is too much."
    source = write(tmp_path / "in.jsonl", rows)
    chosen = Options(source, tmp_path / "out" / "f.jsonl", "rlfh", "world", engine="ray", actors=1)
    (tmp_path / "deadly").touch()
    with monkeypatch.context() as patched:
        patched.setattr("workbench.scoring.run.score_in_actor", exits)
        summary = score_file(chosen)
    assert (summary["rows"], summary["failed"], summary["failures"]) == (12, 1, {"grade: died": 1})
    bad = read(chosen.out)[7]
    assert bad["id"] == "7" and bad["rewards"]["rlfh"]["value"] is None and bad["verdicts"] == []
    others = [row for row in without_cost(chosen.out) if row["id"] != "7"]
    summary = score_file(chosen)
    assert (summary["failed"], summary["earlier"]) == (0, 11)
    assert without_cost(chosen.out)[:11] == others and read(chosen.out)[11]["id"] == "7"


def test_only_this_machine_can_reach_ray_and_nothing_is_sent(cluster: None) -> None:
    import psutil

    connections = []
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            connections += process.net_connections("inet")
    listening = [one.laddr for one in connections if one.status == psutil.CONN_LISTEN]
    hosts = {place.ip for place in (*listening, *(one.raddr for one in connections if one.raddr))}
    assert {host.removeprefix("::ffff:") for host in hosts} == {"127.0.0.1"}
    assert 8265 not in {place.port for place in listening}  # the dashboard's
    [head] = [process for process in psutil.Process().children() if process.name() == "gcs_server"]
    assert head.environ()["RAY_USAGE_STATS_ENABLED"] == "0"


FILES = ("probe.jsonl", "summary.json", "config.json")


def test_a_probe_by_killed_actors_equals_that_of_one_process(tmp_path: Path, cluster: None) -> None:
    """Seven chunks of the tiny policy; then a folder that both resume."""
    how: JsonObject = {"k": 4, "limit": 104, "seed": 3, "kinds": ["single"]}
    local = probe_policy("sft", out=tmp_path / "local", threads=1, **how)
    killer = kill_twice(lambda: lines(tmp_path / "ray" / "probe.jsonl"), 1)
    remote = probe_policy("sft", out=tmp_path / "ray", actors=Actors(2), **how)
    killer.join()
    assert len(set(killer.killed)) == 2  # type: ignore[attr-defined]
    assert {**remote, "out": ""} == {**local, "out": ""} and remote["failed"] == 0
    same(tmp_path / "local", tmp_path / "ray", *FILES)
    rows = (tmp_path / "local" / "probe.jsonl").read_bytes().splitlines(keepends=True)
    assert len(rows) == 104
    (tmp_path / "ray" / "summary.json").unlink()
    (tmp_path / "ray" / "probe.jsonl").write_bytes(b"".join(rows[:16]))
    probe_policy("sft", out=tmp_path / "ray", actors=Actors(1), **how)
    same(tmp_path / "local", tmp_path / "ray", *FILES)
    with raises_error("threads is 1, not 2"):
        probe_policy("sft", out=tmp_path / "ray", threads=2, **how)
